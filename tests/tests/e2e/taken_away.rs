//! Pods that are taken away from running boxes: by drains, by the kubelet, by more important pods, by
//! force, and behind everybody's back.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use boxes_crds::{BOX_UID_LABEL, BoxStatus};
use boxes_tests::harness::{
    Evidence, LiveBox, Moment, Reason, State, World, a_box, e2e, e2e_alone, gone, tell, until,
};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::help::{end_of, has_ended};

/// A command that returns 9 when it is told to end.
const RETURNS_9: &str = "trap 'exit 9' TERM; echo ready; sleep 1000 & wait";

/// A running box of that command, and its pod.
async fn a_running_box(world: &World, name: &str) -> Result<(LiveBox, Pod)> {
    let it = a_box(name).shell(RETURNS_9).create(world).await?;
    it.says("ready").await?;
    it.is(State::Running).await?;
    let pod = it.has_a_pod("the pod", |_| true).await?;
    Ok((it, pod))
}

/// With a grace of a second the handler may come too late: the record must be what the kubelet saw.
fn returned_9_or_was_killed(status: &BoxStatus) -> bool {
    matches!(
        (status.exit_code, status.signal),
        (Some(9), None) | (None, Some(9))
    )
}

/// The node takes nobody while it is drained: tests that mind are kept out.
#[tokio::test]
async fn a_drain_of_its_node_ends_a_box_as_evicted_and_finishes() {
    e2e_alone(async |world| {
        let (it, pod) = a_running_box(world, "drained-node").await?;
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
        let node = node.context("a running pod without a node")?;
        let kubectl = world.kubectl()?;
        let selector = format!("--pod-selector={BOX_UID_LABEL}={}", it.uid());
        let drain = [
            "drain",
            &node,
            &selector,
            "--ignore-daemonsets",
            "--timeout=60s",
        ];
        let drained = kubectl.run(drain).await;
        kubectl.run(["uncordon", &node]).await?.ok()?;
        drained?.ok()?;
        it.ends_as(State::Stopped, Reason::Evicted)
            .with_code(9)
            .await?;
        it.has_no_pod_left(&pod).await
    })
    .await;
}

