//! An archive that takes nothing for a while, because it is full or read-only.

use anyhow::{Result, ensure};
use boxes_tests::harness::{HostCollector, PATIENCE, World, e2e};

use super::machine::{Machine, Running};
use super::mounted::Mounted;

/// Lines that do not become much shorter by compression.
pub(crate) fn noise(lines: u32) -> String {
    let mut seed: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut next = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let line = |_| format!("{:016x}{:016x}{:016x}\n", next(), next(), next());
    (0..lines).map(line).collect()
}

/// Waits until the collector says why the archive takes nothing.
async fn fails(collector: &HostCollector, class: &str) -> Result<()> {
    let word = format!("\"class\":\"{class}\"");
    collector.says(PATIENCE, |line| line.contains(&word)).await
}

/// Goes on writing, over more rotations than the kubelet keeps files, and ends; the pod is kept.
async fn goes_on_and_ends(running: &mut Running, collector: &HostCollector) -> Result<()> {
    for turn in 0..6 {
        running.log.err(format!("turn {turn}\n"))?;
        running.log.rotate()?;
        running.log.out(noise(100))?;
        // The kubelet lets more time pass.
        let current = running.log.folder().join("0.log");
        collector.opens(&current).await?;
    }
    running.log.out("no newline at the end")?;
    running.ends().await?;
    let waits = running.waits_for_its_output().await?;
    ensure!(waits.contains(running.node.name()), "{waits}");
    Ok(())
}

async fn begins(machine: &Machine<'_>) -> Result<Running> {
    let mut running = machine.runs("patient").await?;
    running.log.out("before\n")?;
    running.is_stored().await?;
    Ok(running)
}

async fn full(world: &World) -> Result<()> {
    let Some(disk) = Mounted::new("256k")? else {
        return Ok(());
    };
    let machine = Machine::new(world, disk.address()).await?;
    let collector = machine.collector()?;
    let mut running = begins(&machine).await?;
    running.log.out(noise(20_000))?;
    fails(&collector, "full").await?;
    goes_on_and_ends(&mut running, &collector).await?;
    disk.resize("64m")?;
    running.is_saved_whole().await?;
    collector.stop().await
}

#[tokio::test]
async fn what_a_full_archive_does_not_take_is_kept_until_it_has_room_where_mounting_is_permitted() {
    e2e(full).await;
}

async fn read_only(world: &World) -> Result<()> {
    let Some(disk) = Mounted::new("64m")? else {
        return Ok(());
    };
    let machine = Machine::new(world, disk.address()).await?;
    let collector = machine.collector()?;
    let mut running = begins(&machine).await?;
    disk.make_read_only().await?;
    running.log.out(noise(1000))?;
    fails(&collector, "refused").await?;
    goes_on_and_ends(&mut running, &collector).await?;
    disk.make_writable()?;
    running.is_saved_whole().await?;
    collector.stop().await
}

#[tokio::test]
async fn what_a_read_only_archive_does_not_take_is_kept_until_it_does_where_mounting_is_permitted()
{
    e2e(read_only).await;
}
