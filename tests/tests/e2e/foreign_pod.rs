//! A pod of somebody else under the name that a Box's pod would have.

use std::time::Duration;

use anyhow::{Context, Result};
use boxes_tests::harness::{Moment, Reason, State, World, a_box, e2e_steady, until};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;

/// How long nothing may happen.
const A_WHILE: Duration = Duration::from_secs(12);

/// How often the controller may look in that time: once and again is no loop.
const LOOKS: usize = 4;

async fn a_foreign_pod(world: &World, name: &str) -> Result<Pod> {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "box", "image": "busybox", "command": ["sleep", "1000"]}],
        },
    }))?;
    let pods = world.pods();
    pods.create(&PostParams::default(), &pod).await?;
    let is_ready = |seen: Option<&Pod>| {
        let conditions = seen?.status.as_ref()?.conditions.as_ref()?;
        let ready = conditions
            .iter()
            .any(|it| it.type_ == "Ready" && it.status == "True");
        ready.then(|| seen.cloned())?
    };
    let patience = boxes_tests::harness::PATIENCE;
    until(
        &pods,
        name,
        "the foreign pod to be ready",
        patience,
        is_ready,
    )
    .await
}

#[tokio::test]
async fn a_foreign_pod_is_left_alone_and_the_box_says_so_and_runs_once_it_is_gone() {
    e2e_steady(async |world| {
        let foreign = a_foreign_pod(world, "taken").await?;
        let it = a_box("taken").shell("exit 3").create(world).await?;
        let accepted = it.has_condition("Accepted", "False").await?;
        assert_eq!(accepted.reason, "PodNameTaken");
        assert!(accepted.message.contains("taken"), "{}", accepted.message);
        assert_eq!(it.status().await?.state.as_deref(), Some("Pending"));

        let asked_before = asked(world)?;
        let mut story = world.story().await?;
        let anything = |all: &[Moment]| !all.is_empty();
        story
            .never("something was written", A_WHILE, anything)
            .await?;
        if let Some((before, after)) = asked_before.zip(asked(world)?) {
            let looks = after - before;
            assert!(
                looks <= LOOKS,
                "{looks} requests in {} s: a hot loop",
                A_WHILE.as_secs()
            );
        }

        let pod = world.pods().get("taken").await?;
        assert_eq!(pod.uid(), foreign.uid());
        assert_eq!(pod.resource_version(), foreign.resource_version());

        world
            .pods()
            .delete("taken", &DeleteParams::default())
            .await?;
        let status = it.ends_as(State::Exited, Reason::Exit).with_code(3).await?;
        assert_ne!(Some(status.run.context("no run")?.pod.uid), foreign.uid());
        it.has_condition("Accepted", "True").await?;
        Ok(())
    })
    .await;
}

/// How many requests the controller has made here, where the audit log is at hand.
fn asked(world: &World) -> Result<Option<usize>> {
    let audit = world.audit();
    let requests = audit
        .map(|audit| audit.of_the_controller(world.namespace()))
        .transpose()?;
    Ok(requests.map(|all| all.len()))
}

#[tokio::test]
async fn deleting_the_box_leaves_the_foreign_pod_running() {
    e2e_steady(async |world| {
        let foreign = a_foreign_pod(world, "theirs").await?;
        let it = a_box("theirs").runs(["true"]).create(world).await?;
        it.has_condition("Accepted", "False").await?;
        it.delete().await?;
        it.is_gone().await?;
        let pod = world.pods().get("theirs").await?;
        assert_eq!(pod.resource_version(), foreign.resource_version());
        assert!(pod.metadata.deletion_timestamp.is_none());
        Ok(())
    })
    .await;
}

/// Our label and even our finalizer do not make a pod the Box's: only its owner does.
#[tokio::test]
async fn a_pod_that_only_looks_like_ours_is_not_touched() {
    e2e_steady(async |world| {
        let look_alike: Pod = serde_json::from_value(json!({
            "metadata": {
                "name": "alike",
                "labels": {boxes_crds::BOX_UID_LABEL: "00000000-0000-0000-0000-000000000000"},
            },
            "spec": {
                "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "box", "image": "busybox", "command": ["sleep", "1000"]}],
            },
        }))?;
        let made = world
            .pods()
            .create(&PostParams::default(), &look_alike)
            .await?;
        let it = a_box("alike").runs(["true"]).create(world).await?;
        let accepted = it.has_condition("Accepted", "False").await?;
        assert_eq!(accepted.reason, "PodNameTaken");
        let pod = world.pods().get("alike").await?;
        assert_eq!(pod.uid(), made.uid());
        assert!(pod.metadata.deletion_timestamp.is_none());
        Ok(())
    })
    .await;
}
