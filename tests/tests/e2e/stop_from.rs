//! A stop from every state, what it does first, and what it leaves to be read.

use anyhow::{Context, Result};
use boxes_crds::{BoxObject, BoxStatus, condition};
use boxes_tests::harness::{
    LiveBox, Moment, Reason, SlowRegistry, State, WAIT, a_box, e2e, e2e_alone, tell,
};
use k8s_openapi::api::core::v1::{Pod, ResourceQuota};
use kube::ResourceExt;
use kube::api::{LogParams, PostParams};
use serde_json::json;

use crate::help::{UNTIL_TOLD, end_of, has_ended, history};

fn is_stopping(object: &BoxObject) -> bool {
    let status = object.status.as_ref();
    status.is_some_and(|status| status.stop.is_some())
}

/// The generation that the record was last made from.
fn observed(object: &BoxObject) -> Option<i64> {
    object.status.as_ref()?.observed_generation
}

fn asked_to_stop(pod: &Pod) -> bool {
    let deadline = pod.spec.as_ref().and_then(|it| it.active_deadline_seconds);
    deadline == Some(1)
}

fn stops_asked(status: &BoxStatus) -> usize {
    let asked = |step: &&&str| **step == "StopRequested";
    history(status).iter().filter(asked).count()
}

#[tokio::test]
async fn a_stop_of_a_box_that_no_node_takes_deletes_its_pod_at_once() {
    e2e(async |world| {
        let it = a_box("nowhere")
            .runs(["true"])
            .node_selector(json!({"no": "such-node"}))
            .create(world)
            .await?;
        it.is(State::Pending).await?;
        let pod = it.has_a_pod("the pod", |_| true).await?;
        it.stop().await?;
        let status = it.ends_as(State::Stopped, Reason::Stopped).await?;
        assert_eq!(stops_asked(&status), 1, "{:?}", history(&status));
        it.has_no_pod_left(&pod).await?;
        it.is_cleaned_up().await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_stop_of_a_box_whose_pod_is_forbidden_ends_it_and_no_pod_is_made() {
    e2e(async |world| {
        let quotas: kube::Api<ResourceQuota> = world.api();
        let none = serde_json::from_value(json!({
            "metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}},
        }))?;
        quotas.create(&PostParams::default(), &none).await?;
        let story = world.story().await?;
        let it = a_box("forbidden").runs(["true"]).create(world).await?;
        it.has_condition(condition::ACCEPTED, "False").await?;
        it.stop().await?;
        it.ends_as(State::Stopped, Reason::Stopped).await?;
        it.is_cleaned_up().await?;
        let told = story.so_far();
        assert!(told.iter().all(|it| it.pod().is_none()), "{}", tell(&told));
        Ok(())
    })
    .await;
}

/// The kubelet does not interrupt a pull: the stop waits for it and says so.
#[tokio::test]
async fn a_stop_during_a_pull_that_hangs_takes_effect_when_the_pull_is_given_up() {
    e2e(async |world| {
        let mut story = world.story().await?;
        let registry = SlowRegistry::silent().await?;
        let it = a_box("pulling")
            .image(registry.image())
            .runs(["true"])
            .create(world)
            .await?;
        it.is(State::Materializing).await?;
        it.stop().await?;
        let waits = it.has_condition(condition::CLEANED_UP, "False").await?;
        assert_eq!(waits.reason, "Stopping", "{waits:?}");
        let status = it.ends_as(State::Stopped, Reason::Stopped).await?;
        assert!(status.run.is_some_and(|run| run.started_at.is_none()));
        it.is_cleaned_up().await?;
        let told = story.until("the last word", all_is_told).await?;
        the_order_is_kept(&told);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_box_that_is_deleted_during_a_pull_that_hangs_goes_when_the_pull_is_given_up() {
    e2e(async |world| {
        let registry = SlowRegistry::silent().await?;
        let it = a_box("pulling")
            .image(registry.image())
            .runs(["true"])
            .create(world)
            .await?;
        it.is(State::Materializing).await?;
        let pod = it.has_a_pod("the pod", |_| true).await?;
        it.delete().await?;
        it.is_gone().await?;
        it.has_no_pod_left(&pod).await
    })
    .await;
}

/// The last word on both: the watches of Boxes and of pods are two.
fn all_is_told(all: &[Moment]) -> bool {
    let cleaned_up = |moment: &Moment| {
        let status = moment.status();
        status.is_some_and(|status| history(status).contains(&"CleanedUp"))
    };
    let pod_is_gone = |moment: &Moment| moment.gone && moment.pod().is_some();
    all.iter().any(cleaned_up) && all.iter().any(pod_is_gone)
}

/// The stop is recorded before the pod is touched, and the end before the pod is deleted.
fn the_order_is_kept(told: &[Moment]) {
    let box_at = |version: u64| {
        let mut earlier = told.iter().rev().filter(|moment| moment.version < version);
        earlier.find_map(Moment::a_box)
    };
    let first = |is: &dyn Fn(&Pod) -> bool| {
        let found = told.iter().find(|moment| moment.pod().is_some_and(is));
        found.map(|moment| moment.version)
    };
    let touched = first(&|pod| asked_to_stop(pod) || pod.metadata.deletion_timestamp.is_some());
    let touched = touched.unwrap_or_else(|| panic!("never touched: {}", tell(told)));
    assert!(box_at(touched).is_some_and(is_stopping), "{}", tell(told));
    let deleted = first(&|pod| pod.metadata.deletion_timestamp.is_some());
    let deleted = deleted.unwrap_or_else(|| panic!("never deleted: {}", tell(told)));
    assert!(box_at(deleted).is_some_and(has_ended), "{}", tell(told));
}

#[tokio::test]
async fn a_running_box_is_stopped_in_the_order_intent_stop_record_delete() {
    e2e(async |world| {
        let mut story = world.story().await?;
        let it = a_box("ordered").shell(UNTIL_TOLD).create(world).await?;
        it.says("ready").await?;
        it.is(State::Running).await?;
        it.stop().await?;
        it.ends_as(State::Stopped, Reason::Stopped)
            .with_code(0)
            .await?;
        let told = story.until("the last word", all_is_told).await?;
        the_order_is_kept(&told);
        Ok(())
    })
    .await;
}

/// A stop does not delete the pod: until its end is recorded all that it said can be read.
#[tokio::test]
async fn what_a_stopped_command_said_can_be_read_until_its_end_is_recorded() {
    e2e_alone(async |world| {
        let slowly = format!("trap '{WAIT}; echo bye; exit 7' TERM; echo ready; sleep 1000 & wait");
        let it = a_box("readable")
            .shell(&slowly)
            .termination_grace_period_seconds(120)
            .create(world)
            .await?;
        it.says("ready").await?;
        it.is(State::Running).await?;
        it.stop().await?;
        it.has_a_pod("the stop to reach the pod", asked_to_stop)
            .await?;
        world.controller().pause().await?;
        it.tell().await?;
        let (pod, end) = it.has_a_finished_pod().await?;
        assert_eq!(end.exit_code, 7, "{end:?}");
        assert!(pod.metadata.deletion_timestamp.is_none(), "{pod:?}");
        let pods = world.pods();
        let said = pods.logs(&pod.name_any(), &LogParams::default()).await?;
        assert_eq!(said, "ready\nbye\n");
        world.controller().resume().await?;
        it.ends_as(State::Stopped, Reason::Stopped)
            .with_code(7)
            .await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_stop_that_is_asked_for_twice_is_one() {
    e2e(async |world| {
        let it = a_box("twice")
            .shell("trap 'sleep 3; exit 0' TERM; echo ready; sleep 1000 & wait")
            .create(world)
            .await?;
        it.says("ready").await?;
        let first = it.stop_and_see().await?;
        it.change(json!({"stopped": null})).await?;
        it.stop().await?;
        let status = it
            .ends_as(State::Stopped, Reason::Stopped)
            .with_code(0)
            .await?;
        assert_eq!(stops_asked(&status), 1, "{:?}", history(&status));
        assert_eq!(status.stop, first.status.and_then(|status| status.stop));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_stop_of_a_box_that_exited_changes_nothing_but_the_observed_generation() {
    e2e(async |world| {
        let it = a_box("over").shell("exit 3").create(world).await?;
        let before = it.is_cleaned_up().await?;
        it.stop().await?;
        let is_observed = |object: &BoxObject| observed(object) == Some(2);
        let object = it.wait_for("the stop to be observed", is_observed).await?;
        let after = object.status.context("no status")?;
        assert_eq!(after.stop, None);
        let told = |it: &BoxStatus| (it.state.clone(), it.reason.clone(), it.exit_code);
        assert_eq!(told(&after), told(&before));
        assert_eq!(after.history, before.history);
        Ok(())
    })
    .await;
}

/// While the controller is away, what nobody acted on can still be taken back.
#[tokio::test]
async fn a_stop_that_is_taken_back_before_anyone_saw_it_never_happened() {
    e2e_alone(async |world| {
        let it = a_box("spared").shell(UNTIL_TOLD).create(world).await?;
        it.says("ready").await?;
        it.is(State::Running).await?;
        world.controller().pause().await?;
        it.stop().await?;
        it.change(json!({"stopped": false})).await?;
        world.controller().resume().await?;
        runs_on(&it).await?;
        it.stop().await?;
        let status = it
            .ends_as(State::Stopped, Reason::Stopped)
            .with_code(0)
            .await?;
        assert_eq!(stops_asked(&status), 1, "{:?}", history(&status));
        Ok(())
    })
    .await;
}

/// The controller has seen both changes, and nothing was stopped.
async fn runs_on(it: &LiveBox) -> Result<()> {
    let is_observed = |object: &BoxObject| observed(object) == Some(3);
    let object = it
        .wait_for("the changes to be observed", is_observed)
        .await?;
    assert!(!is_stopping(&object) && !has_ended(&object), "{object:?}");
    let pod = it.has_a_pod("the pod", |_| true).await?;
    assert!(!asked_to_stop(&pod) && end_of(&pod).is_none(), "{pod:?}");
    Ok(())
}

#[tokio::test]
async fn a_stop_that_was_asked_for_while_there_was_no_controller_is_made_by_the_next() {
    e2e_alone(async |world| {
        let it = a_box("later").shell(UNTIL_TOLD).create(world).await?;
        it.says("ready").await?;
        it.is(State::Running).await?;
        world.controller().pause().await?;
        it.stop().await?;
        world.controller().resume().await?;
        it.ends_as(State::Stopped, Reason::Stopped)
            .with_code(0)
            .await?;
        Ok(())
    })
    .await;
}
