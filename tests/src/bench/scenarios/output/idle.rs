//! How soon a client that follows has a line, when nothing else is at work.

use std::time::Duration;

use anyhow::Result;

use super::super::super::run::Bench;
use super::part::Part;
use super::writer::Writer;

/// A minute of lines.
const WRITER: Writer = Writer::Lines {
    count: 600,
    pace: Duration::from_millis(100),
};
const LONGEST_LAG_MS: f64 = 1000.0;

pub(super) async fn run(bench: &mut Bench) -> Result<()> {
    let part = Part {
        name: "output-idle",
        writers: vec![WRITER],
        followed: 0..1,
    };
    let found = part.run(bench).await?;
    let lag = found.quantiles();
    let name = |what: &str| format!("output, idle node: {what}");
    let report = &mut bench.report;
    report.figure(name("line to follower, p50"), "ms", lag.p50);
    let p99 = name("line to follower, p99");
    report.at_most(p99, "ms", lag.p99, LONGEST_LAG_MS);
    report.figure(name("line to follower, longest"), "ms", lag.max);
    let resident = name("collector RSS, before");
    report.figure(resident, "MiB", found.spent.resident);
    report.detail("output-idle", found.details());
    Ok(())
}
