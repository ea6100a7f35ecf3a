//! A node on which no collector runs.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use boxes_crds::{ABANDON_OUTPUT_ANNOTATION, BoxObject, OutputState};
use boxes_tests::harness::{Moment, World, e2e};
use kube::ResourceExt;

use super::archived::Address;
use super::machine::Machine;

/// So long a collector may always take: before that nothing is said. Times of a kubelet are whole
/// seconds, cut off.
const PATIENT: Duration = Duration::from_secs(9);

/// How long nothing may happen.
const A_WHILE: Duration = Duration::from_secs(6);

fn is_given_up(object: &BoxObject) -> bool {
    let output = object.status.as_ref().and_then(|it| it.output.as_ref());
    let state = output.and_then(|output| OutputState::parse(&output.state));
    state.is_some_and(OutputState::is_final)
}

async fn by_request(world: &World) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let machine = Machine::new(world, Address::folder(folder.path())).await?;
    let mut running = machine.runs("stranded").await?;
    running.log.out("never saved\n")?;
    let ended = Instant::now();
    running.ends().await?;
    let (it, uid) = (&running.it, running.pod.uid());
    let uid = uid.context("a pod without a UID")?;
    let waits = running.waits_for_its_output().await?;
    ensure!(ended.elapsed() >= PATIENT, "{:?}", ended.elapsed());
    let advice = format!(
        "kubectl annotate box {} -n {} {ABANDON_OUTPUT_ANNOTATION}={uid}",
        it.name(),
        world.namespace()
    );
    for part in [running.node.name(), &running.pod.name_any(), &advice] {
        ensure!(waits.contains(part), "{waits:?} does not say {part:?}");
    }

    it.annotate(ABANDON_OUTPUT_ANNOTATION, it.uid()).await?;
    let mut story = world.story().await?;
    let let_go = |moment: &Moment| {
        let released = moment.pod().is_some_and(|_| !moment.is_held_pod());
        moment.gone || released || moment.a_box().is_some_and(is_given_up)
    };
    let never = story.never("it was let go", A_WHILE, |all| all.iter().any(let_go));
    never.await?;

    it.annotate(ABANDON_OUTPUT_ANNOTATION, &uid).await?;
    running.is_unavailable("given up on request").await
}

#[tokio::test]
async fn output_that_no_collector_saves_is_waited_for_until_it_is_given_up_by_the_right_uid() {
    e2e(by_request).await;
}