/// The kubelet looks at volumes once a minute by default.
#[tokio::test]
async fn a_volume_over_its_size_limit_ends_the_box_as_evicted() {
    e2e(async |world| {
        let it = a_box("over-its-limit")
            .shell("trap 'exit 9' TERM; dd if=/dev/zero of=/scratch/it bs=1M count=8; sleep 1000 & wait")
            .volumes(json!([{"name": "scratch", "emptyDir": {"sizeLimit": "1Mi"}}]))
            .volume_mounts(json!([{"name": "scratch", "mountPath": "/scratch"}]))
            .create(world)
            .await?;
        let ended = |seen: Option<&boxes_crds::BoxObject>| seen.is_some_and(has_ended).then_some(());
        let patience = Duration::from_secs(200);
        until(&world.boxes(), it.name(), "the eviction", patience, ended).await?;
        let status = it.status().await?;
        assert_eq!(status.reason.as_deref(), Some("Evicted"), "{status:?}");
        assert_eq!(status.state.as_deref(), Some("Stopped"), "{status:?}");
        assert!(returned_9_or_was_killed(&status), "{status:?}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_more_important_box_that_needs_the_room_ends_another_as_preempted() {
    e2e(async |world| {
        let classes: Api<PriorityClass> = Api::all(world.client());
        let important = serde_json::from_value(json!({
            "metadata": {"name": world.namespace()}, "value": 1000,
        }))?;
        classes.create(&PostParams::default(), &important).await?;
        let slots = world.slots(1).await?;
        let result = preempt(world, slots.taking(1)).await;
        slots.withdraw().await?;
        let class = world.namespace();
        classes.delete(class, &DeleteParams::default()).await?;
        result
    })
    .await;
}

async fn preempt(world: &World, resources: serde_json::Value) -> Result<()> {
    let ordinary = a_box("ordinary")
        .shell(RETURNS_9)
        .resources(&resources)
        .create(world)
        .await?;
    ordinary.says("ready").await?;
    let important = a_box("important")
        .shell("exit 3")
        .resources(&resources)
        .priority_class_name(world.namespace())
        .create(world)
        .await?;
    ordinary
        .ends_as(State::Stopped, Reason::Preempted)
        .with_code(9)
        .await?;
    important
        .ends_as(State::Exited, Reason::Exit)
        .with_code(3)
        .await?;
    Ok(())
}

#[tokio::test]
async fn a_pod_that_is_deleted_by_force_ends_the_box_as_the_kubelet_saw_it() {
    e2e(async |world| {
        let (it, pod) = a_running_box(world, "by-force").await?;
        let name = pod.name_any();
        let args = [
            "delete",
            "pod",
            &name,
            "--force",
            "--grace-period=0",
            "--wait=false",
        ];
        world.kubectl()?.run(args).await?.ok()?;
        let object = it.wait_for("the box to end", has_ended).await?;
        let status = object.status.unwrap_or_default();
        assert_eq!(status.reason.as_deref(), Some("PodDeleted"), "{status:?}");
        // So hasty a kill may come before the report.
        let evidence = status.evidence.as_deref();
        assert!(
            matches!(evidence, Some("Observed" | "Derived")),
            "{status:?}"
        );
        assert!(returned_9_or_was_killed(&status), "{status:?}");
        it.has_no_pod_left(&pod).await
    })
    .await;
}

/// The one hole: who strips the finalizer and forces the deletion takes the evidence away.
#[tokio::test]
async fn a_pod_that_vanished_unseen_ends_the_box_as_lost_and_without_a_code() {
    e2e_alone(async |world| {
        let (it, pod) = a_running_box(world, "vanished").await?;
        world.controller().pause().await?;
        it.set_pod_finalizers(&pod, &[]).await?;
        it.force_delete_pod(&pod).await?;
        gone(&world.pods(), &pod.name_any(), pod.uid().as_deref()).await?;
        world.controller().resume().await?;
        let status = it
            .ends_as(State::Stopped, Reason::PodLost)
            .by_evidence(Evidence::Inferred)
            .saying("finalizer")
            .await?;
        let uid = status.run.context("no run")?.pod.uid;
        assert_eq!(Some(uid), pod.uid());
        it.is_cleaned_up().await?;
        let pods = world.pods().list(&kube::api::ListParams::default()).await?;
        assert!(pods.items.is_empty(), "a second run: {pods:?}");
        Ok(())
    })
    .await;
}

/// Before the kubelet's last word nothing is known of the end, and nothing is made up.
#[tokio::test]
async fn no_ending_is_recorded_while_a_deleted_command_still_runs() {
    e2e(async |world| {
        let mut story = world.story().await?;
        let it = a_box("lingers")
            .shell("trap 'sleep 3; exit 9' TERM; echo ready; sleep 1000 & wait")
            .create(world)
            .await?;
        it.says("ready").await?;
        let pod = it.has_a_pod("the pod", |_| true).await?;
        it.delete_pod(&pod).await?;
        it.ends_as(State::Stopped, Reason::PodDeleted)
            .with_code(9)
            .await?;
        let recorded = |moment: &Moment| moment.a_box().is_some_and(has_ended);
        let is_told = |all: &[Moment]| {
            all.iter().any(recorded) && all.iter().any(|it| it.gone && it.pod().is_some())
        };
        let told = story.until("the record", is_told).await?;
        let record = told.iter().find(|moment| recorded(moment));
        let record = record.context("the record that was just there")?.version;
        let seen_before = told
            .iter()
            .filter(|moment| moment.version < record)
            .filter_map(|moment| moment.pod())
            .any(|pod| end_of(pod).is_some());
        ensure!(seen_before, "{}", tell(&told));
        Ok(())
    })
    .await;
}
