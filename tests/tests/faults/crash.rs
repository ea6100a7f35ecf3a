//! The controller is killed again and again while boxes of all kinds begin and end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use boxes_crds::{BOX_UID_LABEL, BoxStatus};
use boxes_tests::harness::{
    BoxBuilder, DEPLOYMENT, HostController, LiveBox, Moment, NAMESPACE, PATIENCE, Reason, State,
    World, a_box, e2e_alone, tell,
};
use futures::future::try_join_all;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::{Api, ResourceExt};

use crate::help::{UNTIL_TOLD, has_ended};

/// How many boxes of each kind.
const EACH: usize = 6;

/// How often the controller is killed.
const KILLS: usize = 12;

/// A controller that has nothing to do is killed after so long all the same.
const IDLE: Duration = Duration::from_secs(3);

/// What becomes of a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Returns(i32),
    Stopped,
    Deleted,
    TimesOut,
    LosesItsPod,
}

impl Kind {
    fn all() -> Vec<Self> {
        let of_each = |number| {
            let code = i32::try_from(number).unwrap_or_default();
            [
                Self::Returns(code),
                Self::Stopped,
                Self::Deleted,
                Self::TimesOut,
                Self::LosesItsPod,
            ]
        };
        (0..EACH).flat_map(of_each).collect()
    }

    fn builder(self, number: usize) -> BoxBuilder {
        let it = a_box(format!("box-{number}"));
        match self {
            Self::Returns(code) => it.shell(&format!("sleep 1; exit {code}")),
            Self::Stopped | Self::Deleted => it.shell(UNTIL_TOLD),
            Self::TimesOut => it
                .runs(["sleep", "1000"])
                .active_deadline_seconds(40)
                .termination_grace_period_seconds(1),
            Self::LosesItsPod => it.shell("trap 'exit 9' TERM; echo ready; sleep 1000 & wait"),
        }
    }

    /// State, reason, code and signal of its one right ending.
    fn ending(self) -> Ending {
        let (state, reason, code) = match self {
            Self::Returns(code) => ("Exited", "Exit", Some(code)),
            Self::Stopped | Self::Deleted => ("Stopped", "Stopped", Some(0)),
            Self::TimesOut => ("Exited", "Timeout", None),
            Self::LosesItsPod => ("Stopped", "PodDeleted", Some(9)),
        };
        (state.to_owned(), reason.to_owned(), code, None)
    }
}

type Ending = (String, String, Option<i32>, Option<i32>);

fn ending_of(status: &BoxStatus) -> Option<Ending> {
    let (state, reason) = (status.state.clone()?, status.reason.clone()?);
    Some((state, reason, status.exit_code, status.signal))
}

/// Lives through one box's life.
async fn live(it: &LiveBox, kind: Kind) -> Result<()> {
    match kind {
        Kind::Returns(_) | Kind::TimesOut => {}
        Kind::Stopped => {
            it.says("ready").await?;
            it.stop().await?;
        }
        Kind::Deleted => {
            it.says("ready").await?;
            it.delete().await?;
            return it.is_gone().await;
        }
        Kind::LosesItsPod => {
            it.says("ready").await?;
            let pod = it.has_a_pod("the pod", |_| true).await?;
            it.delete_pod(&pod).await?;
        }
    }
    it.is_cleaned_up().await.map(drop)
}

/// Random enough, and the same again from the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        usize::try_from((self.0 >> 33) % bound).unwrap_or_default()
    }
}

