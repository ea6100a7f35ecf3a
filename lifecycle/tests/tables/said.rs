//! What is said aloud, and names.

use boxes_crds::BoxStatus;
use boxes_lifecycle::{Severity, announcements, pod_name};
use rstest::rstest;

use crate::fixtures::{Decides, a_box, a_running_box, a_running_pod, an_ended_box, an_ended_pod};

fn reasons(recorded: &BoxStatus, next: &BoxStatus) -> Vec<(Severity, String)> {
    let said = announcements(recorded, next).into_iter();
    said.map(|it| (it.severity, it.reason)).collect()
}

#[test]
fn of_the_steps_towards_the_start_the_last_is_said() {
    let next = a_box().with(a_running_pod()).status();
    let expected = [(Severity::Normal, "Started".to_owned())];
    assert_eq!(reasons(&BoxStatus::default(), &next), expected);
}

#[rstest]
#[case::exit_0(0, Severity::Normal)]
#[case::exit_3(3, Severity::Warning)]
fn an_end_is_said_once(#[case] code: i32, #[case] severity: Severity) {
    let before = a_running_box().with(a_running_pod()).status();
    let next = a_running_box().with(an_ended_pod(code, "Error")).status();
    assert!(reasons(&before, &next).contains(&(severity, "Exited".to_owned())));
    assert_eq!(announcements(&next, &next), []);
    let message = announcements(&before, &next).pop().unwrap().message;
    assert!(message.contains(&format!("code {code}")), "{message}");
}

#[test]
fn an_oom_kill_warns() {
    let before = a_running_box().with(a_running_pod()).status();
    let next = a_running_box().with(an_ended_pod(5, "OOMKilled")).status();
    assert!(reasons(&before, &next).contains(&(Severity::Warning, "OOMKilled".to_owned())));
}

#[test]
fn a_refusal_is_said_when_it_begins_and_when_its_reason_changes() {
    let taken = a_box().with(boxes_lifecycle::Seen::Foreign).status();
    let expected = [(Severity::Warning, "PodNameTaken".to_owned())];
    assert_eq!(reasons(&BoxStatus::default(), &taken), expected);
    assert_eq!(reasons(&taken, &taken), []);
    let mut forbidden = taken.clone();
    forbidden.conditions[0].reason = "PodForbidden".to_owned();
    assert_eq!(reasons(&taken, &forbidden).len(), 1);
}

#[test]
fn the_clean_up_is_noted_and_not_said() {
    let before = serde_json::from_value(an_ended_box().status).unwrap();
    let next = an_ended_box().with(boxes_lifecycle::Seen::Absent).status();
    assert_eq!(reasons(&before, &next), []);
    let noted = next
        .history
        .iter()
        .filter(|it| it.type_ == "CleanedUp")
        .count();
    assert_eq!(noted, 1);
}

#[rstest]
#[case::short("a".to_owned())]
#[case::dotted("a.b-c".to_owned())]
#[case::just_fits("a".repeat(63))]
fn a_short_name_is_kept(#[case] name: String) {
    assert_eq!(pod_name(&name), name);
}

#[rstest]
#[case::letters("a".repeat(64))]
#[case::longest("b".repeat(253))]
#[case::dot_at_the_cut(format!("{}.{}", "a".repeat(51), "b".repeat(40)))]
#[case::dash_and_dot_before_the_cut(format!("{}-.{}", "a".repeat(50), "b".repeat(40)))]
fn a_long_name_is_cut_to_a_legal_one(#[case] name: String) {
    let cut = pod_name(&name);
    let label = |it: &str| {
        let ends = |at: Option<char>| at.is_some_and(|it| it.is_ascii_alphanumeric());
        ends(it.chars().next()) && ends(it.chars().last())
    };
    assert!(cut.len() <= 63 && cut.split('.').all(label), "{cut}");
    assert_ne!(cut, pod_name(&format!("{name}x")));
}
