//! Many Boxes at once: what the machine can do when all of it is at work.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::super::life::Life;
use super::super::meter::{Meter, Spent, round};
use super::super::observer::Observer;
use super::super::run::Bench;
use super::super::stats::{Times, real};
use super::super::{audit, cleanup, load};

const PATIENCE: Duration = Duration::from_mins(5);

/// What a burst showed.
pub(super) struct Burst {
    namespace: String,
    count: usize,
    lives: Vec<Life>,
    /// From the first request to the last Box's being done.
    whole: Duration,
    spent: Spent,
}

pub(super) async fn of_1000(bench: &mut Bench) -> Result<()> {
    let burst = burst(bench, 1000).await?;
    report(bench, &burst);
    cleanup::boxes(&bench.client, &burst.namespace).await
}

pub(super) async fn of_5000(bench: &mut Bench) -> Result<()> {
    let burst = burst(bench, 5000).await?;
    report(bench, &burst);
    let memory = bench.controller()?.memory()?;
    let report = &mut bench.report;
    let name = "controller, 5,000 just finished: RSS";
    report.at_most(name, "MiB", memory.resident, 32.0);
    report.figure("controller, burst of 5,000: peak RSS", "MiB", memory.peak);
    Ok(())
}

/// 5,000 finished Boxes: those of the burst, or others that are made now.
pub(super) async fn finished(bench: &mut Bench) -> Result<usize> {
    match &bench.finished {
        Some((_, count)) if *count >= 5000 => Ok(*count),
        _ => Ok(burst(bench, 5000).await?.count),
    }
}

async fn burst(bench: &mut Bench, count: usize) -> Result<Burst> {
    let namespace = bench.namespace(&format!("burst-{count}")).await?;
    bench.fresh_controller().await?;
    let client = bench.client.clone();
    let mut observer = Observer::begin(&client, &namespace).await?;
    let meter = Meter::start(bench)?;
    load::burst(&client, &namespace, &observer, count).await?;
    observer.done(count, PATIENCE).await?;
    // Some of the work, such as sending Events, comes after the end, and is paid for all the same.
    bench.controller()?.idle().await?;
    let spent = meter.stop(bench, &namespace)?;
    let lives = observer.lives();
    check(&lives)?;
    bench.finished = Some((namespace.clone(), count));
    Ok(Burst {
        namespace,
        count,
        whole: whole(&lives).context("no box was seen")?,
        lives,
        spent,
    })
}

/// That every Box has the one right ending.
pub(super) fn check(lives: &[Life]) -> Result<()> {
    let wrong = lives.iter().filter(|life| life.wrong).count();
    ensure!(wrong == 0, "{wrong} boxes ended in a way that is wrong");
    Ok(())
}

fn whole(lives: &[Life]) -> Option<Duration> {
    let first = lives.iter().map(|life| life.created).min()?;
    let last = lives.iter().filter_map(Life::done).max()?;
    Some(last.saturating_duration_since(first))
}

fn report(bench: &mut Bench, burst: &Burst) {
    let Burst {
        count,
        lives,
        spent,
        ..
    } = burst;
    let rate = real(*count) / burst.whole.as_secs_f64();
    let lag = Times::new(lives.iter().filter_map(Life::lag));
    let name = |what: &str| format!("burst of {count}: {what}");
    let report = &mut bench.report;
    let done = name("objects/s to the end, pod deleted");
    if *count == 1000 {
        report.at_least(done, "/s", rate, 45.0);
    } else {
        report.figure(done, "/s", rate);
    }
    let cpu = spent.cpu_each(audit::CONTROLLER, *count);
    report.at_most(name("controller CPU, each"), "ms", cpu, 2.0);
    let cpu = spent.cpu_each("kube-apiserver", *count);
    report.at_most(name("API server CPU, each"), "ms", cpu, 30.0);
    report.figure(
        name("controller writes, each"),
        "",
        spent.writes_each(*count),
    );
    report.figure(name("end to recorded, p50"), "ms", lag.percent(50));
    report.figure(name("end to recorded, p99"), "ms", lag.percent(99));
    let mut detail = spent.details(*count);
    detail["lag_ms"] = json!(lag.quantiles());
    detail["seconds_to_the_end"] = json!(round(burst.whole.as_secs_f64()));
    report.detail(format!("burst-{count}"), detail);
}
