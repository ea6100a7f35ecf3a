//! Finalizers, pods and Boxes that are not what they seem.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use boxes_crds::{BOX_UID_LABEL, POD_FINALIZER};
use boxes_tests::harness::{
    LiveBox, Moment, Reason, SERVICE_ACCOUNT, State, World, a_box, e2e, gone, tell,
};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::help::UNTIL_TOLD;

const FOREIGN: &str = "example.org/hold";

/// How long nothing may be touched.
const A_WHILE: Duration = Duration::from_secs(6);

/// Longer than two looks for orphans.
const TWO_LOOKS: Duration = Duration::from_secs(130);

/// A command that takes its time to stop.
const SLOW: &str = "trap 'sleep 6; exit 0' TERM; echo ready; sleep 1000 & wait";

async fn running(world: &World, name: &str, line: &str) -> Result<(LiveBox, Pod)> {
    let it = a_box(name)
        .shell(line)
        .termination_grace_period_seconds(30)
        .create(world)
        .await?;
    it.says("ready").await?;
    it.is(State::Running).await?;
    let pod = it.has_a_pod("the pod", |_| true).await?;
    Ok((it, pod))
}

/// Takes all finalizers off the Box, as a person does who has no patience.
async fn strip(world: &World, it: &LiveBox) -> Result<()> {
    let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    world
        .boxes()
        .patch(it.name(), &PatchParams::default(), &patch)
        .await?;
    gone(&world.boxes(), it.name(), Some(it.uid())).await
}

#[tokio::test]
async fn a_foreign_finalizer_is_named_and_never_stripped() {
    e2e(async |world| {
        let (it, pod) = running(world, "held", UNTIL_TOLD).await?;
        it.set_pod_finalizers(&pod, &[POD_FINALIZER, FOREIGN])
            .await?;
        it.stop().await?;
        it.ends_as(State::Stopped, Reason::Stopped)
            .with_code(0)
            .await?;
        let named = |object: &boxes_crds::BoxObject| {
            let status = object.status.as_ref();
            let mut known = status.into_iter().flat_map(|status| &status.conditions);
            known.any(|it| it.reason == "ForeignFinalizer" && it.message.contains(FOREIGN))
        };
        it.wait_for("ForeignFinalizer with its name", named).await?;
        let mut story = world.story().await?;
        let stripped = |all: &[Moment]| {
            let all = all.iter().filter_map(Moment::pod);
            let mut without = all.filter(|pod| !pod.finalizers().iter().any(|it| it == FOREIGN));
            without.next().is_some()
        };
        story.never("it was stripped", A_WHILE, stripped).await?;
        it.set_pod_finalizers(&pod, &[]).await?;
        it.is_cleaned_up().await?;
        Ok(())
    })
    .await;
}

/// A pod that carries the Box's own label and our finalizer, and another owner or none.
async fn an_impostor(world: &World, it: &LiveBox, name: &str, owner: &Value) -> Result<Pod> {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {
            "name": name, "labels": {BOX_UID_LABEL: it.uid()}, "finalizers": [POD_FINALIZER],
            "annotations": {boxes_crds::BOX_NAME_ANNOTATION: it.name()},
            "ownerReferences": owner,
        },
        "spec": {
            "nodeSelector": {"no": "such-node"},
            "containers": [{"name": "box", "image": "busybox", "command": ["true"]}],
        },
    }))?;
    let made = world.pods().create(&PostParams::default(), &pod).await;
    made.context("no impostor")
}

#[tokio::test]
async fn pods_with_our_label_and_another_owner_or_none_are_not_touched() {
    e2e(async |world| {
        let (it, pod) = running(world, "genuine", UNTIL_TOLD).await?;
        let configs: kube::Api<ConfigMap> = world.api();
        let config: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "owner"}}))?;
        let config = configs.create(&PostParams::default(), &config).await?;
        let other = json!([{
            "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": config.uid(),
            "controller": true,
        }]);
        let impostors = [
            an_impostor(world, &it, "without-owner", &json!([])).await?,
            an_impostor(world, &it, "of-another", &other).await?,
        ];
        it.stop().await?;
        it.ends_as(State::Stopped, Reason::Stopped)
            .with_code(0)
            .await?;
        it.delete().await?;
        it.is_gone().await?;
        it.has_no_pod_left(&pod).await?;
        for impostor in impostors {
            let name = impostor.name_any();
            let now = world.pods().get(&name).await?;
            let ours = now.managed_fields().iter().any(|it| {
                let by = it.manager.as_deref();
                by == Some("boxes-controller")
            });
            ensure!(!ours, "{name} was written to");
            ensure!(
                now.metadata.deletion_timestamp.is_none(),
                "{name} was deleted"
            );
            ensure!(now.finalizers() == [POD_FINALIZER], "{name} was released");
            it.set_pod_finalizers(&now, &[]).await?;
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_box_of_the_same_name_waits_for_the_old_pod_and_then_runs_as_itself() {
    e2e(async |world| {
        let (old, old_pod) = running(world, "again", SLOW).await?;
        old.delete().await?;
        strip(world, &old).await?;
        let new = a_box("again").shell("exit 3").create(world).await?;
        let accepted = new.has_condition("Accepted", "False").await?;
        ensure!(accepted.reason == "PodNameTaken", "{accepted:?}");
        old.has_a_finished_pod().await?;
        let mut story = world.story().await?;
        let taken = |all: &[Moment]| {
            let run = |moment: &Moment| moment.status().is_some_and(|it| it.run.is_some());
            all.iter().any(|it| run(it) || it.gone)
        };
        story.never("the old pod was taken", A_WHILE, taken).await?;
        // Nobody records it any more: a person may let it go before the orphans' time comes.
        old.set_pod_finalizers(&old_pod, &[]).await?;
        old.has_no_pod_left(&old_pod).await?;
        let status = new
            .ends_as(State::Exited, Reason::Exit)
            .with_code(3)
            .await?;
        let run = status.run.context("no run")?;
        ensure!(
            Some(&run.pod.uid) != old_pod.metadata.uid.as_ref(),
            "{run:?}"
        );
        new.has_condition("Accepted", "True").await?;
        Ok(())
    })
    .await;
}

/// The garbage collector deletes it, and it keeps its evidence all the same.
#[tokio::test]
async fn a_young_pod_whose_box_was_stripped_and_removed_is_not_touched() {
    e2e(async |world| {
        let (it, pod) = running(world, "orphan", UNTIL_TOLD).await?;
        let params = DeleteParams::background();
        world.boxes().delete(it.name(), &params).await?;
        strip(world, &it).await?;
        it.has_a_finished_pod().await?;
        let mut story = world.story().await?;
        let let_go = |all: &[Moment]| all.iter().any(|it| it.gone || !it.is_held_pod());
        story.never("it was let go", TWO_LOOKS, let_go).await?;
        if let Some(audit) = world.audit() {
            let asked = audit.of_the_controller(world.namespace())?;
            let released = asked.iter().any(|it| {
                it.resource == "pods" && it.verb == "delete" && it.name == pod.name_any()
            });
            ensure!(
                !released,
                "{SERVICE_ACCOUNT} deleted it; {}",
                tell(&story.so_far())
            );
        }
        it.set_pod_finalizers(&pod, &[]).await?;
        it.has_no_pod_left(&pod).await
    })
    .await;
}
