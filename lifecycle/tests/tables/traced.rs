//! The trace of a run, as its record gives it.

use boxes_crds::{BoxStatus, HistoryEntry, HistoryType};
use boxes_lifecycle::{Attribute, Seen, Span, Trace, trace, trace_of_released};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use rstest::rstest;
use serde_json::{Map, Value, json};

use crate::fixtures::{
    ABox, Decides, a_box, a_materializing_box, a_running_box, an_ended_box, at, wire,
};

/// A whole life: when each thing happened, if it did.
#[derive(Clone, Copy)]
struct Life {
    created: Option<i64>,
    scheduled: Option<i64>,
    started: Option<i64>,
    ended: i64,
    saved: Option<i64>,
    cleaned_up: i64,
}

const WHOLE: Life = Life {
    created: Some(1),
    scheduled: Some(10),
    started: Some(20),
    ended: 50,
    saved: Some(55),
    cleaned_up: 60,
};

impl Life {
    fn status(self) -> BoxStatus {
        let run = self.created.map(|_| {
            json!({
                "number": 1, "pod": {"name": "hello", "uid": "pod-1"},
                "node": self.scheduled.map(|_| "node"),
                "startedAt": self.started.map(wire), "endedAt": wire(self.ended),
            })
        });
        let marks = [
            (HistoryType::Created, self.created),
            (HistoryType::Scheduled, self.scheduled),
            (HistoryType::Started, self.started),
            (HistoryType::Exited, Some(self.ended)),
            (HistoryType::OutputSaved, self.saved),
            (HistoryType::CleanedUp, Some(self.cleaned_up)),
        ];
        let history = marks.into_iter().filter_map(|(type_, time)| {
            Some(HistoryEntry {
                type_: type_.to_string(),
                time: Time(at(time?)),
                data: Map::new(),
            })
        });
        let status = json!({
            "state": "Exited", "reason": "Exit", "exitCode": 3, "evidence": "Observed", "run": run,
            "message": "said a secret",
            "output": {"state": "Partial", "bytes": 7, "truncated": true, "message": "a secret"},
        });
        BoxStatus {
            history: history.collect(),
            ..serde_json::from_value(status).unwrap()
        }
    }
}

fn traced(status: &BoxStatus) -> Trace {
    trace(&a_box().view(), &BoxStatus::default(), status).unwrap()
}

/// Name, start and end, in seconds.
fn lengths(trace: &Trace) -> Vec<(&'static str, i64, i64)> {
    let zero = at(0).as_second();
    let length = |it: &Span| {
        let (start, end) = (it.start.as_second(), it.end.as_second());
        (it.name, start - zero, end - zero)
    };
    trace.spans.iter().map(length).collect()
}

fn attribute<'a>(span: &'a Span, key: &str) -> Option<&'a Attribute> {
    let found = span.attributes.iter().find(|(known, _)| *known == key);
    found.map(|(_, value)| value)
}

#[rstest]
#[case::whole(WHOLE, vec![
    ("box", 0, 60), ("scheduling", 1, 10), ("materializing", 10, 20), ("running", 20, 50),
    ("saving", 50, 55), ("deleting", 55, 60),
])]
#[case::without_output(Life { saved: None, ..WHOLE }, vec![
    ("box", 0, 60), ("scheduling", 1, 10), ("materializing", 10, 20), ("running", 20, 50),
    ("deleting", 50, 60),
])]
#[case::never_started(Life { started: None, saved: None, ..WHOLE }, vec![
    ("box", 0, 60), ("scheduling", 1, 10), ("materializing", 10, 50), ("deleting", 50, 60),
])]
#[case::never_scheduled(Life { scheduled: None, started: None, ..WHOLE }, vec![
    ("box", 0, 60), ("scheduling", 1, 50), ("deleting", 50, 60),
])]
#[case::without_a_pod(
    Life { created: None, scheduled: None, started: None, saved: None, ..WHOLE },
    vec![("box", 0, 60)]
)]
#[case::node_behind(Life { started: Some(4), ended: 8, ..WHOLE }, vec![
    ("box", 0, 60), ("scheduling", 1, 10), ("materializing", 10, 10), ("running", 10, 10),
    ("saving", 10, 55), ("deleting", 55, 60),
])]
#[case::node_ahead(Life { started: Some(90), ended: 120, ..WHOLE }, vec![
    ("box", 0, 60), ("scheduling", 1, 10), ("materializing", 10, 60), ("running", 60, 60),
    ("saving", 60, 60), ("deleting", 60, 60),
])]
#[case::controller_behind_the_api_server(Life { cleaned_up: -5, ..WHOLE }, vec![
    ("box", 0, 0), ("scheduling", 0, 0), ("materializing", 0, 0), ("running", 0, 0),
    ("saving", 0, 0), ("deleting", 0, 0),
])]
fn spans_follow_the_record(#[case] life: Life, #[case] expected: Vec<(&'static str, i64, i64)>) {
    assert_eq!(lengths(&traced(&life.status())), expected);
}

#[test]
fn every_span_says_whose_it_is_and_the_root_how_it_ended() {
    let trace = traced(&WHOLE.status());
    let text = |value: &str| Attribute::Text(value.to_owned());
    for span in &trace.spans {
        for (key, value) in [
            ("k8s.namespace.name", "default"),
            ("box.name", "hello"),
            ("box.uid", "box-1"),
            ("k8s.pod.name", "hello"),
            ("k8s.pod.uid", "pod-1"),
            ("k8s.node.name", "node"),
        ] {
            assert_eq!(attribute(span, key), Some(&text(value)), "{span:?}");
        }
    }
    let root = &trace.spans[0];
    assert_eq!(attribute(root, "box.state"), Some(&text("Exited")));
    assert_eq!(attribute(root, "box.reason"), Some(&text("Exit")));
    assert_eq!(
        attribute(root, "box.exit_code"),
        Some(&Attribute::Number(3))
    );
    assert_eq!(attribute(root, "box.signal"), None);
    assert_eq!(attribute(root, "box.evidence"), Some(&text("Observed")));
    assert_eq!(attribute(root, "box.output.state"), Some(&text("Partial")));
    assert_eq!(
        attribute(root, "box.output.bytes"),
        Some(&Attribute::Number(7))
    );
}

