//! What kstatus reads in a Box, in every state and in every version that was ever stored.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use boxes_crds::{BoxObject, BoxStatus};
use boxes_tests::harness::{
    Kstatus, LiveBox, Moment, Reason, State, World, a_box, e2e, e2e_steady, kstatus, tell,
};
use serde_json::json;

use crate::help::{UNTIL_TOLD, has_ended};

/// Waits until a Box has ended so, and judges it.
async fn judged(it: &LiveBox, reason: Reason) -> Result<Kstatus> {
    let object = it.wait_for("the box to end", has_ended).await?;
    let is = object
        .status
        .as_ref()
        .and_then(|status| status.reason.as_deref());
    ensure!(is == Some(reason.as_str()), "it ended as {is:?}");
    Ok(kstatus(&object))
}

async fn judged_in(it: &LiveBox, state: State) -> Result<Kstatus> {
    it.is(state).await?;
    Ok(kstatus(&it.get().await?))
}

#[tokio::test]
async fn a_box_on_its_way_is_in_progress() {
    e2e(async |world| {
        let nowhere = a_box("nowhere").runs(["true"]);
        let nowhere = nowhere.node_selector(json!({"no": "such-node"}));
        let nowhere = nowhere.create(world).await?;
        let pulling = a_box("pulling").image("127.0.0.1:1/none:1");
        let pulling = pulling.create(world).await?;
        let held = a_box("held").runs(["true"]).stopped(true);
        let held = held.create(world).await?;
        let refused = a_box("refused").service_account_name("nobody");
        let refused = refused.create(world).await?;
        for (it, state) in [
            (&nowhere, State::Pending),
            (&pulling, State::Materializing),
            (&held, State::Pending),
            (&refused, State::Pending),
        ] {
            let read = judged_in(it, state).await?;
            ensure!(read == Kstatus::InProgress, "{}: {read:?}", it.name());
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_running_box_is_current_and_in_progress_while_it_stops_and_then_current_again() {
    e2e(async |world| {
        let slowly = "trap 'sleep 4; exit 1' TERM; echo ready; sleep 1000 & wait";
        let it = a_box("stopping").shell(slowly).create(world).await?;
        it.says("ready").await?;
        assert_eq!(judged_in(&it, State::Running).await?, Kstatus::Current);
        let object = it.stop_and_see().await?;
        assert_eq!(kstatus(&object), Kstatus::InProgress);
        assert_eq!(judged(&it, Reason::Stopped).await?, Kstatus::Current);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_box_that_is_being_deleted_is_terminating() {
    e2e(async |world| {
        let slowly = "trap 'sleep 4; exit 1' TERM; echo ready; sleep 1000 & wait";
        let it = a_box("going").shell(slowly).create(world).await?;
        it.says("ready").await?;
        it.delete().await?;
        assert_eq!(kstatus(&it.get().await?), Kstatus::Terminating);
        it.is_gone().await
    })
    .await;
}

#[tokio::test]
async fn only_a_return_with_0_and_a_requested_stop_are_no_failure() {
    e2e_steady(async |world| {
        let succeeds = a_box("succeeds").runs(["true"]).create(world).await?;
        let fails = a_box("fails").shell("exit 3").create(world).await?;
        let overdue = a_box("overdue").runs(["sleep", "1000"]);
        let overdue = overdue
            .active_deadline_seconds(2)
            .termination_grace_period_seconds(1)
            .create(world)
            .await?;
        let hungry = a_box("hungry")
            .runs(["dd", "if=/dev/zero", "of=/dev/null", "bs=200M", "count=1"])
            .memory_limit("32Mi")
            .create(world)
            .await?;
        let unknown = a_box("unknown").runs(["nosuch"]).create(world).await?;
        let drained = a_box("drained").shell(UNTIL_TOLD).create(world).await?;
        let deleted = a_box("deleted").shell(UNTIL_TOLD).create(world).await?;
        drained.says("ready").await?;
        drained
            .evict_pod(&drained.has_a_pod("the pod", |_| true).await?)
            .await?;
        deleted.says("ready").await?;
        deleted
            .delete_pod(&deleted.has_a_pod("the pod", |_| true).await?)
            .await?;
        for (it, reason, expected) in [
            (&succeeds, Reason::Exit, Kstatus::Current),
            (&fails, Reason::Exit, Kstatus::Failed),
            (&overdue, Reason::Timeout, Kstatus::Failed),
            (&hungry, Reason::OOM, Kstatus::Failed),
            (&unknown, Reason::StartFailed, Kstatus::Failed),
            (&drained, Reason::Evicted, Kstatus::Failed),
            (&deleted, Reason::PodDeleted, Kstatus::Failed),
        ] {
            let read = judged(it, reason).await?;
            ensure!(read == expected, "{}: {read:?}", it.name());
        }
        Ok(())
    })
    .await;
}

/// What a version of a Box must read as, by the contract.
fn expected(object: &BoxObject, status: &BoxStatus) -> Kstatus {
    if object.metadata.deletion_timestamp.is_some() {
        return Kstatus::Terminating;
    }
    let behind = status.observed_generation != object.metadata.generation;
    let state = status.state.as_deref().unwrap_or_default();
    let (reason, code) = (status.reason.as_deref(), status.exit_code);
    match reason {
        _ if behind => Kstatus::InProgress,
        None if status.stop.is_some() || state != "Running" => Kstatus::InProgress,
        None | Some("Stopped") => Kstatus::Current,
        Some("Exit") if code == Some(0) => Kstatus::Current,
        Some(_) => Kstatus::Failed,
    }
}

async fn some_lives(world: &World) -> Result<usize> {
    let ends = a_box("ends").shell("sleep 1; exit 3").create(world).await?;
    let stops = a_box("stops").shell(UNTIL_TOLD).create(world).await?;
    let goes = a_box("goes").shell(UNTIL_TOLD).create(world).await?;
    let waits = a_box("waits").runs(["true"]).service_account_name("nobody");
    let waits = waits.create(world).await?;
    waits.is(State::Pending).await?;
    waits.stop().await?;
    stops.says("ready").await?;
    stops.stop().await?;
    goes.says("ready").await?;
    goes.delete().await?;
    for it in [&ends, &stops, &waits] {
        it.is_cleaned_up().await?;
    }
    ends.change(json!({"ttlSecondsAfterFinished": 3600}))
        .await?;
    let observed = |object: &BoxObject| {
        let status = object.status.as_ref();
        status.and_then(|status| status.observed_generation) == Some(2)
    };
    ends.wait_for("the change to be observed", observed).await?;
    goes.is_gone().await?;
    Ok(4)
}

#[tokio::test]
async fn every_version_that_was_ever_stored_reads_as_it_should() {
    e2e(async |world| {
        let mut story = world.story().await?;
        some_lives(world).await?;
        let gone = |all: &[Moment]| all.iter().any(|it| it.gone && it.a_box().is_some());
        let told = story.until("the last word", gone).await?;
        for moment in told.iter().filter(|moment| moment.status().is_some()) {
            let object = moment.a_box().context("a status of no box")?;
            let status = object.status.as_ref().context("no status")?;
            let (is, should) = (kstatus(object), expected(object, status));
            ensure!(is == should, "{}: {is:?}, not {should:?}", moment.line());
        }
        Ok(())
    })
    .await;
}

/// The transition times of a Box's conditions, version by version.
fn transitions_are_kept(versions: &[&BoxStatus]) -> Result<usize> {
    let mut moved = 0;
    for pair in versions.windows(2) {
        for next in &pair[1].conditions {
            let before = pair[0].conditions.iter().find(|it| it.type_ == next.type_);
            let Some(before) = before else { continue };
            let (old, new) = (&before.last_transition_time.0, &next.last_transition_time.0);
            if before.status == next.status {
                ensure!(old == new, "moved without a change: {before:?} {next:?}");
            } else {
                ensure!(new >= old, "went back: {before:?} {next:?}");
                moved += 1;
            }
        }
    }
    Ok(moved)
}

#[tokio::test]
async fn a_transition_time_moves_only_with_the_status_of_its_condition() {
    e2e_steady(async |world| {
        let mut story = world.story().await?;
        let it = a_box("timed")
            .shell("sleep 5; exit 3")
            .service_account_name("comes-later")
            .create(world)
            .await?;
        it.has_condition("Accepted", "False").await?;
        let kubectl = world.kubectl()?;
        kubectl
            .run(["create", "serviceaccount", "comes-later"])
            .await?
            .ok()?;
        it.is_cleaned_up().await?;
        it.change(json!({"ttlSecondsAfterFinished": 3600})).await?;
        let last = |all: &[Moment]| {
            let observed = |it: &Moment| it.status().and_then(|status| status.observed_generation);
            all.iter().any(|moment| observed(moment) == Some(2))
        };
        let told = story.until("the change to be observed", last).await?;
        let versions: Vec<_> = told.iter().filter_map(Moment::status).collect();
        let moved = transitions_are_kept(&versions).with_context(|| tell(&told))?;
        // Accepted, Ended, CleanedUp, Reconciling and Stalled each changed at least once.
        ensure!(moved >= 5, "only {moved} changes: {}", tell(&told));
        let ended = it.has_condition("Ended", "True").await?;
        let end = it
            .status()
            .await?
            .run
            .and_then(|run| run.ended_at)
            .context("no end")?;
        let lag = ended.last_transition_time.0.duration_since(end.0);
        let lag = Duration::try_from(lag).context("recorded before the end")?;
        ensure!(
            lag < Duration::from_secs(30),
            "recorded {lag:?} after the end"
        );
        Ok(())
    })
    .await;
}
