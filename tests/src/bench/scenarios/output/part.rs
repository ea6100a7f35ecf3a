//! One part: boxes that write at once, clients that follow some of them, and what became of it all.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use boxes_crds::{OutputState, OutputStatus};
use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use serde_json::{Value, json};

use super::super::super::cleanup;
use super::super::super::cluster_access::{boxes_in, create};
use super::super::super::meter::round;
use super::super::super::report;
use super::super::super::run::Bench;
use super::super::super::stats::{Quantiles, Times, real};
use super::cost::{Cost, Spent};
use super::follower::{self, Followers};
use super::gate::Gate;
use super::saved;
use super::writer::{Sum, Writer};

/// How many Boxes are made at once.
const PARALLEL: usize = 8;
/// From the last start to the gate: followers connect, and the node falls silent.
const SETTLE: Duration = Duration::from_secs(3);
/// How often more it is looked whether the machine is silent.
const LOOKS: usize = 5;
const MB: f64 = 1e6;

/// A part about to run.
#[derive(Debug)]
pub(super) struct Part {
    /// For namespace and file.
    pub(super) name: &'static str,
    /// Each box; that of number `n` is `box-n`.
    pub(super) writers: Vec<Writer>,
    /// The numbers of those that are followed, all of which write lines.
    pub(super) followed: std::ops::Range<usize>,
}

/// What was found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) lags: Times,
    pub(super) spent: Spent,
    /// Megabytes that were saved.
    pub(super) saved: f64,
    /// Boxes whose output is saved without a gap and with every byte.
    pub(super) whole: usize,
    /// Gaps in all output.
    pub(super) gaps: usize,
    /// What the boxes that write blocks say that they wrote.
    pub(super) sums: Vec<Sum>,
    busy_before: f64,
    boxes: usize,
}

impl Part {
    /// Runs it, and removes what it made.
    pub(super) async fn run(self, bench: &Bench) -> Result<Found> {
        let busy_before = calm().await?;
        let namespace = bench.namespace(self.name).await?;
        let gate = Gate::make(&bench.folder)?;
        self.make(&bench.client, &namespace, &gate).await?;
        let names = self.followed.clone().map(name);
        let followers = Followers::begin(&bench.client, &namespace, names);
        tokio::time::sleep(SETTLE).await;

        let cost = Cost::start(bench).await?;
        gate.open()?;
        let outputs = saved::all_saved(&bench.client, &namespace, self.writers.len()).await?;
        let spent = cost.stop()?;

        let lags = followers.end().await?;
        self.check_lines(lags.len())?;
        let mut found = Found::new(Times::new(lags), spent, busy_before);
        for (number, writer) in self.writers.iter().enumerate() {
            let path = follower::log_of(&namespace, &name(number));
            let output = outputs.get(&name(number)).context("a box that was saved")?;
            found.note(&bench.client, &path, *writer, output).await?;
        }
        cleanup::boxes(&bench.client, &namespace).await?;
        Ok(found)
    }

    /// Makes the boxes, and waits until all run.
    async fn make(&self, client: &Client, namespace: &str, gate: &Gate) -> Result<()> {
        let path = boxes_in(namespace);
        let all = self.writers.iter().enumerate();
        let manifests = all.map(|(number, it)| it.manifest(&name(number), gate.folder()));
        stream::iter(manifests)
            .map(|manifest| create_one(client, &path, manifest))
            .buffer_unordered(PARALLEL)
            .try_collect::<()>()
            .await?;
        saved::all_run(client, namespace, self.writers.len()).await
    }

    /// Every line of those that were followed was seen.
    fn check_lines(&self, seen: usize) -> Result<()> {
        let count = |writer: &Writer| match writer {
            Writer::Lines { count, .. } => usize::try_from(*count).unwrap_or(usize::MAX),
            Writer::Noisy { .. } | Writer::Fast { .. } => 0,
        };
        let wrote: usize = self.writers[self.followed.clone()].iter().map(count).sum();
        ensure!(seen == wrote, "{seen} lines were seen of {wrote}");
        Ok(())
    }
}

impl Found {
    fn new(lags: Times, spent: Spent, busy_before: f64) -> Self {
        Self {
            lags,
            spent,
            saved: 0.0,
            whole: 0,
            gaps: 0,
            sums: Vec::new(),
            busy_before,
            boxes: 0,
        }
    }

    /// Takes up what became of the output of one box.
    async fn note(
        &mut self,
        client: &Client,
        path: &str,
        writer: Writer,
        output: &OutputStatus,
    ) -> Result<()> {
        self.boxes += 1;
        let said = match writer {
            Writer::Lines { .. } => None,
            Writer::Noisy { .. } | Writer::Fast { .. } => {
                let line = follower::read(client, &format!("{path}?tailLines=1")).await?;
                Sum::parse(&line)
            }
        };
        self.sums.extend(said);
        let bytes = u64::try_from(output.bytes).unwrap_or_default();
        self.saved += megabytes(bytes);
        let is_saved = output.state == OutputState::Saved.as_str();
        let wrote = writer.bytes().or_else(|| said.map(Sum::bytes));
        self.whole += usize::from(is_saved && wrote == Some(bytes));
        if !is_saved {
            let gaps = follower::read(client, &format!("{path}?gaps=only")).await?;
            self.gaps += gaps.lines().count();
        }
        Ok(())
    }

    /// The collector's CPU time for each megabyte, in milliseconds.
    pub(super) fn cpu_of_a_megabyte(&self) -> f64 {
        self.spent.collector.as_secs_f64() * 1000.0 / self.saved
    }

    /// How many were to be whole.
    pub(super) fn boxes(&self) -> f64 {
        real(self.boxes)
    }

    pub(super) fn quantiles(&self) -> Quantiles {
        self.lags.quantiles()
    }

    pub(super) fn details(&self) -> Value {
        let mut details = self.spent.details();
        details["cpus_busy_before"] = json!(round(self.busy_before));
        details["boxes"] = json!(self.boxes);
        details["saved_mb"] = json!(round(self.saved));
        details["saved_whole"] = json!(self.whole);
        details["gaps"] = json!(self.gaps);
        details["lag_ms"] = json!(self.quantiles());
        let rates: Vec<_> = self.sums.iter().map(|it| round(rate(*it))).collect();
        details["wrote_mb_per_second"] = json!(rates);
        details
    }
}

/// The megabytes a second that a box wrote.
pub(super) fn rate(sum: Sum) -> f64 {
    megabytes(sum.bytes()) / sum.time.as_secs_f64()
}

fn megabytes(bytes: u64) -> f64 {
    let kilobytes = u32::try_from(bytes / 1000);
    let rest = u32::try_from(bytes % 1000).unwrap_or_default();
    kilobytes.map_or(f64::INFINITY, |it| f64::from(it) / 1000.0) + f64::from(rest) / MB
}

/// Waits a while for the machine to fall silent: the part before this one is being removed. How many
/// CPUs are busy then.
async fn calm() -> Result<f64> {
    let mut busy = report::busy_before().await?;
    for _ in 0..LOOKS {
        if busy <= report::QUIET {
            break;
        }
        busy = report::busy_before().await?;
    }
    Ok(busy)
}

fn name(number: usize) -> String {
    format!("box-{number}")
}

async fn create_one(client: &Client, path: &str, manifest: Value) -> Result<()> {
    create(client, path, &manifest).await.map(drop)
}
