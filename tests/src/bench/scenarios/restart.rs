//! The controller's start with 5,000 finished Boxes: how long until it has looked at all of them.

use anyhow::{Result, ensure};
use serde_json::json;

use super::super::cleanup;
use super::super::meter::{Meter, Spent, round};
use super::super::processes::Memory;
use super::super::run::Bench;
use super::super::stats::{median, real};
use super::burst;

/// How often. The figures are the medians.
const TIMES: usize = 3;

struct Start {
    idle: f64,
    cpu: f64,
    writes: usize,
    passes: f64,
    memory: Memory,
    spent: Spent,
}

pub(super) async fn run(bench: &mut Bench) -> Result<()> {
    let finished = burst::finished(bench).await?;
    let mut starts = Vec::new();
    for _ in 0..TIMES {
        starts.push(start(bench, finished).await?);
    }
    let report = &mut bench.report;
    let middle = |of: fn(&Start) -> f64| median(starts.iter().map(of));
    let name = |what: &str| format!("restart, 5,000 finished: {what}");
    report.at_most(name("idle after"), "s", middle(|it| it.idle), 0.7);
    report.at_most(name("CPU"), "s", middle(|it| it.cpu), 0.5);
    let writes = starts.iter().map(|it| real(it.writes)).fold(0.0, f64::max);
    report.at_most(name("writes"), "", writes, 0.0);
    report.at_most(name("RSS"), "MiB", middle(|it| it.memory.resident), 32.0);
    report.figure(name("peak RSS"), "MiB", middle(|it| it.memory.peak));
    report.detail(
        "restart",
        json!(starts.iter().map(detail).collect::<Vec<_>>()),
    );
    if let Some((namespace, _)) = bench.finished.take() {
        cleanup::boxes(&bench.client, &namespace).await?;
    }
    Ok(())
}

async fn start(bench: &mut Bench, finished: usize) -> Result<Start> {
    bench.stop_controller().await?;
    let meter = Meter::start(bench)?;
    let controller = bench.new_controller().await?;
    let ready = controller.ready().await?;
    let idle = controller.idle().await?.max(ready);
    let (cpu, memory) = (controller.cpu()?, controller.memory()?);
    let passes = controller.counted("boxes_reconciles_total").await?;
    ensure!(
        passes >= real(finished),
        "the controller was idle after {passes} passes over {finished} boxes"
    );
    let spent = meter.stop(bench, "")?;
    Ok(Start {
        idle: idle.as_secs_f64(),
        cpu: cpu.as_secs_f64(),
        writes: spent.requests.writes().map(|(_, count)| count.asked).sum(),
        passes,
        memory,
        spent,
    })
}

fn detail(start: &Start) -> serde_json::Value {
    json!({
        "idle_s": round(start.idle),
        "cpu_s": round(start.cpu),
        "passes": start.passes,
        "rss_mib": round(start.memory.resident),
        "peak_rss_mib": round(start.memory.peak),
        "in_all": start.spent.details(1),
    })
}
