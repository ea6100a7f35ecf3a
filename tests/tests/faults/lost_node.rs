//! Nodes that go, seem to go, or come back. The test plays the kubelet of a node of its own.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use boxes_crds::{BoxObject, CONFIRM_STOPPED_ANNOTATION};
use boxes_tests::harness::{
    LiveBox, Moment, PlayedNode, Reason, State, World, a_box, e2e, e2e_steady, tell, until,
};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;

const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// The time between two reads that find no Node object (contract §6).
const APART: Duration = Duration::from_mins(1);

/// The cluster's own collector forces the deletion of the pod within a minute, which counts as news of
/// it; then come the two reads.
const IN_THE_END: Duration = Duration::from_secs(200);

/// Longer than the controller lets pass between two looks at a node that is Ready.
const TWO_LOOKS: Duration = Duration::from_secs(35);

/// Two looks at a node that is not.
const LOOKS: Duration = Duration::from_secs(20);

/// A running box on a played node.
async fn on_a_played_node(world: &World, name: &str) -> Result<(PlayedNode, LiveBox, Pod)> {
    let node = world.played_node().await?;
    let it = node.takes(a_box(name)).runs(["true"]).create(world).await?;
    let pod = node.runs(&it).await?;
    it.is(State::Running).await?;
    Ok((node, it, pod))
}

/// Waits until the clean-up waits for a node that cannot be reached.
async fn waits_for_its_node(it: &LiveBox, part: &str) -> Result<()> {
    let what = format!("CleanedUp=False/NodeUnreachable with {part:?}");
    it.wait_for(&what, |object| clean_up(object, "NodeUnreachable", part))
        .await
        .map(drop)
}

fn clean_up(object: &BoxObject, reason: &str, part: &str) -> bool {
    let status = object.status.as_ref();
    let mut known = status.into_iter().flat_map(|status| &status.conditions);
    known.any(|it| {
        let here = it.type_ == "CleanedUp" && it.status == "False" && it.reason == reason;
        here && it.message.contains(part)
    })
}

/// Sees for a while that the box has no ending and both finalizers stay.
async fn is_held(world: &World, time: Duration) -> Result<()> {
    let mut story = world.story().await?;
    let let_go = |moment: &Moment| {
        let ended = moment.a_box().is_some_and(crate::help::has_ended);
        let released = moment.pod().is_some_and(|_| !moment.is_held_pod());
        let freed = moment.a_box().is_some_and(|object| {
            let mut held = object.finalizers().iter();
            !held.any(|it| it == boxes_crds::BOX_FINALIZER)
        });
        moment.gone || ended || released || freed
    };
    story
        .never("it was let go", time, |all| all.iter().any(let_go))
        .await
}

/// Waits for the ending, longer than for others.
async fn ends_in_the_end(world: &World, it: &LiveBox) -> Result<()> {
    let ended = |seen: Option<&BoxObject>| seen.is_some_and(crate::help::has_ended).then_some(());
    let what = "the box of a lost node to end";
    until(&world.boxes(), it.name(), what, IN_THE_END, ended).await
}

