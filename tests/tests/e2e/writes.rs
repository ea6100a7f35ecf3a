//! What a life costs the API server, by its own audit log. That is at hand only on the test cluster
//! of this machine: with another `KUBECONFIG` these tests see that the writing ends, and no more.

use std::time::Duration;

use anyhow::{Result, ensure};
use boxes_tests::harness::{Moment, Request, SlowRegistry, State, Story, World, a_box, e2e_steady};
use serde_json::json;

use crate::help::{UNTIL_TOLD, history};

/// The contract's bound for the whole life of a task box.
const A_LIFE: usize = 8;

/// What is saved of the output is recorded before the pod goes. Most lives have room for it within the
/// bound, since they are over before `Materializing` is worth a write.
const OUTPUT: usize = 1;

/// What a stop may add.
const A_STOP: usize = 2;

/// No box has a life with fewer: finalizer, pod, ending, release, deletion, cleaned up.
const LEAST: usize = 6;

/// How long it must be quiet after a life.
const A_WHILE: Duration = Duration::from_secs(3);

/// The controller's writes to Boxes and pods of this namespace; `None` without an audit log.
fn writes(world: &World) -> Result<Option<Vec<Request>>> {
    let audit = world.audit();
    let all = audit
        .map(|audit| audit.of_the_controller(world.namespace()))
        .transpose()?;
    let counts = |request: &Request| request.is_write() && request.is_about_boxes_or_pods();
    Ok(all.map(|all| all.into_iter().filter(counts).collect()))
}

fn shown(all: &[Request]) -> String {
    let line = |it: &Request| format!("{} {} {} {}", it.verb, it.resource, it.name, it.code);
    all.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Waits for the end of a life that is told from its beginning on, sees that nothing is written after it,
/// and counts.
async fn costs_at_most(bound: usize, world: &World, story: &mut Story) -> Result<()> {
    let cleaned_up = |moment: &Moment| {
        let status = moment.status();
        status.is_some_and(|status| history(status).contains(&"CleanedUp"))
    };
    let over = |all: &[Moment]| all.iter().any(cleaned_up);
    let told = story.until("the box to be cleaned up", over).await?;
    story
        .never("something was written after the end", A_WHILE, |all| {
            all.len() > told.len()
        })
        .await?;
    let bound = bound + if is_slow(&told) { OUTPUT } else { 0 };
    if let Some(all) = writes(world)? {
        let count = all.len();
        ensure!(
            (LEAST..=bound).contains(&count),
            "{count} writes instead of {bound}:\n{}",
            shown(&all)
        );
    }
    Ok(())
}

/// Whether its start took so long that it was worth a write, as it may on any machine.
fn is_slow(told: &[Moment]) -> bool {
    let materializing = Some(State::Materializing.as_str());
    let mut all = told.iter().filter_map(Moment::status);
    all.any(|status| status.state.as_deref() == materializing)
}

#[tokio::test]
async fn a_task_box_costs_at_most_8_writes_where_the_audit_log_is_at_hand() {
    e2e_steady(async |world| {
        let mut story = world.story().await?;
        a_box("task").shell("sleep 1; exit 3").create(world).await?;
        costs_at_most(A_LIFE, world, &mut story).await
    })
    .await;
}

#[tokio::test]
async fn a_longer_life_costs_no_more_writes_where_the_audit_log_is_at_hand() {
    e2e_steady(async |world| {
        let mut story = world.story().await?;
        a_box("longer")
            .shell("sleep 8; exit 3")
            .create(world)
            .await?;
        costs_at_most(A_LIFE, world, &mut story).await
    })
    .await;
}

#[tokio::test]
async fn a_stop_adds_at_most_2_writes_where_the_audit_log_is_at_hand() {
    e2e_steady(async |world| {
        let mut story = world.story().await?;
        let it = a_box("stopped").shell(UNTIL_TOLD).create(world).await?;
        it.says("ready").await?;
        it.is(State::Running).await?;
        it.stop().await?;
        costs_at_most(A_LIFE + A_STOP, world, &mut story).await
    })
    .await;
}

/// What is stopped after the command's end is stopped as a box is, but for the record of it.
#[tokio::test]
async fn a_sidecar_that_has_to_be_stopped_costs_no_more_than_a_stop() {
    e2e_steady(async |world| {
        let mut story = world.story().await?;
        let side = json!({"name": "side", "image": "busybox", "command": ["sleep", "1000"]});
        a_box("sidecar")
            .shell("sleep 1; exit 6")
            .termination_grace_period_seconds(1)
            .pod_template(&json!({"containers": [side]}))
            .create(world)
            .await?;
        costs_at_most(A_LIFE + A_STOP, world, &mut story).await
    })
    .await;
}

#[tokio::test]
async fn a_box_whose_image_comes_slowly_costs_one_more_for_its_output_where_the_audit_log_is_at_hand()
 {
    e2e_steady(async |world| {
        let mut story = world.story().await?;
        let registry = SlowRegistry::silent().await?;
        let it = a_box("slow")
            .image(registry.image())
            .shell("sleep 3; exit 3")
            .create(world)
            .await?;
        it.is(State::Materializing).await?;
        registry.open();
        costs_at_most(A_LIFE, world, &mut story).await
    })
    .await;
}

/// The kubelet tells of the pull that it gave up before it stops the pod.
#[tokio::test]
async fn a_start_deadline_during_a_pull_costs_no_more_than_a_stop() {
    e2e_steady(async |world| {
        let mut story = world.story().await?;
        let registry = SlowRegistry::silent().await?;
        a_box("too-slow")
            .image(registry.image())
            .runs(["true"])
            .start_deadline_seconds(4)
            .create(world)
            .await?;
        costs_at_most(A_LIFE + A_STOP, world, &mut story).await
    })
    .await;
}

#[tokio::test]
async fn a_box_that_runs_or_has_ended_is_not_written_to() {
    e2e_steady(async |world| {
        let running = a_box("running").shell(UNTIL_TOLD).create(world).await?;
        let ended = a_box("ended").runs(["true"]).create(world).await?;
        ended.is_cleaned_up().await?;
        running.is(State::Running).await?;
        let mut story = world.story().await?;
        let written = |all: &[Moment]| all.iter().any(|moment| moment.a_box().is_some());
        story
            .never("a box was written to", Duration::from_secs(15), written)
            .await
    })
    .await;
}

/// The kubelet's words about a failing pull change back and forth; each change may be worth a write,
/// and no more than that.
#[tokio::test]
async fn a_box_whose_image_does_not_come_is_not_written_to_all_the_time() {
    e2e_steady(async |world| {
        let it = a_box("waiting")
            .image("127.0.0.1:1/none:1")
            .runs(["true"])
            .create(world)
            .await?;
        it.is(State::Materializing).await?;
        let mut story = world.story().await?;
        let many = |all: &[Moment]| all.iter().filter(|it| it.a_box().is_some()).count() > 6;
        story
            .never(
                "the box was written to again and again",
                Duration::from_secs(25),
                many,
            )
            .await?;
        it.change(json!({"stopped": true})).await?;
        it.is_cleaned_up().await?;
        Ok(())
    })
    .await;
}
