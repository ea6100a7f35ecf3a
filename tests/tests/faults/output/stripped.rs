//! The output's finalizer, taken off the pod by somebody.

use anyhow::Result;
use boxes_crds::POD_FINALIZER;
use boxes_tests::harness::{World, e2e};

use super::archived::Address;
use super::full::noise;
use super::machine::Machine;

const BECAUSE: &str = "was removed by someone";

async fn while_it_runs(world: &World) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let machine = Machine::new(world, Address::folder(folder.path())).await?;
    let collector = machine.collector()?;
    let mut running = machine.runs("stripped").await?;
    running.log.out(noise(10))?;
    running.is_stored().await?;
    let stored = running.log.written().clone();
    running
        .it
        .set_pod_finalizers(&running.pod, &[POD_FINALIZER])
        .await?;
    running.ends().await?;
    running.is_unavailable(BECAUSE).await?;
    running.archived().await?.holds(&stored)?;
    collector.stop().await
}

#[tokio::test]
async fn a_finalizer_stripped_while_the_box_runs_leaves_what_was_stored_and_the_pod_goes() {
    e2e(while_it_runs).await;
}

async fn while_it_is_waited_for(world: &World) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let machine = Machine::new(world, Address::folder(folder.path())).await?;
    let mut running = machine.runs("forced").await?;
    running.log.out(noise(10))?;
    running.ends().await?;
    running.waits_for_its_output().await?;
    running
        .it
        .set_pod_finalizers(&running.pod, &[POD_FINALIZER])
        .await?;
    running.is_unavailable(BECAUSE).await
}

#[tokio::test]
async fn a_finalizer_stripped_while_the_output_is_waited_for_is_recorded_and_the_pod_goes() {
    e2e(while_it_is_waited_for).await;
}
