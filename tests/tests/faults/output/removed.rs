//! Logs that are removed, before and after a collector saw them.

use anyhow::{Result, ensure};
use boxes_output::archive::GapReason;
use boxes_tests::harness::{LiveBox, World, Written, e2e, first};
use k8s_openapi::api::events::v1::Event;
use kube::Api;

use super::archived::Address;
use super::full::noise;
use super::gate::Way;
use super::machine::Machine;
use super::s3_server::S3;

/// Waits for an Event about a Box, and gives its words.
async fn is_said(world: &World, it: &LiveBox, reason: &str) -> Result<String> {
    let events: Api<Event> = world.api();
    let what = format!("the Event {reason}");
    first(&events, "", &what, |event| {
        let regarding = event.regarding.as_ref()?.uid.as_deref();
        let is = regarding == Some(it.uid()) && event.reason.as_deref() == Some(reason);
        is.then(|| event.note.clone().unwrap_or_default())
    })
    .await
}

async fn before_it_was_seen(world: &World) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let machine = Machine::new(world, Address::folder(folder.path())).await?;
    let mut running = machine.runs("unseen").await?;
    running.log.out(noise(10))?;
    running.log.remove()?;
    running.ends().await?;
    let collector = machine.collector()?;
    let (said, archived) = running.is_saved_in_part().await?;
    archived.lacks(&[GapReason::Removed])?;
    archived.holds(&Written::default())?;
    ensure!(
        said.message.contains("removed before it was read"),
        "{said:?}"
    );
    let event = is_said(world, &running.it, "OutputPartial").await?;
    ensure!(event.contains(&said.message), "{event}");
    collector.stop().await
}

#[tokio::test]
async fn a_log_removed_before_a_collector_saw_it_is_a_gap_that_is_told() {
    e2e(before_it_was_seen).await;
}

async fn while_it_is_read(world: &World) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let machine = Machine::new(world, Address::folder(folder.path())).await?;
    let collector = machine.collector()?;
    let mut running = machine.runs("read").await?;
    running.log.out(noise(10))?;
    running.is_stored().await?;
    running.log.rotate()?;
    running.log.out(noise(10))?;
    running.is_stored().await?;
    running.log.out(noise(1000))?;
    running.log.remove()?;
    // The runtime writes on to the file that it has open.
    running.log.err("on the way out\n")?;
    running.ends().await?;
    running.is_saved_whole().await?;
    collector.stop().await
}

#[tokio::test]
async fn a_log_removed_while_it_is_read_is_read_to_its_end() {
    e2e(while_it_is_read).await;
}

async fn while_the_archive_is_away(world: &World) -> Result<()> {
    let s3 = S3::start().await?;
    s3.is(Way::Silent);
    let machine = Machine::new(world, s3.address()).await?;
    let collector = machine.collector()?;
    let mut running = machine.runs("held").await?;
    running.log.out(noise(1000))?;
    collector.opens(&running.log.folder().join("0.log")).await?;
    running.log.remove()?;
    running.log.err("on the way out\n")?;
    running.ends().await?;
    running.waits_for_its_output().await?;
    s3.is(Way::Open);
    running.is_saved_whole().await?;
    collector.stop().await
}

#[tokio::test]
async fn a_log_removed_while_the_archive_is_away_was_opened_before_and_is_saved() {
    e2e(while_the_archive_is_away).await;
}