#[test]
fn what_is_saved_is_told_once_nothing_more_is() {
    let mut status = WHOLE.status();
    status.output.as_mut().unwrap().state = "Saving".to_owned();
    assert_eq!(
        attribute(&traced(&status).spans[0], "box.output.bytes"),
        None
    );
}

#[test]
fn nothing_that_may_be_secret_is_in_it() {
    let secret = json!({
        "command": ["secret"], "args": ["secret"], "env": [{"name": "secret", "value": "secret"}],
    });
    let object = a_box().asks(secret).view();
    let trace = trace(&object, &BoxStatus::default(), &WHOLE.status()).unwrap();
    assert!(!format!("{trace:?}").contains("secret"), "{trace:?}");
}

#[rstest]
#[case::returned_3("Exited", "Exit", Some(3), WHOLE, &["box", "running"])]
#[case::returned_0("Exited", "Exit", Some(0), WHOLE, &[])]
#[case::stopped("Stopped", "Stopped", Some(3), WHOLE, &[])]
#[case::no_image(
    "Stopped", "StartFailed", None, Life { started: None, ..WHOLE }, &["box", "materializing"]
)]
#[case::no_pod(
    "Stopped", "StartFailed", None,
    Life { created: None, scheduled: None, started: None, saved: None, ..WHOLE }, &["box"]
)]
fn a_failure_is_on_the_root_and_where_it_happened(
    #[case] state: &str,
    #[case] reason: &str,
    #[case] exit_code: Option<i32>,
    #[case] life: Life,
    #[case] expected: &[&str],
) {
    let status = BoxStatus {
        state: Some(state.to_owned()),
        reason: Some(reason.to_owned()),
        exit_code,
        ..life.status()
    };
    let trace = traced(&status);
    let failed = trace.spans.iter().filter(|span| span.error.is_some());
    let names: Vec<_> = failed.clone().map(|span| span.name).collect();
    assert_eq!(names, expected);
    for span in failed {
        assert_eq!(span.error.as_deref(), Some(reason));
    }
}

#[test]
fn it_is_made_when_the_record_first_says_that_it_is_cleaned_up() {
    let object = a_box().view();
    let next = WHOLE.status();
    let mut before = next.clone();
    before.history.pop();
    assert!(trace(&object, &before, &before).is_none());
    assert!(trace(&object, &before, &next).is_some());
    assert!(trace(&object, &next, &next).is_none());
}

#[test]
fn the_status_that_is_decided_on_gives_it() {
    let recorded = serde_json::from_value(an_ended_box().status).unwrap();
    let next = an_ended_box().with(Seen::Absent).status();
    let trace = trace(&an_ended_box().view(), &recorded, &next).unwrap();
    assert_eq!(lengths(&trace)[0], ("box", 0, 100));
}

#[rstest]
#[case::ended(an_ended_box().deleted(), true)]
#[case::told_before(
    an_ended_box().deleted().recorded(json!({"history": [{"type": "CleanedUp", "time": wire(60)}]})),
    false
)]
#[case::never_ran(a_box().deleted(), false)]
#[case::not_ended(a_running_box().deleted(), false)]
#[case::unreadable(
    a_materializing_box().deleted().recorded(json!({"state": "Frozen"})), false
)]
fn a_box_that_goes_without_a_last_word_has_one(#[case] object: ABox, #[case] expected: bool) {
    let trace = trace_of_released(&object.with(Seen::Absent));
    assert_eq!(trace.is_some(), expected);
    if let Some(trace) = trace {
        assert_eq!(lengths(&trace)[0], ("box", 0, 100));
    }
}

fn with_uid(uid: &str) -> Trace {
    let mut object = a_box();
    object.metadata.uid = Some(uid.to_owned());
    trace(&object.view(), &BoxStatus::default(), &WHOLE.status()).unwrap()
}

#[test]
fn its_identifier_is_the_uid_of_the_box() {
    let expected = 0x5c1f_2d3e_4b5a_6978_8796_a5b4_c3d2_e1f0_u128.to_be_bytes();
    assert_eq!(
        with_uid("5c1f2d3e-4b5a-6978-8796-a5b4c3d2e1f0").id,
        expected
    );
}

#[rstest]
#[case::no_uuid("box-1")]
#[case::empty("")]
#[case::no_digits("zc1f2d3e-4b5a-6978-8796-a5b4c3d2e1f0")]
#[case::a_sign("+c1f2d3e-4b5a-6978-8796-a5b4c3d2e1f0")]
#[case::all_zero("00000000-0000-0000-0000-000000000000")]
fn any_other_uid_gives_an_identifier_too(#[case] uid: &str) {
    let trace = with_uid(uid);
    assert_ne!(trace.id, [0; 16]);
    assert_eq!(trace.id, with_uid(uid).id);
    assert_ne!(trace.id, with_uid("another").id);
}

#[test]
fn it_is_the_same_when_computed_from_what_was_written() {
    let mut status = WHOLE.status();
    for entry in &mut status.history {
        entry.time.0 += jiff::SignedDuration::from_millis(700);
    }
    let written: Value = serde_json::to_value(&status).unwrap();
    let read = serde_json::from_value(written).unwrap();
    assert_eq!(traced(&status), traced(&read));
}
