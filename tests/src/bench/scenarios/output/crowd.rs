//! Many boxes that write at once: 20 quiet ones beside one that writes 50 MB/s, and 100 alike.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::ListParams;
use kube::{Api, Client};

use super::super::super::run::Bench;
use super::super::super::stats::real;
use super::part::{Found, Part, rate};
use super::writer::Writer;
use crate::harness::{COLLECTOR, NAMESPACE};

const TIME: Duration = Duration::from_secs(30);

const QUIET: usize = 20;
/// Two lines a second.
const QUIET_WRITER: Writer = Writer::Lines {
    count: 60,
    pace: Duration::from_millis(500),
};
/// 50, but for what the last block takes longer.
const NOISY_MB_PER_SECOND: f64 = 49.0;

const MANY: usize = 100;
const MANY_WRITER: Writer = Writer::Lines {
    count: 300,
    pace: Duration::from_millis(100),
};
const SAMPLE: usize = 10;
/// So many pods of a node are left to others.
const SPARE: usize = 5;

const LONGEST_LAG_MS: f64 = 2000.0;
const MOST_MIB: f64 = 64.0;

pub(super) async fn beside_a_noisy_one(bench: &mut Bench) -> Result<()> {
    let mut writers = vec![QUIET_WRITER; QUIET];
    writers.push(Writer::Noisy { time: TIME });
    let part = Part {
        name: "output-noisy",
        writers,
        followed: 0..QUIET,
    };
    let found = part.run(bench).await?;
    let name = |what: &str| format!("output, 20 beside a noisy one: {what}");
    let wrote = found.sums.first().copied().map_or(f64::NAN, rate);
    let noise = name("the noisy one writes");
    bench
        .report
        .at_least(noise, "MB/s", wrote, NOISY_MB_PER_SECOND);
    report(bench, &found, name);
    let cpu = name("collector CPU, each MB");
    bench.report.figure(cpu, "ms", found.cpu_of_a_megabyte());
    bench.report.detail("output-noisy", found.details());
    Ok(())
}

pub(super) async fn of_100(bench: &mut Bench) -> Result<()> {
    let boxes = room(&bench.client).await?.min(MANY);
    let part = Part {
        name: "output-many",
        writers: vec![MANY_WRITER; boxes],
        followed: 0..SAMPLE.min(boxes),
    };
    let found = part.run(bench).await?;
    let name = |what: &str| format!("output, 100 at once: {what}");
    let wrote = name("boxes for which the node had room");
    bench.report.at_least(wrote, "", found.boxes(), real(MANY));
    report(bench, &found, name);
    bench.report.detail("output-many", found.details());
    Ok(())
}

/// The figures that both have.
fn report(bench: &mut Bench, found: &Found, name: impl Fn(&str) -> String) {
    let lag = found.quantiles();
    let report = &mut bench.report;
    report.figure(name("line to follower, p50"), "ms", lag.p50);
    let p99 = name("line to follower, p99");
    report.at_most(p99, "ms", lag.p99, LONGEST_LAG_MS);
    report.figure(name("line to follower, longest"), "ms", lag.max);
    let whole = name("saved without a gap, every byte");
    report.at_least(whole, "", real(found.whole), found.boxes());
    let peak = name("collector RSS, peak");
    report.at_most(peak, "MiB", found.spent.peak, MOST_MIB);
    let cores = name("collector CPU");
    report.figure(cores, "cores", found.spent.cores());
}

/// How many more pods the collector's node takes, whatever they need of it.
async fn room(client: &Client) -> Result<usize> {
    let ours: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let collectors = ours.list(&ListParams::default().labels(COLLECTOR)).await?;
    let mut nodes = collectors
        .items
        .into_iter()
        .filter_map(|it| it.spec?.node_name);
    let name = nodes.next().context("no node has a collector")?;
    let node = Api::<Node>::all(client.clone()).get(&name).await?;
    let most = node.status.and_then(|it| it.allocatable?.remove("pods"));
    let most: usize = most.context("a node without a number of pods")?.0.parse()?;
    let there = ListParams::default().fields(&format!("spec.nodeName={name}"));
    let there = Api::<Pod>::all(client.clone()).list(&there).await?;
    Ok(most.saturating_sub(there.items.len() + SPARE))
}
