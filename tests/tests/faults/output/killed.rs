//! A collector that is killed again and again.

use std::time::Duration;

use anyhow::Result;
use boxes_tests::harness::{HostCollector, PlayedLog, World, e2e};
use tokio::time::sleep;

use super::archived::Address;
use super::machine::Machine;

/// How often it is killed while the box writes.
const ROUNDS: u64 = 24;

/// So many lines are written in a round. The log is under rotation in the middle third.
const LINES: u64 = 60;

const BETWEEN_LINES: Duration = Duration::from_millis(5);

/// After so many rounds it is let come up: the kubelet removes what is not read for four.
const UP_AFTER: u64 = 3;

async fn writes(log: &mut PlayedLog, round: u64) -> Result<()> {
    for line in 0..LINES {
        match line {
            20 => log.begin_rotation()?,
            40 => log.finish_rotation()?,
            _ => {}
        }
        log.out(format!("round {round}, line {line}\n"))?;
        if line % 7 == 0 {
            log.err(format!("round {round}, error {line}\n"))?;
        }
        sleep(BETWEEN_LINES).await;
    }
    Ok(())
}

/// At another moment of each round.
async fn is_killed(collector: &mut HostCollector, round: u64) -> Result<()> {
    let moment = Duration::from_millis(round * 37 % (LINES * 5));
    sleep(moment).await;
    collector.kill().await?;
    collector.start()
}

async fn again_and_again(world: &World) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let machine = Machine::new(world, Address::folder(folder.path())).await?;
    let mut collector = machine.collector()?;
    let mut running = machine.runs("survivor").await?;
    for round in 0..ROUNDS {
        let (written, killed) = tokio::join!(
            writes(&mut running.log, round),
            is_killed(&mut collector, round)
        );
        written?;
        killed?;
        if round % UP_AFTER == 0 {
            running.is_stored().await?;
        }
    }
    running.log.out("no newline at the end")?;
    running.ends().await?;
    for round in [3, 6, 11, 20] {
        is_killed(&mut collector, round).await?;
    }
    running.is_saved_whole().await?;
    collector.stop().await
}

#[tokio::test]
async fn a_collector_killed_in_the_midst_of_writing_and_rotating_saves_everything_exactly_once() {
    e2e(again_and_again).await;
}
