//! What of a supervisor's report is recorded beside the ending, and that it stays.

use boxes_crds::BoxStatus;
use boxes_lifecycle::{Phase, Seen};
use rstest::rstest;
use serde_json::{Value, json};

use crate::fixtures::{APod, Decides, a_box, a_running_box, a_running_pod, an_ended_pod, at, wire};
use crate::supervision::{AReport, ended, exited, in_parts, not_started, oom_killed, signaled};

fn history(status: &BoxStatus) -> Vec<Value> {
    let all = status.history.iter();
    all.map(|entry| serde_json::to_value(entry).unwrap())
        .collect()
}

#[rstest]
#[case::a_code(ended(3, &exited(3)), json!({"reason": "Exit", "exitCode": 3}))]
#[case::a_signal(ended(139, &signaled(11)), json!({"reason": "Signal", "signal": 11}))]
#[case::oom(ended(137, &signaled(9).killed_for_memory(1)), json!({"reason": "OOM", "exitCode": 137}))]
#[case::not_started(ended(127, &not_started(127, "x")), json!({"reason": "StartFailed", "exitCode": 127}))]
#[case::missing(an_ended_pod(3, "Error").supervised(), json!({"reason": "Exit", "exitCode": 3, "report": "missing"}))]
#[case::forged(ended(3, &exited(3).of_another_box()), json!({"reason": "Exit", "exitCode": 3, "report": "missing"}))]
#[case::disagrees(ended(3, &exited(0)), json!({"reason": "Exit", "exitCode": 3, "report": "disagrees"}))]
#[case::unsupervised(an_ended_pod(3, "Error"), json!({"reason": "Exit", "exitCode": 3}))]
fn the_history_tells_how_it_is_known(#[case] pod: APod, #[case] data: Value) {
    let status = a_running_box().with(pod).status();
    assert_eq!(history(&status).last().unwrap()["data"], data);
}

#[rstest]
#[case::counted(ended(5, &exited(5).killed_for_memory(1)), 1)]
#[case::counted_by_both(oom_killed(5, &exited(5).killed_for_memory(2)), 1)]
#[case::counted_by_the_kubelet(oom_killed(5, &exited(5).without("oomKills")), 1)]
#[case::fatal(oom_killed(137, &signaled(9).killed_for_memory(1)), 1)]
#[case::none(ended(5, &exited(5)), 0)]
#[case::forged(ended(5, &exited(5).killed_for_memory(1).of_another_box()), 0)]
#[case::disagrees(ended(5, &exited(4).killed_for_memory(1)), 0)]
fn a_kill_for_memory_is_noted_once(#[case] pod: APod, #[case] expected: usize) {
    let all = history(&a_running_box().with(pod).status());
    let noted = all.iter().filter(|entry| entry["type"] == "OOMKilled");
    assert_eq!(noted.count(), expected);
    assert_eq!(all.last().unwrap()["type"], "Exited");
}

/// `"started ended"`, as recorded.
fn recorded_times(pod: APod) -> [Value; 2] {
    let run = a_running_box().with(pod).status().run.unwrap();
    [run.started_at, run.ended_at].map(|at| serde_json::to_value(at).unwrap())
}

fn times(started: (i64, i64), ended: (i64, i64)) -> AReport {
    let started = in_parts(started.0, started.1);
    let ended = in_parts(ended.0, ended.1);
    exited(3).with(json!({"startedAt": started, "endedAt": ended}))
}

/// The container was recorded as started at 20; the kubelet says 20 and 50.
#[rstest]
#[case::fit(times((22, 900), (48, 100)), 22, 48)]
#[case::first_and_last(times((20, 0), (50, 999)), 20, 50)]
#[case::all_at_once(times((20, 0), (20, 0)), 20, 20)]
#[case::a_start_before_the_containers(times((19, 999), (48, 0)), 20, 48)]
#[case::a_start_after_the_containers_end(times((51, 0), (48, 0)), 20, 48)]
#[case::an_end_after_the_containers(times((22, 0), (51, 0)), 22, 50)]
#[case::an_end_before_the_containers_start(times((22, 0), (19, 0)), 20, 50)]
#[case::an_end_before_the_start(times((40, 0), (30, 0)), 20, 30)]
#[case::neither(times((-100, 0), (4000, 0)), 20, 50)]
#[case::no_start(exited(3).without("startedAt"), 20, 50)]
fn times_that_fit_are_taken(#[case] report: AReport, #[case] started: i64, #[case] ended: i64) {
    let pod = an_ended_pod(3, "Error").reports(&report);
    assert_eq!(recorded_times(pod), [wire(started), wire(ended)]);
}

