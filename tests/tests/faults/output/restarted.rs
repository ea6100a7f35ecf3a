//! A node that stops in the middle of a line, and comes back.

use anyhow::{Result, ensure};
use boxes_output::archive::GapReason;
use boxes_tests::harness::{World, e2e};

use super::archived::Address;
use super::full::noise;
use super::machine::Machine;

async fn in_the_middle_of_a_line(world: &World) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let machine = Machine::new(world, Address::folder(folder.path())).await?;
    let mut collector = machine.collector()?;
    let mut running = machine.runs("restarted").await?;
    running.log.out(noise(10))?;
    running.is_stored().await?;
    collector.kill().await?;
    running.log.err(noise(100))?;
    running.log.rotate()?;
    running.log.out(noise(100))?;
    running.log.tear("half of a li")?;
    running.ends_unseen().await?;
    collector.start()?;
    let (said, archived) = running.is_saved_in_part().await?;
    archived.holds(running.log.written())?;
    // Nobody saw the end, so that nobody knows whether the log had gone on.
    archived.lacks(&[GapReason::Torn, GapReason::EndUnseen])?;
    ensure!(said.message.contains("cut off"), "{said:?}");
    let status = running.it.status().await?;
    ensure!(
        (status.exit_code, status.signal) == (None, None),
        "{status:?}"
    );
    collector.stop().await
}

#[tokio::test]
async fn what_was_logged_before_a_node_restarted_is_there_and_the_torn_line_is_told() {
    e2e(in_the_middle_of_a_line).await;
}

/// A container that ran has a log, also if its end was not seen.
async fn without_its_log(world: &World) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let machine = Machine::new(world, Address::folder(folder.path())).await?;
    let mut running = machine.runs("emptied").await?;
    running.log.out(noise(10))?;
    running.log.remove()?;
    running.ends_unseen().await?;
    let collector = machine.collector()?;
    let (_, archived) = running.is_saved_in_part().await?;
    archived.lacks(&[GapReason::Removed])?;
    collector.stop().await
}

#[tokio::test]
async fn a_node_that_comes_back_without_the_log_of_a_box_that_ran_leaves_a_gap() {
    e2e(without_its_log).await;
}

/// A kubelet or a runtime that restarts may lose sight of a container that it had just made.
async fn in_two_attempts(world: &World) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let machine = Machine::new(world, Address::folder(folder.path())).await?;
    let collector = machine.collector()?;
    let mut running = machine.runs("attempts").await?;
    running.log.out("of the first attempt\n")?;
    running.is_stored().await?;
    running.log.attempt_again()?;
    running.log.out(noise(100))?;
    running.is_stored().await?;
    running.log.rotate()?;
    running.log.err("of the second attempt\n")?;
    running.ends().await?;
    running.is_saved_whole().await?;
    collector.stop().await
}

#[tokio::test]
async fn what_a_container_logged_that_was_made_again_is_one_output() {
    e2e(in_two_attempts).await;
}
