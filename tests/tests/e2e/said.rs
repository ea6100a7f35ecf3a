//! Kubernetes Events, and the deletion of what ended long enough ago.

use anyhow::{Context, Result, ensure};
use boxes_tests::harness::{
    LiveBox, Moment, Reason, State, World, a_box, e2e, e2e_steady, first, tell,
};
use jiff::SignedDuration;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::ListParams;
use serde_json::json;

use crate::help::UNTIL_TOLD;

/// Waits for an Event about a Box.
async fn is_said(world: &World, it: &LiveBox, reason: &str) -> Result<Event> {
    let events: Api<Event> = world.api();
    let what = format!("the Event {reason}");
    first(&events, "", &what, |event| {
        (is_about(event, it) && event.reason.as_deref() == Some(reason)).then(|| event.clone())
    })
    .await
}

fn is_about(event: &Event, it: &LiveBox) -> bool {
    let regarding = event.regarding.as_ref();
    regarding.is_some_and(|regarding| regarding.uid.as_deref() == Some(it.uid()))
}

/// The types and reasons of all Events about a Box.
async fn said(world: &World, it: &LiveBox) -> Result<Vec<(String, String)>> {
    let events: Api<Event> = world.api();
    let list = events.list(&ListParams::default()).await?;
    let mine = list.items.into_iter().filter(|event| is_about(event, it));
    let pair = |event: Event| {
        let (type_, reason) = (event.type_, event.reason);
        (type_.unwrap_or_default(), reason.unwrap_or_default())
    };
    let mut all: Vec<_> = mine.map(pair).collect();
    all.sort();
    Ok(all)
}

fn count(all: &[(String, String)], type_: &str, reason: &str) -> usize {
    all.iter()
        .filter(|it| it.0 == type_ && it.1 == reason)
        .count()
}

#[tokio::test]
async fn a_stop_and_what_came_of_it_are_said_once_each_and_are_no_warning() {
    e2e_steady(async |world| {
        let it = a_box("stopped").shell(UNTIL_TOLD).create(world).await?;
        it.says("ready").await?;
        it.is(State::Running).await?;
        it.stop().await?;
        it.is_cleaned_up().await?;
        for reason in ["Started", "StopRequested"] {
            is_said(world, &it, reason).await?;
        }
        let last = is_said(world, &it, "Exited").await?;
        let note = last.note.unwrap_or_default();
        assert!(note.contains("Stopped/Stopped"), "{note}");
        let all = said(world, &it).await?;
        for reason in ["Started", "StopRequested", "Exited"] {
            assert_eq!(count(&all, "Normal", reason), 1, "{reason}: {all:?}");
        }
        assert!(all.iter().all(|it| it.0 == "Normal"), "{all:?}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_end_by_lack_of_memory_is_a_warning() {
    e2e_steady(async |world| {
        let it = a_box("hungry")
            .runs(["dd", "if=/dev/zero", "of=/dev/null", "bs=200M", "count=1"])
            .memory_limit("32Mi")
            .create(world)
            .await?;
        it.is_cleaned_up().await?;
        is_said(world, &it, "Exited").await?;
        is_said(world, &it, "OOMKilled").await?;
        let all = said(world, &it).await?;
        for reason in ["OOMKilled", "Exited"] {
            assert_eq!(count(&all, "Warning", reason), 1, "{reason}: {all:?}");
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_refusal_is_said_once_with_the_servers_own_words() {
    e2e_steady(async |world| {
        let it = a_box("refused")
            .service_account_name("nobody")
            .create(world)
            .await?;
        let event = is_said(world, &it, "PodForbidden").await?;
        assert_eq!(event.type_.as_deref(), Some("Warning"));
        let note = event.note.unwrap_or_default();
        assert!(note.contains("nobody"), "{note}");
        it.stop().await?;
        is_said(world, &it, "Exited").await?;
        let all = said(world, &it).await?;
        assert_eq!(count(&all, "Warning", "PodForbidden"), 1, "{all:?}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_slow_start_is_said_when_a_node_is_found_and_when_the_command_runs() {
    e2e_steady(async |world| {
        let wait = json!({"name": "wait", "image": "busybox", "command": ["sleep", "5"]});
        let it = a_box("slow")
            .runs(["true"])
            .pod_template(&json!({"initContainers": [wait]}))
            .create(world)
            .await?;
        it.is(State::Materializing).await?;
        it.is_cleaned_up().await?;
        is_said(world, &it, "Scheduled").await?;
        is_said(world, &it, "Exited").await?;
        let all = said(world, &it).await?;
        assert_eq!(count(&all, "Normal", "Scheduled"), 1, "{all:?}");
        assert_eq!(count(&all, "Normal", "Exited"), 1, "{all:?}");
        Ok(())
    })
    .await;
}

/// When a Box was deleted, and when it had ended.
fn deleted_after(told: &[Moment]) -> Result<SignedDuration> {
    let mut boxes = told.iter().filter_map(Moment::a_box);
    let deleted = boxes.find_map(|object| object.metadata.deletion_timestamp.as_ref());
    let mut statuses = told.iter().rev().filter_map(Moment::status);
    let ended = statuses.find_map(|status| status.run.as_ref()?.ended_at.as_ref());
    let (deleted, ended) = deleted.zip(ended).context("no deletion or no end")?;
    Ok(deleted.0.duration_since(ended.0))
}

#[tokio::test]
async fn a_ttl_counts_from_the_end() {
    e2e(async |world| {
        let mut story = world.story().await?;
        let it = a_box("brief")
            .shell("sleep 3")
            .ttl_seconds_after_finished(4)
            .create(world)
            .await?;
        it.ends_as(State::Exited, Reason::Exit).with_code(0).await?;
        it.is_gone().await?;
        let gone = |all: &[Moment]| all.iter().any(|it| it.gone && it.a_box().is_some());
        let told = story.until("the box to be gone", gone).await?;
        let after = deleted_after(&told)?.as_secs();
        ensure!((4..30).contains(&after), "{after} s: {}", tell(&told));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_ttl_of_0_deletes_the_box_once_it_is_recorded_and_cleaned_up() {
    e2e(async |world| {
        let mut story = world.story().await?;
        let it = a_box("at-once")
            .shell("exit 3")
            .ttl_seconds_after_finished(0)
            .create(world)
            .await?;
        it.is_gone().await?;
        let gone = |all: &[Moment]| all.iter().any(|it| it.gone && it.a_box().is_some());
        let told = story.until("the box to be gone", gone).await?;
        let last = told
            .iter()
            .rev()
            .find_map(Moment::status)
            .context("no status")?;
        assert_eq!(last.reason.as_deref(), Some("Exit"), "{}", tell(&told));
        assert_eq!(last.exit_code, Some(3), "{}", tell(&told));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_ttl_that_is_set_after_the_end_is_in_force_at_once() {
    e2e(async |world| {
        let it = a_box("later").runs(["true"]).create(world).await?;
        it.is_cleaned_up().await?;
        it.change(json!({"ttlSecondsAfterFinished": 0})).await?;
        it.is_gone().await
    })
    .await;
}