#[tokio::test]
async fn a_box_whose_node_object_is_removed_is_lost_after_two_reads_a_minute_apart() {
    // The minute is counted by one controller, in its memory.
    e2e_steady(async |world| {
        let (node, it, pod) = on_a_played_node(world, "removed").await?;
        it.stop_and_see().await?;
        node.remove().await?;
        let removed = Instant::now();
        waits_for_its_node(&it, "does not exist any more").await?;
        ends_in_the_end(world, &it).await?;
        ensure!(
            removed.elapsed() >= APART,
            "lost after only {:?}",
            removed.elapsed()
        );
        it.ends_as(State::Stopped, Reason::NodeLost)
            .saying(node.name())
            .await?;
        node.deletes_for_good(&pod).await?;
        it.has_no_pod_left(&pod).await?;
        it.is_cleaned_up().await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_node_object_that_is_removed_and_made_again_loses_nothing_and_its_kubelet_has_the_word() {
    e2e_steady(async |world| {
        let (node, it, pod) = on_a_played_node(world, "again").await?;
        it.stop_and_see().await?;
        node.remove().await?;
        waits_for_its_node(&it, "does not exist any more").await?;
        node.register().await?;
        tokio::select! {
            () = node.beats() => {}
            held = is_held(world, APART + LOOKS) => held?,
        }
        let pod = node.ends_and_saves(&pod, 7).await?;
        it.ends_as(State::Stopped, Reason::Stopped)
            .with_code(7)
            .await?;
        node.deletes_for_good(&pod).await?;
        it.has_no_pod_left(&pod).await
    })
    .await;
}

#[tokio::test]
async fn the_out_of_service_taint_means_nothing_on_a_ready_node() {
    e2e_steady(async |world| {
        let (node, it, pod) = on_a_played_node(world, "in-service").await?;
        it.stop_and_see().await?;
        node.taint(OUT_OF_SERVICE, "NoExecute").await?;
        tokio::select! {
            () = node.beats() => {}
            held = is_held(world, TWO_LOOKS) => held?,
        }
        let pod = node.ends_and_saves(&pod, 0).await?;
        it.ends_as(State::Stopped, Reason::Stopped)
            .with_code(0)
            .await?;
        node.deletes_for_good(&pod).await?;
        it.has_no_pod_left(&pod).await
    })
    .await;
}

#[tokio::test]
async fn the_out_of_service_taint_on_a_node_that_is_not_ready_loses_its_boxes() {
    e2e(async |world| {
        let (node, it, pod) = on_a_played_node(world, "out-of-service").await?;
        node.says_ready(false).await?;
        it.delete().await?;
        waits_for_its_node(&it, "is not Ready").await?;
        let mut story = world.story().await?;
        node.taint(OUT_OF_SERVICE, "NoExecute").await?;
        let gone = |moment: &&Moment| moment.gone && moment.a_box().is_some();
        let told = story.until("the box to be gone", |all| {
            let released = all.iter().rfind(|it| it.pod().is_some());
            all.iter().any(|it| gone(&it)) || released.is_some_and(|it| !it.is_held_pod())
        });
        told.await?;
        node.deletes_for_good(&pod).await?;
        let told = story
            .until("the box to be gone", |all| all.iter().any(|it| gone(&it)))
            .await?;
        let last = told.iter().find(gone).and_then(Moment::status);
        let reason = last.and_then(|status| status.reason.as_deref());
        ensure!(reason == Some("NodeLost"), "{}", tell(&told));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_node_that_is_only_not_ready_holds_its_boxes_and_the_kubelet_has_the_last_word() {
    e2e(async |world| {
        let (node, it, pod) = on_a_played_node(world, "not-ready").await?;
        node.says_ready(false).await?;
        let unready = |node: &Node| {
            let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
            let mut taints = taints.into_iter().flatten();
            taints.any(|taint| taint.key == "node.kubernetes.io/not-ready")
        };
        node.is("the cluster to see it", unready).await?;
        let mut story = world.story().await?;
        it.delete().await?;
        waits_for_its_node(&it, "kubectl annotate box").await?;
        is_held(world, LOOKS).await?;
        let deletes = |it: &Moment| {
            it.pod()
                .is_some_and(|pod| pod.metadata.deletion_timestamp.is_some())
        };
        let told = story.so_far();
        ensure!(!told.iter().any(deletes), "{}", tell(&told));

        node.says_ready(true).await?;
        node.ends_and_saves(&pod, 143).await?;
        let gone = |moment: &&Moment| moment.gone && moment.a_box().is_some();
        let released = story.until("the pod to be deleted", |all| all.iter().any(deletes));
        released.await?;
        node.deletes_for_good(&pod).await?;
        let told = story
            .until("the box to be gone", |all| all.iter().any(|it| gone(&it)))
            .await?;
        let last = told.iter().find(gone).and_then(Moment::status);
        let seen = last.map(|status| (status.reason.as_deref(), status.signal));
        ensure!(seen == Some((Some("Stopped"), Some(15))), "{}", tell(&told));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_person_confirms_a_stop_with_the_right_uid_and_with_no_other() {
    e2e(async |world| {
        let (node, it, pod) = on_a_played_node(world, "confirmed").await?;
        node.says_ready(false).await?;
        it.stop_and_see().await?;
        waits_for_its_node(&it, CONFIRM_STOPPED_ANNOTATION).await?;
        let other = "00000000-0000-0000-0000-000000000000";
        it.annotate(CONFIRM_STOPPED_ANNOTATION, other).await?;
        is_held(world, LOOKS).await?;
        let uid = pod.uid().context("a pod without a UID")?;
        it.annotate(CONFIRM_STOPPED_ANNOTATION, &uid).await?;
        it.ends_as(State::Stopped, Reason::NodeLost)
            .saying("a person confirmed")
            .await?;
        node.deletes_for_good(&pod).await?;
        it.is_cleaned_up().await?;
        Ok(())
    })
    .await;
}
