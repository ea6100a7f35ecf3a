//! Records of a newer build, of all kinds: field for field as they were, under passes and restarts.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use boxes_crds::CONFIRM_STOPPED_ANNOTATION;
use boxes_tests::harness::{LiveBox, Moment, State, World, a_box, e2e_alone, tell};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::help::UNTIL_TOLD;

/// How long nothing may be touched, by each of two controllers.
const A_WHILE: Duration = Duration::from_secs(5);

/// What a newer build may have written, and the word by which the log must name it.
fn odd() -> [(&'static str, Value, &'static str); 6] {
    [
        ("state", json!({"state": "Hibernating"}), "Hibernating"),
        (
            "reason",
            json!({"state": "Stopped", "reason": "Migrated", "evidence": "Observed"}),
            "Migrated",
        ),
        (
            "both",
            json!({
                "state": "Stopped", "reason": "Stopped", "exitCode": 0, "signal": 15,
                "evidence": "Derived",
            }),
            "both exitCode and signal",
        ),
        (
            "field",
            json!({"dream": {"depth": 3, "of": ["a", "b"]}}),
            "dream",
        ),
        ("below", json!({"run": {"checkpoint": "c-7"}}), "checkpoint"),
        ("second-run", json!({"run": {"number": 2}}), "run.number"),
    ]
}

/// A running box whose status is then changed, as it was and as it is.
async fn an_odd_box(world: &World, name: &str, change: &Value) -> Result<(LiveBox, Pod, Value)> {
    let it = a_box(name).shell(UNTIL_TOLD).create(world).await?;
    it.says("ready").await?;
    it.is(State::Running).await?;
    let pod = it.has_a_pod("the pod", |_| true).await?;
    let patch = Patch::Merge(json!({"status": change}));
    let boxes = world.dynamic_boxes();
    let odd = boxes
        .patch_status(name, &PatchParams::default(), &patch)
        .await?;
    Ok((it, pod, odd.data["status"].clone()))
}

/// Whether a log names this box as unreadable, and what it is that cannot be read.
fn names(log: &[String], it: &LiveBox, word: &str) -> bool {
    let about = |line: &&String| line.contains("unreadable") && line.contains(it.uid());
    // In JSON, quotes are escaped.
    log.iter().filter(about).any(|line| line.contains(word))
}

#[tokio::test]
async fn whatever_a_newer_build_wrote_stays_field_for_field_through_passes_and_a_restart() {
    e2e_alone(async |world| {
        let mut controller = world.host_controller().await?;
        let mut all = Vec::new();
        for (name, change, word) in odd() {
            let (it, pod, status) = an_odd_box(world, name, &change).await?;
            all.push((it, pod, status, word));
        }
        let since = controller.proxy().count();
        let mut story = world.story().await?;
        // Everything that would move a box which can be read.
        for (number, (it, ..)) in all.iter().enumerate() {
            it.change(json!({"stopped": true, "ttlSecondsAfterFinished": 0}))
                .await?;
            if number % 2 == 0 {
                it.delete().await?;
            }
        }
        let acted = |all: &[Moment]| all.iter().any(|it| it.pod().is_some() || it.gone);
        story.never("it was acted on", A_WHILE, acted).await?;
        for (it, _, _, word) in &all {
            let named = names(&controller.log(), it, word);
            ensure!(named, "{} is not named by {word}", it.name());
        }
        controller.kill().await?;
        controller.start()?;
        controller.leads(boxes_tests::harness::PATIENCE).await?;
        story.never("it was acted on", A_WHILE, acted).await?;
        for (it, pod, status, word) in &all {
            let named = names(&controller.log(), it, word);
            ensure!(named, "{} is not named anew by {word}", it.name());
            let raw = world.dynamic_boxes().get(it.name()).await?;
            ensure!(raw.data["status"] == *status, "{} changed", it.name());
            let now = world.pods().get(&pod.name_any()).await?;
            ensure!(now.metadata.deletion_timestamp.is_none(), "{now:?}");
            ensure!(now.spec == pod.spec, "{} was touched", it.name());
        }
        let writes = controller.proxy().since(since).into_iter();
        let writes = writes.filter(|met| {
            met.ask.namespace == world.namespace() && met.ask.is_write_to_boxes_or_pods()
        });
        let writes: Vec<_> = writes.map(|met| met.ask.line()).collect();
        ensure!(writes.is_empty(), "{writes:?}; {}", tell(&story.so_far()));

        release(&all).await?;
        controller.stop().await
    })
    .await;
}

/// A person's word lets each of them go, and its pod.
async fn release(all: &[(LiveBox, Pod, Value, &str)]) -> Result<()> {
    for (it, pod, ..) in all {
        let uid = pod.uid().context("a pod without a UID")?;
        it.annotate(CONFIRM_STOPPED_ANNOTATION, &uid).await?;
        it.delete().await?;
    }
    for (it, pod, ..) in all {
        it.is_gone().await?;
        it.has_no_pod_left(pod).await?;
    }
    Ok(())
}
