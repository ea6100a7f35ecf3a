//! The rate that is held without a gap while the kubelet rotates the log: one box writes 500 MB as
//! fast as the runtime takes it.

use anyhow::Result;

use super::super::super::run::Bench;
use super::super::super::stats::real;
use super::part::{Part, rate};
use super::writer::Writer;

const BLOCKS: u32 = 125;

pub(super) async fn run(bench: &mut Bench) -> Result<()> {
    let part = Part {
        name: "output-fast",
        writers: vec![Writer::Fast { blocks: BLOCKS }],
        followed: 0..0,
    };
    let found = part.run(bench).await?;
    let name = |what: &str| format!("output, 500 MB at once: {what}");
    let wrote = found.sums.first().copied().map_or(f64::NAN, rate);
    let saved = found.saved / found.spent.time.as_secs_f64();
    let cpu = found.cpu_of_a_megabyte();
    let report = &mut bench.report;
    report.figure(name("written"), "MB/s", wrote);
    report.figure(name("written and saved to the end"), "MB/s", saved);
    report.at_most(name("gaps"), "", real(found.gaps), 0.0);
    let whole = name("saved without a gap, every byte");
    report.at_least(whole, "", real(found.whole), found.boxes());
    report.figure(name("collector CPU, each MB"), "ms", cpu);
    let per_core = name("saved by one core of the collector");
    report.figure(per_core, "MB/s", 1000.0 / cpu);
    report.figure(name("collector RSS, peak"), "MiB", found.spent.peak);
    report.detail("output-fast", found.details());
    Ok(())
}
