//! Which records this build can read (contract §3, "Unknown stays as written").

use boxes_lifecycle::{Record, Seen};
use rstest::rstest;
use serde_json::{Value, json};

use crate::fixtures::{ABox, Decides, a_running_box, an_ended_box, an_ended_pod, wire};

#[rstest]
#[case::state(json!({"state": "Paused"}))]
#[case::field(json!({"phase": "Running"}))]
#[case::nested_field(json!({"run": {"number": 1, "attempt": 2, "pod": {"name": "a", "uid": "b"}}}))]
#[case::deeply_nested_field(json!({"run": {"number": 1, "pod": {"name": "a", "uid": "b", "kind": "VM"}}}))]
#[case::field_of_a_stop(json!({"stop": {"requestedAt": "2023-11-14T22:13:20Z", "by": "Spec", "why": "x"}}))]
#[case::word_of_a_stop(json!({"stop": {"requestedAt": "2023-11-14T22:13:20Z", "by": "Budget"}}))]
#[case::word_of_an_output(json!({"output": {"state": "Moved", "bytes": 0, "truncated": false}}))]
#[case::field_of_an_output(json!({"output": {"state": "Saved", "bytes": 0, "truncated": false, "where": "x"}}))]
#[case::another_run(json!({"run": {"number": 2, "pod": {"name": "a", "uid": "b"}}}))]
#[case::history(json!({"history": [{"type": "Resumed", "time": "2023-11-14T22:13:20Z"}]}))]
#[case::field_of_history(json!({"history": [{"type": "Started", "time": "2023-11-14T22:13:20Z", "by": "x"}]}))]
#[case::type_of_a_field(json!({"exitCode": "three"}))]
#[case::not_an_object(json!("Running"))]
#[case::evidence_without_an_end(json!({"state": "Running", "evidence": "Derived"}))]
#[case::code_without_an_end(json!({"state": "Running", "exitCode": 0}))]
#[case::signal_without_an_end(json!({"state": "Running", "signal": 9}))]
#[case::end_without_a_reason(json!({"state": "Exited"}))]
#[case::reason_without_an_end(json!({"state": "Running", "reason": "Exit", "exitCode": 0, "evidence": "Derived"}))]
#[case::reason_without_a_state(json!({"reason": "Exit", "exitCode": 0, "evidence": "Derived"}))]
fn unreadable(#[case] status: Value) {
    assert!(Record::read(Some(status)).is_err());
}

fn ending(state: &str, reason: &str, code: Option<i32>, signal: Option<i32>) -> Value {
    let mut status = json!({"state": state, "reason": reason, "evidence": "Observed"});
    if let Some(code) = code {
        status["exitCode"] = code.into();
    }
    if let Some(signal) = signal {
        status["signal"] = signal.into();
    }
    status
}

#[rstest]
#[case("Exited", "Exit", Some(0), None)]
#[case("Exited", "Exit", Some(255), None)]
#[case("Exited", "Signal", None, Some(11))]
#[case("Exited", "Timeout", None, None)]
#[case("Exited", "OOM", Some(137), None)]
#[case("Stopped", "Stopped", Some(0), None)]
#[case("Stopped", "Stopped", None, Some(15))]
#[case("Stopped", "Stopped", None, None)]
#[case("Stopped", "Evicted", Some(1), None)]
#[case("Stopped", "Preempted", None, Some(9))]
#[case("Stopped", "PodDeleted", None, None)]
#[case("Stopped", "NodeLost", None, None)]
#[case("Stopped", "PodLost", None, None)]
#[case("Stopped", "StartFailed", None, None)]
#[case("Stopped", "StartFailed", Some(127), None)]
#[case("Stopped", "StartFailed", Some(126), None)]
fn an_ending_of_the_table(
    #[case] state: &str,
    #[case] reason: &str,
    #[case] code: Option<i32>,
    #[case] signal: Option<i32>,
) {
    let record = Record::read(Some(ending(state, reason, code, signal))).unwrap();
    assert_eq!(record.ending.unwrap().fault(), None);
}

#[rstest]
#[case::both("Exited", "Exit", Some(0), Some(9))]
#[case::both_when_stopped("Stopped", "Stopped", Some(0), Some(9))]
#[case::exit_without_a_code("Exited", "Exit", None, None)]
#[case::signal_without_a_number("Exited", "Signal", None, None)]
#[case::signal_with_a_code("Exited", "Signal", Some(139), None)]
#[case::signal_0("Exited", "Signal", None, Some(0))]
#[case::signal_65("Exited", "Signal", None, Some(65))]
#[case::code_256("Exited", "Exit", Some(256), None)]
#[case::negative_code("Exited", "Exit", Some(-1), None)]
#[case::timeout_with_a_code("Exited", "Timeout", Some(143), None)]
#[case::oom_with_another_code("Exited", "OOM", Some(1), None)]
#[case::oom_without_a_code("Exited", "OOM", None, None)]
#[case::node_lost_with_a_code("Stopped", "NodeLost", Some(137), None)]
#[case::pod_lost_with_a_signal("Stopped", "PodLost", None, Some(9))]
#[case::start_failed_with_3("Stopped", "StartFailed", Some(3), None)]
#[case::wrong_state("Stopped", "Exit", Some(0), None)]
#[case::another_wrong_state("Exited", "Evicted", None, None)]
#[case::unknown_reason("Exited", "Hibernated", None, None)]
fn no_ending_of_the_table(
    #[case] state: &str,
    #[case] reason: &str,
    #[case] code: Option<i32>,
    #[case] signal: Option<i32>,
) {
    assert!(Record::read(Some(ending(state, reason, code, signal))).is_err());
}

#[test]
fn an_unknown_field_of_a_condition_is_unreadable() {
    let mut status = a_running_box().says("Ended", "False", "Running").status;
    status["conditions"][0]["severity"] = "high".into();
    assert!(Record::read(Some(status)).is_err());
}

#[test]
fn an_unknown_evidence_is_unreadable() {
    let mut status = ending("Exited", "Exit", Some(0), None);
    status["evidence"] = "Attested".into();
    assert!(Record::read(Some(status)).is_err());
}

#[rstest]
#[case(None)]
#[case(Some(Value::Null))]
#[case(Some(json!({})))]
fn no_status_is_an_empty_record(#[case] status: Option<Value>) {
    assert_eq!(Record::read(status).unwrap(), Record::default());
}

/// What a first status needs another pass for is not lost on the way through the wire.
#[rstest]
#[case(a_running_box().recorded(json!({})), 3)]
#[case(a_running_box().stopped_at(40, "Delete"), 143)]
fn what_is_written_is_read_back(#[case] object: ABox, #[case] code: i32) {
    let status = object.with(an_ended_pod(code, "Error")).status();
    let written = serde_json::to_value(&status).unwrap();
    let record = Record::read(Some(written.clone())).unwrap();
    assert_eq!(serde_json::to_value(&record.status).unwrap(), written);
}

#[test]
fn a_recorded_ending_stays_whatever_the_pod_says_later() {
    let before = an_ended_box().status;
    let status = an_ended_box()
        .with(an_ended_pod(137, "OOMKilled").deleted_at(40))
        .status();
    for field in ["state", "reason", "exitCode", "evidence"] {
        assert_eq!(
            serde_json::to_value(&status).unwrap()[field],
            before[field],
            "{field}"
        );
    }
    assert_eq!(
        serde_json::to_value(status.run.unwrap().ended_at).unwrap(),
        wire(50)
    );
    assert!(an_ended_box().with(Seen::Absent).status().signal.is_none());
}
