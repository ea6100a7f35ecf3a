//! The endings that a supervisor reports (contract §3), and what its report denies and allows.

use rstest::rstest;
use serde_json::json;

use crate::fixtures::{
    ABox, APod, Decides, a_materializing_box, a_running_box, an_ended_pod, told,
};
use crate::supervision::{ended, exited, not_started, oom_killed, signaled};

#[rstest]
#[case::exit_0(an_ended_pod(0, "Completed").reports(&exited(0)), "Exited Exit 0 - Observed")]
#[case::exit_3(ended(3, &exited(3)), "Exited Exit 3 - Observed")]
#[case::exit_127(ended(127, &exited(127)), "Exited Exit 127 - Observed")]
#[case::exit_137(ended(137, &exited(137)), "Exited Exit 137 - Observed")]
#[case::exit_139(ended(139, &exited(139)), "Exited Exit 139 - Observed")]
#[case::exit_143(ended(143, &exited(143)), "Exited Exit 143 - Observed")]
#[case::signal_6(ended(134, &signaled(6)), "Exited Signal - 6 Observed")]
#[case::signal_9(ended(137, &signaled(9)), "Exited Signal - 9 Observed")]
#[case::signal_9_where_nobody_counts(ended(137, &signaled(9).without("oomKills")), "Exited Signal - 9 Observed")]
#[case::signal_11(ended(139, &signaled(11)), "Exited Signal - 11 Observed")]
#[case::signal_15(ended(143, &signaled(15)), "Exited Signal - 15 Observed")]
#[case::oom(oom_killed(137, &signaled(9).killed_for_memory(1)), "Exited OOM 137 - Observed")]
#[case::oom_that_the_kubelet_missed(ended(137, &signaled(9).killed_for_memory(3)), "Exited OOM 137 - Observed")]
#[case::oom_that_only_the_kubelet_counts(oom_killed(137, &signaled(9).without("oomKills")), "Exited OOM 137 - Observed")]
#[case::a_kill_beside_none(oom_killed(137, &signaled(9).killed_for_memory(0)), "Exited Signal - 9 Observed")]
#[case::oom_survived(oom_killed(5, &exited(5).killed_for_memory(1)), "Exited Exit 5 - Observed")]
#[case::oom_survived_that_only_the_kubelet_counts(oom_killed(5, &exited(5).without("oomKills")), "Exited Exit 5 - Observed")]
#[case::oom_survived_with_137(oom_killed(137, &exited(137).killed_for_memory(1)), "Exited Exit 137 - Observed")]
#[case::oom_survived_and_another_signal(oom_killed(139, &signaled(11).killed_for_memory(1)), "Exited Signal - 11 Observed")]
#[case::no_such_program(ended(127, &not_started(127, "x")), "Stopped StartFailed 127 - Observed")]
#[case::no_program(ended(126, &not_started(126, "x")), "Stopped StartFailed 126 - Observed")]
#[case::a_stop_that_nobody_here_asked_for(ended(143, &signaled(15).after_a_stop()), "Exited Signal - 15 Observed")]
#[case::a_stop_that_nobody_here_asked_for_and_a_code(ended(0, &exited(0).after_a_stop()), "Exited Exit 0 - Observed")]
#[case::a_sidecar_runs_on(ended(6, &exited(6)).beside_a_sidecar(), "Exited Exit 6 - Observed")]
fn nothing_else_ended_it(#[case] pod: APod, #[case] expected: &str) {
    assert_eq!(told(&a_running_box().with(pod).status()), expected);
}

