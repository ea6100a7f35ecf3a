//! A run that is over has one trace, and it holds together, whatever the clocks say.

use std::collections::BTreeSet;

use boxes_crds::{BoxStatus, HistoryEntry, HistoryType};
use boxes_lifecycle::{BoxView, Trace, trace};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::model::{Crash, Report, run};
use crate::plans::{cases, plan};

/// The root covers its children; they follow one another without gaps and end with it.
fn assert_whole(trace: &Trace) {
    let (root, children) = trace.spans.split_first().unwrap();
    assert_eq!(root.parent, None);
    assert!(root.start <= root.end, "{trace:#?}");
    let mut at = children.first().map_or(root.end, |first| first.start);
    assert!(root.start <= at, "{trace:#?}");
    for child in children {
        assert_eq!(child.parent, Some(root.id));
        assert_eq!(child.start, at, "{trace:#?}");
        assert!(child.start <= child.end, "{trace:#?}");
        at = child.end;
    }
    assert_eq!(at, root.end, "{trace:#?}");
    let ids: BTreeSet<_> = trace.spans.iter().map(|span| span.id).collect();
    assert_eq!(ids.len(), trace.spans.len());
    assert!(!ids.contains(&[0; 8]));
}

fn has(status: &BoxStatus, type_: HistoryType) -> bool {
    let mut all = status.history.iter();
    all.any(|entry| entry.type_ == type_.as_str())
}

/// One trace if the run is over, and none if it is not or never was.
fn assert_traced_once(report: &Report) {
    let cleaned_up = has(&report.status, HistoryType::CleanedUp) || !report.box_exists;
    let over = report.status.reason.is_some() && cleaned_up;
    assert_eq!(report.traces.len(), usize::from(over), "{report:#?}");
    report.traces.iter().for_each(assert_whole);
}

fn time() -> impl Strategy<Value = Option<i64>> {
    prop::option::of(-100_i64..100)
}

fn at(seconds: i64) -> Time {
    Time(Timestamp::from_second(1_000_000 + seconds).unwrap())
}

prop_compose! {
    /// A record in which the times are in any order.
    fn record()(
        history in prop::collection::vec((prop::sample::select(HistoryType::ALL), -100_i64..100), 0..8),
        started in time(),
        ended in time(),
        reason in prop::sample::select(vec!["Stopped", "NodeLost", "StartFailed"]),
    ) -> BoxStatus {
        let run = json!({
            "number": 1, "pod": {"name": "hello", "uid": "pod-1"},
            "startedAt": started.map(at), "endedAt": ended.map(at),
        });
        let entry = |(type_, time): (HistoryType, i64)| HistoryEntry {
            type_: type_.to_string(),
            time: at(time),
            data: Map::new(),
        };
        let status = json!({"state": "Stopped", "reason": reason, "evidence": "Inferred", "run": run});
        BoxStatus {
            history: history.into_iter().chain([(HistoryType::CleanedUp, 0)]).map(entry).collect(),
            ..serde_json::from_value(status).unwrap()
        }
    }
}

fn a_box(created: i64) -> BoxView {
    let metadata = ObjectMeta {
        uid: Some("4f0c1e52-7d0b-4a55-9c39-0d9a4a1b2c3d".to_owned()),
        creation_timestamp: Some(at(created)),
        ..ObjectMeta::default()
    };
    BoxView::read(metadata, json!({"image": "busybox"}), Some(Value::Null))
}

proptest! {
    #![proptest_config(cases(160))]

    #[test]
    fn a_run_that_is_over_has_one_trace(plan in plan()) {
        assert_traced_once(&run(plan));
    }

    #[test]
    fn it_has_one_under_a_controller_that_crashes_after_every_write(mut plan in plan()) {
        plan.crash = Crash::Always;
        assert_traced_once(&run(plan));
    }
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn a_trace_holds_together_whatever_the_clocks_say(status in record(), created in -100_i64..100) {
        let trace_it = || trace(&a_box(created), &BoxStatus::default(), &status).unwrap();
        assert_whole(&trace_it());
        prop_assert_eq!(trace_it(), trace_it());
    }
}