/// Kills the controller after a random number of its requests, again and again: between any two of
/// its writes.
async fn kill_again_and_again(controller: &mut HostController, seed: u64) -> Result<()> {
    let mut random = Random(seed);
    for _ in 0..KILLS {
        let requests = controller.proxy().count() + 1 + random.below(60);
        let busy = controller.proxy().reaches(requests);
        // An idle one is killed too: both are as random as can be.
        let _ = tokio::time::timeout(IDLE, busy).await;
        controller.kill().await?;
        controller.start()?;
        controller.leads(PATIENCE).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_controller_killed_at_random_points_under_load_gives_every_box_its_one_right_ending() {
    e2e_alone(async |world| {
        let seed = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let mut controller = world.host_controller().await?;
        let mut story = world.story().await?;
        let kinds = Kind::all();
        let made = kinds.iter().enumerate().map(|(number, kind)| {
            let builder = kind.builder(number);
            async move { builder.create(world).await }
        });
        let boxes = try_join_all(made).await?;
        let lives = boxes.iter().zip(&kinds).map(|(it, kind)| live(it, *kind));
        let (outcome, killed) = tokio::join!(
            try_join_all(lives),
            kill_again_and_again(&mut controller, seed)
        );
        killed.with_context(|| format!("seed {seed}"))?;
        outcome.with_context(|| format!("seed {seed}"))?;
        let pods_gone = |all: &[Moment]| {
            let gone = all.iter().filter(|it| it.gone && it.pod().is_some());
            gone.count() >= boxes.len()
        };
        let told = story.until("all pods to be gone", pods_gone).await?;
        for (it, kind) in boxes.iter().zip(&kinds) {
            check(&told, it, *kind).with_context(|| format!("seed {seed}, {kind:?}"))?;
        }
        no_pod_went_unrecorded(&told)?;
        nothing_is_left(world).await?;
        controller.stop().await
    })
    .await;
}

/// One ending, the right one, and one pod.
fn check(told: &[Moment], it: &LiveBox, kind: Kind) -> Result<()> {
    let of_it = told.iter().filter(|moment| {
        let object = moment.a_box();
        object.is_some_and(|object| object.metadata.uid.as_deref() == Some(it.uid()))
    });
    let of_it: Vec<_> = of_it.cloned().collect();
    let endings = of_it
        .iter()
        .filter_map(|moment| ending_of(moment.status()?));
    let endings: BTreeSet<_> = endings.collect();
    ensure!(
        endings == BTreeSet::from([kind.ending()]),
        "{}: {endings:?}; {}",
        it.name(),
        tell(&of_it)
    );
    let pods = told.iter().filter_map(Moment::pod);
    let pods = pods.filter(|pod| {
        pod.labels()
            .get(BOX_UID_LABEL)
            .is_some_and(|uid| uid == it.uid())
    });
    let pods: BTreeSet<_> = pods.filter_map(ResourceExt::uid).collect();
    ensure!(
        pods.len() == 1,
        "{} has run {} times",
        it.name(),
        pods.len()
    );
    Ok(())
}

/// No pod lost our finalizer before the ending of its box was stored.
fn no_pod_went_unrecorded(told: &[Moment]) -> Result<()> {
    let mut ended = BTreeMap::new();
    for moment in told {
        if let Some(object) = moment.a_box().filter(|object| has_ended(object)) {
            ended.entry(object.uid()).or_insert(moment.version);
        }
        let Some(pod) = moment.pod().filter(|_| !moment.is_held_pod()) else {
            continue;
        };
        let uid = pod.labels().get(BOX_UID_LABEL).cloned();
        ensure!(
            ended.contains_key(&uid),
            "pod {} was let go before its ending was recorded",
            pod.name_any()
        );
    }
    Ok(())
}

async fn nothing_is_left(world: &World) -> Result<()> {
    let pods = world.pods().list(&kube::api::ListParams::default()).await?;
    ensure!(pods.items.is_empty(), "{} pods are left", pods.items.len());
    Ok(())
}

/// When the lease was acquired, and how often it has changed hands.
async fn lease(world: &World) -> Result<(Option<MicroTime>, Option<i32>)> {
    let leases: Api<Lease> = Api::namespaced(world.client(), NAMESPACE);
    let spec = leases.get(DEPLOYMENT).await?.spec.unwrap_or_default();
    Ok((spec.acquire_time, spec.lease_transitions))
}

/// Another would have to wait until the lease is old, and would then have acquired it anew.
#[tokio::test]
async fn a_killed_holder_of_the_lease_leads_again_under_its_own_name_without_a_wait() {
    e2e_alone(async |world| {
        let mut controller = world.host_controller().await?;
        let before = lease(world).await?;
        controller.kill().await?;
        controller.start()?;
        controller.leads(PATIENCE).await?;
        let after = lease(world).await?;
        ensure!(before == after, "{before:?}, then {after:?}");
        let it = a_box("proof").shell("exit 3").create(world).await?;
        it.ends_as(State::Exited, Reason::Exit).with_code(3).await?;
        controller.stop().await
    })
    .await;
}
