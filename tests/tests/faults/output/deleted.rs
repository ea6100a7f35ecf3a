//! Boxes that are deleted, alone or with their namespace, while their archive is away.

use anyhow::Result;
use boxes_tests::harness::{World, e2e, e2e_steady, gone};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::Api;
use kube::api::DeleteParams;

use super::full::noise;
use super::gate::Way;
use super::machine::{Machine, Running};
use super::s3_server::S3;

/// What a command returns that TERM ended.
const BY_TERM: i32 = 143;

/// A box that wrote more than what is stored, and whose archive is away for good.
async fn cut_off(machine: &Machine<'_>, s3: &S3) -> Result<Running> {
    let mut running = machine.runs("unwanted").await?;
    running.log.out("before\n")?;
    running.is_stored().await?;
    s3.is(Way::Closed);
    running.log.out(noise(1000))?;
    Ok(running)
}

async fn while_it_runs(world: &World) -> Result<()> {
    let s3 = S3::start().await?;
    let machine = Machine::new(world, s3.address()).await?;
    let collector = machine.collector()?;
    let running = cut_off(&machine, &s3).await?;
    running.it.delete().await?;
    let stops = |object: &boxes_crds::BoxObject| {
        let status = object.status.as_ref();
        status.is_some_and(|status| status.stop.is_some())
    };
    running.it.wait_for("the stop", stops).await?;
    running.node.ends(&running.pod, BY_TERM).await?;
    running.it.is_gone().await?;
    running.it.has_no_pod_left(&running.pod).await?;
    collector.stop().await
}

#[tokio::test]
async fn a_box_deleted_while_its_archive_is_away_goes_without_waiting() {
    e2e(while_it_runs).await;
}

async fn while_it_is_waited_for(world: &World) -> Result<()> {
    let s3 = S3::start().await?;
    let machine = Machine::new(world, s3.address()).await?;
    let collector = machine.collector()?;
    let mut running = cut_off(&machine, &s3).await?;
    running.ends().await?;
    running.waits_for_its_output().await?;
    running.it.delete().await?;
    running.it.is_gone().await?;
    running.it.has_no_pod_left(&running.pod).await?;
    collector.stop().await
}

#[tokio::test]
async fn a_box_that_waits_for_its_archive_goes_when_it_is_deleted() {
    e2e(while_it_is_waited_for).await;
}

async fn with_its_namespace(world: &World) -> Result<()> {
    let s3 = S3::start().await?;
    let machine = Machine::new(world, s3.address()).await?;
    let collector = machine.collector()?;
    let running = cut_off(&machine, &s3).await?;
    let namespaces: Api<Namespace> = Api::all(world.client());
    namespaces
        .delete(world.namespace(), &DeleteParams::default())
        .await?;
    let deleted = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
    running.it.has_a_pod("its deletion", deleted).await?;
    let pod = running.node.ends(&running.pod, BY_TERM).await?;
    running.node.deletes_for_good(&pod).await?;
    running.it.is_gone().await?;
    gone(&namespaces, world.namespace(), None).await?;
    collector.stop().await
}

#[tokio::test]
async fn a_namespace_deleted_while_the_archive_is_away_goes_without_waiting() {
    e2e_steady(with_its_namespace).await;
}
