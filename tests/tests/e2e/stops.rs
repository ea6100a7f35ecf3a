//! `spec.stopped`.

use std::time::Duration;

use boxes_tests::harness::{Moment, Reason, State, a_box, e2e, e2e_alone};
use kube::ResourceExt;
use serde_json::json;

use crate::help::{UNTIL_TOLD, ended_in_a_pause, history};

#[tokio::test]
async fn a_stop_that_the_command_handles_has_its_code() {
    e2e(async |world| {
        let it = a_box("stop").shell(UNTIL_TOLD).create(world).await?;
        it.says("ready").await?;
        it.stop().await?;
        let status = it
            .ends_as(State::Stopped, Reason::Stopped)
            .with_code(0)
            .await?;
        assert_eq!(
            status.stop.as_ref().map(|stop| stop.by.as_str()),
            Some("Spec")
        );
        let status = it.is_cleaned_up().await?;
        let seen: Vec<_> = history(&status).into_iter().skip(2).collect();
        let ends = ["Exited", "OutputSaved", "CleanedUp"];
        assert_eq!(seen[..2], ["Started", "StopRequested"]);
        assert_eq!(seen[2..], ends);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_stop_that_the_command_ignores_ends_with_the_signal() {
    e2e(async |world| {
        let it = a_box("deaf")
            .shell("trap '' TERM; echo ready; sleep 1000")
            .termination_grace_period_seconds(1)
            .create(world)
            .await?;
        it.says("ready").await?;
        it.stop().await?;
        it.ends_as(State::Stopped, Reason::Stopped)
            .with_signal(9)
            .await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_stop_cannot_be_taken_back() {
    e2e(async |world| {
        let it = a_box("irrevocable")
            .shell("trap 'sleep 3; exit 0' TERM; echo ready; sleep 1000 & wait")
            .create(world)
            .await?;
        it.says("ready").await?;
        it.stop_and_see().await?;
        it.change(json!({"stopped": false})).await?;
        it.ends_as(State::Stopped, Reason::Stopped)
            .with_code(0)
            .await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_stop_before_the_command_started_has_neither_code_nor_signal() {
    e2e(async |world| {
        let it = a_box("too-early")
            .runs(["true"])
            .node_selector(json!({"no": "such-node"}))
            .create(world)
            .await?;
        it.has_a_pod("the pod", |_| true).await?;
        it.stop().await?;
        it.ends_as(State::Stopped, Reason::Stopped).await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_stop_that_comes_after_the_end_changes_nothing() {
    e2e_alone(async |world| {
        let it = a_box("late-stop").when_told("exit 4").create(world).await?;
        ended_in_a_pause(world, &it).await?;
        it.stop().await?;
        world.controller().resume().await?;
        let status = it.ends_as(State::Exited, Reason::Exit).with_code(4).await?;
        assert!(status.stop.is_none(), "{:?}", status.stop);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_box_created_stopped_has_no_pod_until_it_is_set_free() {
    e2e(async |world| {
        let mut story = world.story().await?;
        let it = a_box("created-stopped")
            .shell("exit 3")
            .stopped(true)
            .create(world)
            .await?;
        let status = it.is(State::Pending).await?;
        assert!(status.run.is_none(), "{:?}", status.run);
        let a_pod = |all: &[Moment]| all.iter().any(|moment| moment.pod().is_some());
        story
            .never("a pod was made", Duration::from_secs(3), a_pod)
            .await?;
        assert_eq!(it.status().await?.state.as_deref(), Some("Pending"));
        it.change(json!({"stopped": false})).await?;
        it.ends_as(State::Exited, Reason::Exit).with_code(3).await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_forced_stop_does_not_wait_for_the_grace_period() {
    e2e(async |world| {
        let it = a_box("forced")
            .shell("trap '' TERM; echo ready; sleep 1000")
            .termination_grace_period_seconds(600)
            .create(world)
            .await?;
        it.says("ready").await?;
        let pod = it.has_a_pod("the pod", |_| true).await?;
        it.annotate(
            boxes_crds::FORCE_STOP_ANNOTATION,
            &pod.uid().unwrap_or_default(),
        )
        .await?;
        it.ends_as(State::Stopped, Reason::Stopped)
            .with_signal(9)
            .await?;
        it.has_no_pod_left(&pod).await
    })
    .await;
}

#[tokio::test]
async fn a_forced_stop_that_names_another_pod_does_nothing() {
    e2e(async |world| {
        let it = a_box("not-forced").shell(UNTIL_TOLD).create(world).await?;
        it.says("ready").await?;
        it.is(State::Running).await?;
        let mut story = world.story().await?;
        let other = "00000000-0000-0000-0000-000000000000";
        it.annotate(boxes_crds::FORCE_STOP_ANNOTATION, other)
            .await?;
        let acted = |all: &[Moment]| {
            let stop = |it: &Moment| it.status().is_some_and(|status| status.stop.is_some());
            all.iter()
                .any(|moment| moment.pod().is_some() || stop(moment))
        };
        story
            .never("the pod was touched", Duration::from_secs(3), acted)
            .await
    })
    .await;
}