/// Everything that ends boxes, as it shows in the Box and in a pod.
type Cause = (&'static str, ABox, fn(APod) -> APod);

fn causes() -> Vec<Cause> {
    let timed = a_running_box().asks(json!({"activeDeadlineSeconds": 30}));
    let same: fn(APod) -> APod = |pod| pod;
    let box_deleted: fn(APod) -> APod = |pod| pod.deleted_at(41);
    vec![
        ("Stopped", a_running_box().stopped_at(40, "Spec"), same),
        ("Stopped", a_running_box().stopped_at(40, "Delete"), same),
        ("Stopped", a_running_box().deleted_at(40), box_deleted),
        ("Timeout", timed, |pod| {
            pod.with_deadline(30).failed_by("DeadlineExceeded")
        }),
        ("Evicted", a_running_box(), |pod| pod.failed_by("Evicted")),
        ("Evicted", a_running_box(), |pod| {
            pod.failed_by("Terminated")
        }),
        ("Evicted", a_running_box(), |pod| {
            pod.disrupted_at(50, "TerminationByKubelet")
        }),
        ("Evicted", a_running_box(), |pod| {
            let pod = pod.disrupted_at(40, "EvictionByEvictionAPI");
            pod.deleted_at(40)
        }),
        ("Evicted", a_running_box(), |pod| {
            let pod = pod.disrupted_at(40, "DeletionByTaintManager");
            pod.deleted_for_good_at(50, true)
        }),
        ("Preempted", a_running_box(), |pod| {
            pod.disrupted_at(40, "PreemptionByScheduler").deleted_at(40)
        }),
        ("Preempted", a_running_box(), |pod| {
            pod.failed_by("Preempting")
        }),
        ("PodDeleted", a_running_box(), |pod| pod.deleted_at(40)),
        ("PodDeleted", a_running_box(), |pod| {
            pod.deleted_for_good_at(50, true)
        }),
    ]
}

/// State, code and signal of a report under a cause.
fn under(reason: &str, code: &str, signal: &str) -> String {
    match reason {
        "Timeout" => "Exited Timeout - - Observed".to_owned(),
        _ => format!("Stopped {reason} {code} {signal} Observed"),
    }
}

#[test]
fn each_cause_that_was_received_ends_it() {
    for (reason, object, shows) in causes() {
        let told = |pod: APod| told(&object.clone().with(shows(pod)).status());
        let rows = [
            (0, exited(0), under(reason, "0", "-")),
            (7, exited(7), under(reason, "7", "-")),
            (143, exited(143), under(reason, "143", "-")),
            (143, signaled(15), under(reason, "-", "15")),
            (137, signaled(9), under(reason, "-", "9")),
            (
                137,
                signaled(9).killed_for_memory(1),
                under(reason, "-", "9"),
            ),
        ];
        for (code, report, expected) in rows {
            assert_eq!(told(ended(code, &report.after_a_stop())), expected);
        }
    }
}

/// The hook may have made the command end, without any signal.
#[test]
fn each_cause_counts_without_a_signal_where_a_hook_comes_before_it() {
    for (reason, object, shows) in causes() {
        let pod = shows(ended(0, &exited(0))).with_a_pre_stop_hook();
        let status = object.clone().with(pod).status();
        assert_eq!(told(&status), under(reason, "0", "-"));
    }
}

#[test]
fn each_cause_that_was_not_received_is_denied() {
    for (reason, object, shows) in causes() {
        let told = |pod: APod| told(&object.clone().with(shows(pod)).status());
        let rows = [
            (ended(4, &exited(4)), "Exited Exit 4 - Observed"),
            (ended(143, &exited(143)), "Exited Exit 143 - Observed"),
            (ended(143, &signaled(15)), "Exited Signal - 15 Observed"),
            (ended(139, &signaled(11)), "Exited Signal - 11 Observed"),
            (
                oom_killed(137, &signaled(9).killed_for_memory(1)),
                "Exited OOM 137 - Observed",
            ),
        ];
        for (pod, expected) in rows {
            assert_eq!(told(pod), expected, "{reason}");
        }
    }
}

#[test]
fn a_start_that_failed_is_one_whatever_else_happened() {
    for (reason, object, shows) in causes() {
        for report in [not_started(127, "x"), not_started(127, "x").after_a_stop()] {
            let pod = shows(ended(127, &report));
            let expected = "Stopped StartFailed 127 - Observed";
            assert_eq!(
                told(&object.clone().with(pod).status()),
                expected,
                "{reason}"
            );
        }
    }
}

/// A report that is not believed neither denies nor allows anything.
#[test]
fn a_report_that_is_not_believed_changes_no_ending() {
    for (reason, object, shows) in causes() {
        let status = |pod: APod| object.clone().with(shows(pod)).status();
        let bare = status(an_ended_pod(143, "Error").supervised());
        for report in [
            exited(0),
            signaled(15).of_another_box(),
            exited(143).without("key"),
        ] {
            let other = status(ended(143, &report));
            assert_eq!(told(&other), told(&bare), "{reason}");
            assert!(told(&other).ends_with("Derived"), "{reason}");
        }
    }
}

fn timed(seconds: i64) -> (ABox, APod) {
    let object = a_running_box().asks(json!({"activeDeadlineSeconds": seconds}));
    let pod = ended(143, &exited(143).after_a_stop());
    (
        object,
        pod.with_deadline(seconds).failed_by("DeadlineExceeded"),
    )
}

fn stopped(seconds: i64) -> (ABox, APod) {
    let object = a_running_box().stopped_at(seconds, "Spec");
    (object, ended(143, &exited(143).after_a_stop()))
}

fn deleted(seconds: i64) -> (ABox, APod) {
    let (object, pod) = (a_running_box(), ended(143, &exited(143).after_a_stop()));
    (object, pod.deleted_at(seconds))
}

fn drained(seconds: i64) -> (ABox, APod) {
    let (object, pod) = deleted(seconds);
    (object, pod.disrupted_at(seconds, "EvictionByEvictionAPI"))
}

/// The node's clock is behind the API server's: what led to the end at 50 seems to be later.
#[rstest]
#[case::a_stop(stopped(53), "Stopped Stopped 143 - Observed")]
#[case::a_stop_after_a_minute(stopped(110), "Stopped Stopped 143 - Observed")]
#[case::a_stop_after_more(stopped(111), "Exited Exit 143 - Observed")]
#[case::a_deletion(deleted(53), "Stopped PodDeleted 143 - Observed")]
#[case::a_deletion_after_a_minute(deleted(110), "Stopped PodDeleted 143 - Observed")]
#[case::a_deletion_after_more(deleted(111), "Exited Exit 143 - Observed")]
#[case::a_drain(drained(53), "Stopped Evicted 143 - Observed")]
#[case::a_drain_after_a_minute(drained(110), "Stopped Evicted 143 - Observed")]
#[case::a_drain_after_more(drained(111), "Exited Exit 143 - Observed")]
#[case::a_deadline(timed(43), "Exited Timeout - - Observed")]
#[case::a_deadline_after_a_minute(timed(100), "Exited Timeout - - Observed")]
#[case::a_deadline_after_more(timed(101), "Exited Exit 143 - Observed")]
fn clocks_differ(#[case] seen: (ABox, APod), #[case] expected: &str) {
    let (object, pod) = seen;
    assert_eq!(told(&object.with(pod).status()), expected);
}

#[rstest]
#[case::the_first_cause_of_two(55, 52, "Stopped Evicted 143 - Observed")]
#[case::the_stop_before_the_drain(52, 55, "Stopped Stopped 143 - Observed")]
#[case::the_one_that_is_near(52, 200, "Stopped Stopped 143 - Observed")]
fn of_two_causes(#[case] stop: i64, #[case] drain: i64, #[case] expected: &str) {
    let (_, pod) = drained(drain);
    assert_eq!(
        told(&a_running_box().stopped_at(stop, "Spec").with(pod).status()),
        expected
    );
}

#[test]
fn without_the_kubelets_time_a_cause_that_was_received_counts() {
    let (object, pod) = stopped(500);
    let world = object.with(pod.with_times(None, None));
    assert_eq!(told(&world.status()), "Stopped Stopped 143 - Observed");
}

#[rstest]
#[case::one_that_failed(ended(127, &not_started(127, "sh: not found")), "the command could not be started: sh: not found")]
#[case::a_code(ended(3, &exited(3)), "the command exited with code 3")]
#[case::a_signal(ended(139, &signaled(11)), "the command was ended by signal 11")]
#[case::oom(ended(137, &signaled(9).killed_for_memory(1)), "the kernel killed the command: out of memory")]
fn a_message(#[case] pod: APod, #[case] expected: &str) {
    let message = a_running_box().with(pod).status().message;
    assert_eq!(message.as_deref(), Some(expected));
}

#[rstest]
#[case::by_itself(a_materializing_box(), "Stopped StartFailed - - Derived")]
#[case::while_stopping(a_materializing_box().stopped_at(40, "Spec"), "Stopped Stopped - - Inferred")]
fn a_supervisor_that_did_not_start_reports_nothing(#[case] object: ABox, #[case] expected: &str) {
    let pod = an_ended_pod(128, "StartError").supervised();
    let status = object
        .with(pod.with_message("exec: no such file\n"))
        .status();
    assert_eq!(told(&status), expected);
    let said = "the command could not be started: exec: no such file";
    assert_eq!(status.message.as_deref(), Some(said));
    let mut history = status.history.iter();
    let exited = history.find(|entry| entry.type_ == "Exited").unwrap();
    assert_eq!(exited.data.get("report"), None);
}
