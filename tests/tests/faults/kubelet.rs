//! A kubelet that stands still while its node runs on. Only on a cluster whose kubelet is a process of
//! this machine.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use boxes_crds::{BOX_FINALIZER, BoxObject, condition};
use boxes_tests::harness::{LiveBox, Moment, State, World, a_box, e2e_alone, tell, until};
use kube::ResourceExt;

use crate::help::{UNTIL_TOLD, has_ended};

/// How long the cluster takes to notice, and some more.
const NOTICED: Duration = Duration::from_secs(110);

/// How long everything must stay as it is.
const A_WHILE: Duration = Duration::from_secs(5);

/// Waits until the clean-up says why it waits.
async fn waits(world: &World, it: &LiveBox, reason: &str) -> Result<()> {
    let says = |seen: Option<&BoxObject>| {
        let mut all = seen?.status.as_ref()?.conditions.iter();
        all.find(|known| {
            known.type_ == condition::CLEANED_UP
                && known.status == "False"
                && known.reason == reason
        })
        .map(drop)
    };
    let what = format!("CleanedUp=False/{reason}");
    until(&world.boxes(), it.name(), &what, NOTICED, says).await
}

#[tokio::test]
async fn a_deleted_box_waits_for_a_kubelet_that_stands_still_where_the_cluster_is_our_own() {
    e2e_alone(async |world| {
        let Some(cluster) = world.own_cluster() else {
            return Ok(());
        };
        let it = a_box("held").shell(UNTIL_TOLD).create(world).await?;
        it.says("ready").await?;
        it.is(State::Running).await?;
        let mut story = world.story().await?;
        let frozen = cluster.freeze("kubelet")?;
        it.delete().await?;
        waits(world, &it, "Stopping").await?;
        waits(world, &it, "NodeUnreachable").await?;
        let let_go = |moment: &Moment| {
            let ended = moment.a_box().is_some_and(has_ended);
            let freed = moment.a_box().is_some_and(|object| {
                let mut held = object.finalizers().iter();
                !held.any(|it| it == BOX_FINALIZER)
            });
            let released = moment.pod().is_some_and(|_| !moment.is_held_pod());
            let deleted = moment
                .pod()
                .is_some_and(|pod| pod.metadata.deletion_timestamp.is_some());
            moment.gone || ended || freed || released || deleted
        };
        story
            .never("it was let go", A_WHILE, |all| all.iter().any(let_go))
            .await?;
        drop(frozen);

        let gone = |moment: &&Moment| moment.gone && moment.a_box().is_some();
        let told = story
            .until("the box to be gone", |all| all.iter().any(|it| gone(&it)))
            .await?;
        let last = told.iter().find(gone).and_then(Moment::status);
        let last = last.context("a box without a status")?;
        let seen = (
            last.state.as_deref(),
            last.reason.as_deref(),
            last.exit_code,
        );
        ensure!(
            seen == (Some("Stopped"), Some("Stopped"), Some(0)),
            "{seen:?}: {}",
            tell(&told)
        );
        Ok(())
    })
    .await;
}
