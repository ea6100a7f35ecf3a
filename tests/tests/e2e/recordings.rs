//! Writes down what the kubelet says about each ending. The rules are tested with it: see
//! `lifecycle/tests/recordings.rs`.

use std::path::Path;

use anyhow::{Context, Result};
use boxes_tests::harness::{BoxBuilder, LiveBox, World, a_box, e2e, recording};
use futures::future::try_join_all;
use serde_json::json;

use crate::help::UNTIL_TOLD;

/// The folder of the recordings.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../lifecycle/tests/recordings");

const HANDLED: &str = "trap 'exit 9' TERM; echo ready; sleep 1000 & wait";

/// A box of each kind; its name is that of the recording.
fn boxes() -> Vec<BoxBuilder> {
    let eats = ["dd", "if=/dev/zero", "of=/dev/null", "bs=200M", "count=1"];
    let side = json!({"name": "side", "image": "busybox", "command": ["sleep", "1000"]});
    let fails = json!({"name": "prepare", "image": "busybox", "command": ["sh", "-c", "exit 4"]});
    vec![
        a_box("exit-0").shell("sleep 1"),
        a_box("exit-3").shell("sleep 1; exit 3"),
        a_box("oom").runs(eats).memory_limit("32Mi"),
        a_box("oom-survived")
            .shell("dd if=/dev/zero of=/dev/null bs=200M count=1; exit 5")
            .memory_limit("32Mi"),
        a_box("timeout")
            .runs(["sleep", "1000"])
            .active_deadline_seconds(8)
            .termination_grace_period_seconds(1),
        a_box("stopped-with-a-code").shell(UNTIL_TOLD),
        a_box("stopped-by-kill")
            .shell("trap '' TERM; echo ready; while :; do sleep 1; done")
            .termination_grace_period_seconds(1),
        a_box("pod-deleted").shell(HANDLED),
        a_box("evicted").shell(HANDLED),
        a_box("start-error").runs(["nosuch"]),
        a_box("image-never-comes")
            .image("127.0.0.1:1/none:1")
            .runs(["true"])
            .start_deadline_seconds(5),
        a_box("init-failed")
            .runs(["true"])
            .pod_template(&json!({"initContainers": [fails]})),
        a_box("sidecar")
            .shell("sleep 1; exit 6")
            .termination_grace_period_seconds(1)
            .pod_template(&json!({"containers": [side]})),
    ]
}

async fn live(it: &LiveBox) -> Result<()> {
    let name = it.name();
    if name.starts_with("stopped") || name == "pod-deleted" || name == "evicted" {
        it.says("ready").await?;
        let pod = it.has_a_pod("the pod", |_| true).await?;
        match name {
            "pod-deleted" => it.delete_pod(&pod).await?,
            "evicted" => it.evict_pod(&pod).await?,
            _ => it.stop().await?,
        }
    }
    it.is_cleaned_up().await.map(drop)
}

async fn record(world: &World) -> Result<()> {
    let mut story = world.story().await?;
    let made = boxes().into_iter();
    let made = made.map(|builder| async move { builder.create(world).await });
    let all = try_join_all(made).await?;
    try_join_all(all.iter().map(live)).await?;
    let told = story.until("all pods to be gone", |told| {
        let gone = told.iter().filter(|it| it.gone && it.pod().is_some());
        gone.count() >= all.len()
    });
    let told = told.await?;
    for it in &all {
        let text = serde_json::to_string_pretty(&recording(&told, it))?;
        let path = Path::new(FOLDER).join(format!("{}.json", it.name()));
        std::fs::write(&path, text + "\n")
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

#[tokio::test]
async fn what_the_kubelet_says_of_each_ending_is_recorded_where_boxes_record_is_set() {
    if std::env::var_os("BOXES_RECORD").is_none() {
        return;
    }
    e2e(record).await;
}
