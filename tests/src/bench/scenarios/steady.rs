//! 150 Boxes, 5 a second: nothing waits for anything, so the lag is that of the path alone.

use std::time::Duration;

use anyhow::Result;

use super::super::life::Life;
use super::super::load;
use super::super::meter::Meter;
use super::super::observer::Observer;
use super::super::run::Bench;
use super::super::stats::Times;
use super::super::{audit, cleanup};
use super::burst::check;

const COUNT: usize = 150;
const PACE: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_mins(1);

pub(super) async fn run(bench: &mut Bench) -> Result<()> {
    let namespace = bench.namespace("steady").await?;
    bench.fresh_controller().await?;
    let client = bench.client.clone();
    let mut observer = Observer::begin(&client, &namespace).await?;
    let meter = Meter::start(bench)?;
    load::steady(&client, &namespace, &observer, COUNT, PACE).await?;
    observer.done(COUNT, PATIENCE).await?;
    bench.controller()?.idle().await?;
    let spent = meter.stop(bench, &namespace)?;
    let lives = observer.lives();
    check(&lives)?;

    let lag = Times::new(lives.iter().filter_map(Life::lag));
    let report = &mut bench.report;
    report.at_most("5/s: end to recorded, p50", "ms", lag.percent(50), 5.0);
    report.at_most("5/s: end to recorded, p99", "ms", lag.percent(99), 20.0);
    report.at_most(
        "5/s: controller writes, each",
        "",
        spent.writes_each(COUNT),
        7.0,
    );
    for (kind, count) in spent.requests.writes() {
        let name = format!("5/s:   {} {}", kind.verb, kind.resource);
        report.figure(name, "", per_box(count));
    }
    let cpu = spent.cpu_each(audit::CONTROLLER, COUNT);
    report.figure("5/s: controller CPU, each", "ms", cpu);
    let cpu = spent.cpu_each("kube-apiserver", COUNT);
    report.figure("5/s: API server CPU, each", "ms", cpu);
    let mut detail = spent.details(COUNT);
    detail["lag_ms"] = serde_json::to_value(lag.quantiles())?;
    report.detail("steady", detail);
    cleanup::boxes(&client, &namespace).await
}

fn per_box(count: audit::Count) -> f64 {
    super::super::stats::real(count.asked) / super::super::stats::real(COUNT)
}