#[rstest]
#[case::not_believed(an_ended_pod(3, "Error").reports(&times((22, 0), (48, 0)).of_another_box()), 20, 50)]
#[case::disagrees(an_ended_pod(4, "Error").reports(&times((22, 0), (48, 0))), 20, 50)]
#[case::the_kubelet_has_no_start(an_ended_pod(3, "Error").reports(&times((2, 0), (48, 0))).with_times(None, Some(50)), 2, 48)]
#[case::the_kubelet_has_no_end(an_ended_pod(3, "Error").reports(&times((22, 0), (70, 0))).with_times(Some(20), None), 22, 70)]
#[case::nobody_has_an_end(an_ended_pod(3, "Error").supervised().with_times(Some(20), None), 20, 100)]
fn whose_times_are_taken(#[case] pod: APod, #[case] started: i64, #[case] ended: i64) {
    assert_eq!(recorded_times(pod), [wire(started), wire(ended)]);
}

/// What a later pass may see of a pod whose end is recorded.
fn later() -> Vec<Seen> {
    vec![
        ended(0, &exited(0)).into(),
        ended(3, &times((30, 0), (40, 0))).into(),
        ended(139, &signaled(11)).into(),
        oom_killed(137, &signaled(9).killed_for_memory(1)).into(),
        ended(127, &not_started(127, "y")).into(),
        ended(3, &exited(3).after_a_stop()).deleted_at(45).into(),
        ended(3, &exited(3).of_another_box()).into(),
        an_ended_pod(3, "Error").into(),
        an_ended_pod(137, "ContainerStatusUnknown")
            .supervised()
            .into(),
        a_running_pod().supervised().into(),
        Seen::Absent,
    ]
}

#[rstest]
#[case::a_code(ended(3, &exited(3)))]
#[case::a_signal(ended(139, &signaled(11)))]
#[case::oom(oom_killed(137, &signaled(9).killed_for_memory(1)))]
#[case::not_started(ended(127, &not_started(127, "x")))]
#[case::missing(an_ended_pod(3, "Error").supervised())]
#[case::disagrees(ended(3, &exited(0)))]
#[case::before_its_pod_ended(ended(3, &exited(3)).in_phase(Phase::Running))]
fn what_is_recorded_stays(#[case] pod: APod) {
    let first = serde_json::to_value(a_running_box().with(pod).status()).unwrap();
    assert!(first["reason"].is_string());
    for seen in later() {
        let object = a_box().recorded(first.clone());
        let next = serde_json::to_value(object.with(seen).status()).unwrap();
        for field in [
            "state", "reason", "exitCode", "signal", "evidence", "message", "run",
        ] {
            assert_eq!(next[field], first[field], "{field}");
        }
        let known = first["history"].as_array().unwrap();
        assert_eq!(
            next["history"].as_array().unwrap()[..known.len()],
            known[..]
        );
    }
}

#[test]
fn what_is_recorded_of_a_report_is_read_back() {
    for pod in [
        ended(3, &exited(3)),
        ended(5, &exited(5).killed_for_memory(1)),
    ] {
        let world = a_running_box().with(pod.clone());
        let object = a_running_box().recorded(serde_json::to_value(world.status()).unwrap());
        assert_eq!(object.with(pod).decided().status, None);
    }
}

/// The kubelet's word of the start is not the last: the supervisor's is.
#[test]
fn a_start_that_the_kubelet_told_is_corrected_at_the_end() {
    let running = a_running_box().with(a_running_pod().supervised()).status();
    assert_eq!(running.run.unwrap().started_at.unwrap().0, at(20));
    let pod = ended(3, &times((23, 0), (48, 0)));
    assert_eq!(recorded_times(pod)[0], wire(23));
}
