//! The controller goes and another comes: nothing is lost and nothing is done twice.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use boxes_tests::harness::{Moment, Reason, State, World, a_box, e2e_alone, tell};
use kube::ResourceExt;

use crate::help::{A_LIFE, end_of, ended_in_a_pause, history, reported_time};

/// Runs a Box from its beginning to its end: the controller that now works has then seen everything
/// that was there when it started.
async fn a_whole_life(world: &World, name: &str) -> Result<()> {
    let it = a_box(name).runs(["true"]).create(world).await?;
    it.is_cleaned_up().await.map(drop)
}

/// How many pods a story has of a Box.
fn pods_of(told: &[Moment], uid: &str) -> usize {
    let ours = told.iter().filter_map(Moment::pod).filter(|pod| {
        pod.labels()
            .get(boxes_crds::BOX_UID_LABEL)
            .is_some_and(|label| label == uid)
    });
    ours.filter_map(ResourceExt::uid)
        .collect::<BTreeSet<_>>()
        .len()
}

#[tokio::test]
async fn a_box_that_runs_through_a_restart_is_recorded_once() {
    e2e_alone(async |world| {
        let mut story = world.story().await?;
        let it = a_box("survives").when_told("exit 3").create(world).await?;
        let before = it.is(State::Running).await?.run.context("no run")?;
        world.controller().restart().await?;
        it.tell().await?;
        it.ends_as(State::Exited, Reason::Exit).with_code(3).await?;
        let status = it.is_cleaned_up().await?;
        assert_eq!(history(&status), A_LIFE);
        let told = story
            .until("the pod to be gone", |all| all.iter().any(|it| it.gone))
            .await?;
        let end = told.iter().filter_map(Moment::pod).find_map(end_of);
        let reported = end.and_then(|end| reported_time(end, "startedAt"));
        let run = status.run.context("no run")?;
        let started = reported.or(before.started_at);
        assert_eq!((run.pod, run.started_at), (before.pod, started));
        assert_eq!(pods_of(&told, it.uid()), 1, "{}", tell(&told));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_end_that_nobody_saw_is_recorded_afterwards_with_its_own_time() {
    e2e_alone(async |world| {
        let it = a_box("unseen").when_told("exit 3").create(world).await?;
        let (_, end) = ended_in_a_pause(world, &it).await?;
        world.controller().resume().await?;
        let status = it.ends_as(State::Exited, Reason::Exit).with_code(3).await?;
        let ended = reported_time(&end, "endedAt").or(end.finished_at);
        assert_eq!(status.run.and_then(|run| run.ended_at), ended);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_finished_box_stays_finished_when_the_controller_restarts() {
    e2e_alone(async |world| {
        let mut story = world.story().await?;
        let it = a_box("finished").shell("exit 2").create(world).await?;
        it.ends_as(State::Exited, Reason::Exit).with_code(2).await?;
        let pod = it
            .get()
            .await?
            .status
            .and_then(|status| status.run)
            .context("no run")?
            .pod
            .name;
        // As a person would who sees it still there.
        let _ = world
            .pods()
            .delete(&pod, &kube::api::DeleteParams::default())
            .await;
        it.is_cleaned_up().await?;
        let before = it.get().await?;
        world.controller().restart().await?;
        a_whole_life(world, "proof").await?;
        let after = it.get().await?;
        assert_eq!(
            before.resource_version(),
            after.resource_version(),
            "{after:?}"
        );
        it.ends_as(State::Exited, Reason::Exit).with_code(2).await?;
        let told = story.until("two lives", |all| {
            all.iter().filter(|it| it.gone).count() >= 2
        });
        let told = told.await?;
        assert_eq!(pods_of(&told, it.uid()), 1, "{}", tell(&told));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_box_created_and_deleted_while_there_is_no_controller_is_handled_by_the_next() {
    e2e_alone(async |world| {
        let running = a_box("left-alone")
            .shell(crate::help::UNTIL_TOLD)
            .create(world)
            .await?;
        running.says("ready").await?;
        running.is(State::Running).await?;
        world.controller().pause().await?;
        let made = a_box("waits").shell("exit 3").create(world).await?;
        running.delete().await?;
        let pod = running.has_a_pod("the pod", |_| true).await?;
        assert!(
            end_of(&pod).is_none() && pod.metadata.deletion_timestamp.is_none(),
            "{pod:?}"
        );
        world.controller().resume().await?;
        made.ends_as(State::Exited, Reason::Exit)
            .with_code(3)
            .await?;
        running.is_gone().await?;
        running.has_no_pod_left(&pod).await
    })
    .await;
}

/// A controller that starts has much to do at once, and must not miss what comes of its first writes.
#[tokio::test]
async fn many_ends_that_wait_for_a_new_controller_are_all_recorded_and_cleaned_up() {
    e2e_alone(async |world| {
        let mut all = Vec::new();
        for number in 0..8 {
            let name = format!("waits-{number}");
            all.push(a_box(name).when_told("exit 3").create(world).await?);
        }
        for it in &all {
            it.is(State::Running).await?;
        }
        world.controller().pause().await?;
        for it in &all {
            it.tell().await?;
            it.has_a_finished_pod().await?;
        }
        let (deleted, kept) = all.split_at(4);
        for it in deleted {
            it.delete().await?;
        }
        world.controller().resume().await?;
        for it in kept {
            it.ends_as(State::Exited, Reason::Exit).with_code(3).await?;
            it.is_cleaned_up().await?;
        }
        for it in deleted {
            it.is_gone().await?;
        }
        Ok(())
    })
    .await;
}
