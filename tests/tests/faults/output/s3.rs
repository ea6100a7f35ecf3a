//! An archive behind a network: a whole life over S3, and one that is unreachable or slow.

use std::time::Duration;

use anyhow::{Result, ensure};
use boxes_tests::harness::{World, e2e};
use tokio::time::interval;

use super::full::noise;
use super::gate::Way;
use super::machine::Machine;
use super::s3_server::S3;

/// The kubelet looks at the size of a log half as often.
const PACE: Duration = Duration::from_secs(5);

/// So often a log is rotated while the archive is away: more than a minute, and more files than the
/// kubelet keeps.
const ROTATIONS: usize = 13;

/// After so many, connections are refused that were silent before.
const SILENT: usize = 7;

async fn whole_life(world: &World) -> Result<()> {
    let s3 = S3::start().await?;
    let machine = Machine::new(world, s3.address()).await?;
    let collector = machine.collector()?;
    let mut running = machine.runs("remote").await?;
    let every_byte: Vec<u8> = (0..=u8::MAX).collect();
    running.log.out(every_byte.repeat(100))?;
    running.log.err("\n\nan error\n")?;
    running
        .log
        .out([vec![b'x'; 1 << 20], b"\n".to_vec()].concat())?;
    running.log.rotate()?;
    running.log.err(b"\xff\xfe")?;
    running.log.out(noise(10_000))?;
    running.log.rotate()?;
    running.log.out("no newline at the end")?;
    running.ends().await?;
    running.is_saved_whole().await?;
    collector.stop().await
}

#[tokio::test]
async fn a_whole_life_over_s3_byte_for_byte() {
    e2e(whole_life).await;
}

async fn unreachable(world: &World) -> Result<()> {
    let s3 = S3::start().await?;
    let machine = Machine::new(world, s3.address()).await?;
    let machine = machine.read_at(s3.behind_the_gate());
    let collector = machine.collector()?;
    let mut running = machine.runs("cut-off").await?;
    running.log.out("before\n")?;
    running.is_stored().await?;
    let stored = running.log.written().clone();
    s3.is(Way::Silent);
    let mut pace = interval(PACE);
    for turn in 0..ROTATIONS {
        pace.tick().await;
        if turn == SILENT {
            s3.is(Way::Closed);
        }
        running.log.err(format!("turn {turn}\n"))?;
        running.log.out(noise(2000))?;
        running.log.rotate()?;
    }
    running.log.out("after\n")?;
    running.ends().await?;
    let waits = running.waits_for_its_output().await?;
    ensure!(waits.contains(running.node.name()), "{waits}");
    running.archived().await?.holds(&stored)?;
    s3.is(Way::Open);
    running.is_saved_whole().await?;
    collector.stop().await
}

#[tokio::test]
async fn an_archive_that_is_unreachable_for_a_minute_loses_nothing_of_a_box_that_goes_on_writing() {
    e2e(unreachable).await;
}

async fn slow(world: &World) -> Result<()> {
    let s3 = S3::start().await?;
    let machine = Machine::new(world, s3.address()).await?;
    let machine = machine.read_at(s3.behind_the_gate());
    s3.is(Way::Late(Duration::from_millis(500)));
    let collector = machine.collector()?;
    let mut running = machine.runs("far").await?;
    for turn in 0..5 {
        running.log.out(noise(500))?;
        running.log.err(format!("turn {turn}\n"))?;
        running.is_stored().await?;
        running.log.rotate()?;
    }
    running.ends().await?;
    running.is_saved_whole().await?;
    collector.stop().await
}

#[tokio::test]
async fn an_archive_whose_answers_come_half_a_second_late_saves_all() {
    e2e(slow).await;
}
