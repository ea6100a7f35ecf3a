//! Commands that never started: `Stopped/StartFailed`, with the reason in words.

use anyhow::Result;
use boxes_tests::harness::{Reason, Slots, SlowRegistry, State, World, a_box, e2e};
use serde_json::json;

/// A part of the message of a pod that no node takes.
fn is_unschedulable(pod: &k8s_openapi::api::core::v1::Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|it| it.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| {
        condition.type_ == "PodScheduled" && condition.reason.as_deref() == Some("Unschedulable")
    })
}

#[tokio::test]
async fn an_init_container_that_fails_is_named_with_its_code() {
    e2e(async |world| {
        let init =
            json!({"name": "prepare", "image": "busybox", "command": ["sh", "-c", "exit 4"]});
        let it = a_box("unprepared")
            .runs(["true"])
            .pod_template(&json!({"initContainers": [init]}))
            .create(world)
            .await?;
        let status = it
            .ends_as(State::Stopped, Reason::StartFailed)
            .saying("init container prepare failed")
            .saying("exit code 4")
            .await?;
        assert!(status.run.is_some_and(|run| run.started_at.is_none()));
        it.is_cleaned_up().await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_pod_that_is_bound_to_a_node_of_another_kind_is_rejected_by_its_kubelet() {
    e2e(async |world| {
        let it = a_box("misplaced")
            .runs(["true"])
            .node_selector(json!({"no": "such-node"}))
            .create(world)
            .await?;
        let pod = it.has_a_pod("no node to take it", is_unschedulable).await?;
        it.bind_pod(&pod, &world.a_node().await?).await?;
        it.ends_as(State::Stopped, Reason::StartFailed)
            .saying("NodeAffinity")
            .await?;
        it.has_no_pod_left(&pod).await
    })
    .await;
}

#[tokio::test]
async fn a_pod_that_is_bound_to_a_node_without_room_is_rejected_by_its_kubelet() {
    e2e(async |world| {
        let slots = world.slots(1).await?;
        let result = too_big(world, &slots).await;
        slots.withdraw().await?;
        result
    })
    .await;
}

async fn too_big(world: &World, slots: &Slots) -> Result<()> {
    let it = a_box("too-big")
        .runs(["true"])
        .resources(slots.taking(2))
        .create(world)
        .await?;
    let pod = it.has_a_pod("no node to take it", is_unschedulable).await?;
    it.bind_pod(&pod, slots.node()).await?;
    it.ends_as(State::Stopped, Reason::StartFailed)
        .saying(&format!("OutOf{}", slots.resource()))
        .await?;
    it.has_no_pod_left(&pod).await
}

/// The kubelet gives such a pull up when its runtime does, and only then is the stop in force.
#[tokio::test]
async fn a_pull_that_hangs_ends_the_box_at_its_start_deadline() {
    e2e(async |world| {
        let registry = SlowRegistry::silent().await?;
        let it = a_box("hangs")
            .image(registry.image())
            .runs(["true"])
            .start_deadline_seconds(4)
            .create(world)
            .await?;
        it.ends_as(State::Stopped, Reason::StartFailed)
            .saying("startDeadlineSeconds (4)")
            .await?;
        it.is_cleaned_up().await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_box_that_no_node_takes_ends_at_its_start_deadline_with_the_schedulers_words() {
    e2e(async |world| {
        let it = a_box("no-node")
            .runs(["true"])
            .node_selector(json!({"no": "such-node"}))
            .start_deadline_seconds(4)
            .create(world)
            .await?;
        it.ends_as(State::Stopped, Reason::StartFailed)
            .saying("startDeadlineSeconds (4)")
            .saying("nodes are available")
            .await?;
        it.is_cleaned_up().await?;
        Ok(())
    })
    .await;
}
