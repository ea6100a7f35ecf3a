//! Output: what is recorded of it, and when a pod goes without waiting for it.

use boxes_crds::{
    ABANDON_OUTPUT_ANNOTATION, BoxStatus, CONFIRM_STOPPED_ANNOTATION, OUTPUT_ANNOTATION,
    OUTPUT_FINALIZER, POD_FINALIZER,
};
use boxes_lifecycle::{
    NodeView, Phase, Seen, Severity, World, announcements, needs_namespace, needs_node, pod_for,
};
use rstest::rstest;
use serde_json::{Value, json};

use crate::fixtures::{
    ABox, APod, Decides, a_box, a_materializing_box, a_running_box, a_running_pod, an_ended_box,
    an_ended_pod, an_unbound_pod,
};

const PENDING: &str = r#"{"state":"Pending","bytes":0,"truncated":false}"#;
const SAVED: &str = r#"{"state":"Saved","bytes":12,"truncated":false}"#;
const PARTIAL: &str = r#"{"state":"Partial","bytes":9,"truncated":true,"message":"a gap"}"#;

const LOST: NodeView = NodeView::Present {
    ready: false,
    out_of_service: true,
};
const UNREADY: NodeView = NodeView::Present {
    ready: false,
    out_of_service: false,
};

impl APod {
    fn annotated(mut self, key: &str, value: &str) -> Self {
        let all = self.0.metadata.annotations.get_or_insert_default();
        all.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Its collector has not let go.
    fn waits_for_output(self) -> Self {
        self.held_by(&[POD_FINALIZER, OUTPUT_FINALIZER])
            .annotated(OUTPUT_ANNOTATION, PENDING)
    }

    /// Its collector has let go, and said this.
    fn let_go(self, said: &str) -> Self {
        self.annotated(OUTPUT_ANNOTATION, said)
    }
}

impl ABox {
    fn with_output(self, state: &str) -> Self {
        self.recorded(json!({"output": {"state": state, "bytes": 0, "truncated": false}}))
    }
}

fn output(status: &BoxStatus) -> String {
    let Some(output) = &status.output else {
        return "none".to_owned();
    };
    let known = status
        .conditions
        .iter()
        .find(|it| it.type_ == "OutputSaved");
    let known = known.unwrap();
    assert_eq!(known.reason, output.state);
    assert_eq!(known.status == "True", output.state == "Saved");
    let missing = if output.truncated { ", truncated" } else { "" };
    format!("{} {}{missing}", output.state, output.bytes)
}

/// One that ended at 50, in a world at 55: the collector is not late.
fn an_ended(pod: APod) -> World {
    an_ended_box().with_output("Saving").with(pod).after(-45)
}

#[rstest]
#[case::off(a_running_box().with(a_running_pod()), "none")]
#[case::unbound(a_box().with(an_unbound_pod().waits_for_output()), "Pending 0")]
#[case::started(a_materializing_box().with(a_running_pod().waits_for_output()), "Saving 0")]
#[case::ended(a_running_box().with(an_ended_pod(3, "Error").waits_for_output()), "Saving 0")]
#[case::saved(an_ended(an_ended_pod(3, "Error").let_go(SAVED)), "Saved 12")]
#[case::saved_before_the_end_was_seen(a_running_box().with(an_ended_pod(3, "Error").let_go(SAVED)), "Saved 12")]
#[case::partial(an_ended(an_ended_pod(3, "Error").let_go(PARTIAL)), "Partial 9, truncated")]
#[case::stripped(an_ended(an_ended_pod(3, "Error").let_go(PENDING)), "Unavailable 0, truncated")]
#[case::garbled(an_ended(an_ended_pod(3, "Error").let_go("{}")), "Unavailable 0, truncated")]
#[case::newer_word(an_ended(an_ended_pod(3, "Error").let_go(r#"{"state":"Moved"}"#)), "Unavailable 0, truncated")]
#[case::pod_gone(an_ended_box().with_output("Saving").with(Seen::Absent), "Unavailable 0, truncated")]
#[case::pod_not_seen(an_ended_box().with_output("Saving").with(Seen::NotSeen), "Saving 0")]
#[case::never_bound(a_box().stopped_at(20, "Spec").with(an_unbound_pod().waits_for_output().deleted_at(30)), "Saved 0")]
#[case::node_lost(an_ended(an_ended_pod(3, "Error").waits_for_output()).on(LOST), "Unavailable 0, truncated")]
#[case::node_unready(an_ended(an_ended_pod(3, "Error").waits_for_output()).on(UNREADY), "Saving 0")]
#[case::lost_while_running(a_running_box().with(a_running_pod().waits_for_output()).on(LOST), "Unavailable 0, truncated")]
fn what_is_recorded(#[case] world: World, #[case] expected: &str) {
    assert_eq!(output(&world.status()), expected);
}

#[test]
fn what_is_recorded_stays() {
    for state in ["Saved", "Partial", "Unavailable"] {
        let object = an_ended_box().with_output(state);
        let pod = an_ended_pod(3, "Error").let_go(PARTIAL);
        let status = object.with(pod).status();
        assert_eq!(status.output.unwrap().state, state);
    }
}

#[test]
fn a_person_gives_up_the_output_of_one_pod_that_has_stopped() {
    let given_up = |object: ABox, uid: &str, pod: APod| {
        let object = object
            .with_output("Saving")
            .annotated(ABANDON_OUTPUT_ANNOTATION, uid);
        object
            .with(pod.waits_for_output())
            .status()
            .output
            .unwrap()
            .state
    };
    let ended = || an_ended_pod(3, "Error");
    assert_eq!(given_up(an_ended_box(), "pod-1", ended()), "Unavailable");
    assert_eq!(given_up(an_ended_box(), "pod-2", ended()), "Saving");
    assert_eq!(
        given_up(a_running_box(), "pod-1", a_running_pod()),
        "Saving"
    );
}

/// A pod that was made before the saving of output was turned off.
#[rstest]
#[case::a_collector_may_still_save_it(0, "Saving 0")]
#[case::nobody_will(5, "Unavailable 0, truncated")]
fn output_that_is_turned_off_is_waited_for_a_little(#[case] later: i64, #[case] expected: &str) {
    let mut world = an_ended(an_ended_pod(3, "Error").waits_for_output()).after(later);
    world.saves_output = false;
    assert_eq!(output(&world.status()), expected);
    let mut runs = a_running_box().with(a_running_pod().waits_for_output());
    runs.saves_output = false;
    assert_eq!(output(&runs.after(1000).status()), "Saving 0");
}

#[rstest]
#[case::off(an_ended_box().with(an_ended_pod(3, "Error")), Some("release_pod"))]
#[case::awaited(an_ended(an_ended_pod(3, "Error").waits_for_output()), None)]
#[case::awaited_for_long(an_ended(an_ended_pod(3, "Error").waits_for_output()).after(1_000_000), None)]
#[case::not_looked_at(an_ended_box().with(an_ended_pod(3, "Error").waits_for_output()), None)]
#[case::let_go_and_not_recorded(an_ended(an_ended_pod(3, "Error").let_go(SAVED)), None)]
#[case::let_go_before_it_was_looked_at(an_ended_box().with(an_ended_pod(3, "Error").let_go(SAVED)), None)]
#[case::recorded(an_ended_box().with_output("Saved").with(an_ended_pod(3, "Error").let_go(SAVED)), Some("release_pod"))]
#[case::recorded_as_partial(an_ended_box().with_output("Partial").with(an_ended_pod(3, "Error").let_go(PARTIAL)), Some("release_pod"))]
#[case::given_up(an_ended_box().with_output("Unavailable").with(an_ended_pod(3, "Error").waits_for_output()), Some("release_pod"))]
#[case::only_the_output_holds_it(an_ended_box().with_output("Unavailable").with(an_ended_pod(3, "Error").held_by(&[OUTPUT_FINALIZER])), Some("release_pod"))]
#[case::deleted_with_its_box(an_ended_box().with_output("Saving").deleted().with(an_ended_pod(3, "Error").waits_for_output()), Some("release_pod"))]
#[case::runs_while_its_box_is_deleted(a_running_box().with_output("Saving").stopped_at(90, "Delete").deleted().with(a_running_pod().with_deadline(1).waits_for_output()), None)]
fn when_a_pod_goes(#[case] world: World, #[case] expected: Option<&str>) {
    assert_eq!(world.write(), expected);
}

#[test]
fn in_a_namespace_that_is_deleted_a_pod_goes_without_it() {
    let pod = || an_ended_pod(3, "Error").waits_for_output();
    let mut world = an_ended(pod().deleted_at(55));
    assert!(needs_namespace(&world), "it must be asked");
    assert_eq!(world.write(), None);
    world.namespace_terminating = true;
    assert_eq!(world.write(), Some("release_pod"));
    assert!(!needs_namespace(&an_ended(pod())), "nothing deletes it");
}

#[rstest]
#[case::in_time(0, "Stopping", Some(5), None)]
#[case::late(5, "OutputPending", Some(15), Some("node"))]
#[case::very_late(100_000, "OutputPending", Some(15), Some("node"))]
fn a_late_collector_is_told(
    #[case] later: i64,
    #[case] reason: &str,
    #[case] wake: Option<i64>,
    #[case] node: Option<&str>,
) {
    let world = an_ended(an_ended_pod(3, "Error").waits_for_output()).after(later);
    let status = world.status();
    let cleaned_up = status
        .conditions
        .iter()
        .find(|it| it.type_ == "CleanedUp")
        .unwrap();
    assert_eq!(
        (cleaned_up.status.as_str(), cleaned_up.reason.as_str()),
        ("False", reason)
    );
    let how = "kubectl annotate box hello -n default boxes.run/abandon-output=pod-1";
    assert_eq!(cleaned_up.message.contains(how), reason == "OutputPending");
    assert_eq!(world.decided().wake.map(|wake| wake.as_secs()), wake);
    assert_eq!(needs_node(&world), node);
}

#[test]
fn the_kubelets_word_is_not_needed_again_for_what_has_ended() {
    let object = an_ended_box().annotated(CONFIRM_STOPPED_ANNOTATION, "pod-1");
    let pod = an_ended_pod(3, "Error").waits_for_output();
    let status = object.with_output("Saving").with(pod).status();
    assert_eq!(
        status.output.unwrap().state,
        "Saving",
        "it is not about output"
    );
}

#[rstest]
#[case::saved(SAVED, Some(json!({"state": "Saved", "bytes": 12})))]
#[case::partial(PARTIAL, Some(json!({"state": "Partial", "bytes": 9})))]
#[case::unknown(PENDING, None)]
fn the_history_has_what_was_saved(#[case] said: &str, #[case] expected: Option<Value>) {
    let status = an_ended(an_ended_pod(3, "Error").let_go(said)).status();
    let noted = status.history.iter().find(|it| it.type_ == "OutputSaved");
    assert_eq!(noted.map(|it| Value::from(it.data.clone())), expected);
}

#[rstest]
#[case::saved(SAVED, None)]
#[case::partial(PARTIAL, Some("OutputPartial"))]
#[case::unknown(PENDING, Some("OutputUnavailable"))]
fn what_is_missing_is_said_aloud(#[case] said: &str, #[case] expected: Option<&str>) {
    let before = an_ended(an_ended_pod(3, "Error").waits_for_output()).status();
    let next = an_ended(an_ended_pod(3, "Error").let_go(said)).status();
    let said = announcements(&before, &next);
    assert!(said.iter().all(|it| it.severity == Severity::Warning));
    assert_eq!(said.first().map(|it| it.reason.as_str()), expected);
    assert_eq!(announcements(&next, &next), []);
}

#[test]
fn a_new_pod_waits_where_output_is_saved() {
    let spec = serde_json::from_value(json!({"image": "x"})).unwrap();
    let pod = |saves: bool| {
        pod_for(&a_box().view(), &spec, None, saves)
            .unwrap()
            .metadata
    };
    let held = pod(true);
    assert_eq!(held.finalizers.unwrap(), [POD_FINALIZER, OUTPUT_FINALIZER]);
    assert_eq!(held.annotations.unwrap()[OUTPUT_ANNOTATION], PENDING);
    assert_eq!(pod(false).finalizers.unwrap(), [POD_FINALIZER]);
    assert!(
        !pod(false)
            .annotations
            .unwrap()
            .contains_key(OUTPUT_ANNOTATION)
    );
}

#[test]
fn our_finalizer_is_no_strangers() {
    let pod = an_ended_pod(3, "Error").waits_for_output();
    let mut others = pod.0.foreign_finalizers();
    assert_eq!(others.next(), None);
}

#[test]
fn a_pod_that_a_node_rejected_waits_for_its_collector_too() {
    let rejected = crate::fixtures::a_bound_pod()
        .without_container()
        .failed_by("OutOfcpu")
        .waits_for_output();
    let object = a_materializing_box().recorded(json!({
        "state": "Stopped", "reason": "StartFailed", "evidence": "Derived",
    }));
    let world = object
        .with_output("Saving")
        .with(rejected.in_phase(Phase::Failed));
    assert_eq!(world.write(), None);
}

/// The kubelet's last words about a pull must not cost a write while the output is awaited.
#[test]
fn what_an_ended_box_waited_for_before_is_no_news() {
    let message = |reason: &str| {
        let pod = crate::fixtures::a_bound_pod()
            .waits(reason, Some("no such image"))
            .in_phase(Phase::Failed)
            .waits_for_output();
        let object = a_materializing_box().recorded(json!({
            "state": "Stopped", "reason": "StartFailed", "evidence": "Derived",
            "run": {"endedAt": crate::fixtures::wire(50)},
        }));
        let status = object.with_output("Saving").with(pod).after(-45).status();
        let mut all = status.conditions.into_iter();
        all.find(|it| it.type_ == "CleanedUp").unwrap().message
    };
    assert_eq!(message("ErrImagePull"), message("ContainerCreating"));
}
