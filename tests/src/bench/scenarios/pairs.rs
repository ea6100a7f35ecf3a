//! 50 Boxes on the real node, one after the other, each in a pair with a bare pod of the same command:
//! what a Box costs its user in time.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::super::cluster_access::{boxes_in, core_in, create};
use super::super::life::Life;
use super::super::manifest::{Place, a_box, a_pod};
use super::super::meter::Meter;
use super::super::observer::Observer;
use super::super::run::Bench;
use super::super::stats::Times;
use super::super::{audit, cleanup};

const PAIRS: usize = 50;
const PATIENCE: Duration = Duration::from_mins(1);

/// Times of what was made.
#[derive(Default)]
struct Found {
    pods: Vec<Duration>,
    boxes: Vec<Duration>,
    lags: Vec<Duration>,
}

pub(super) async fn run(bench: &mut Bench) -> Result<()> {
    let namespace = bench.namespace("pairs").await?;
    bench.fresh_controller().await?;
    let mut observer = Observer::begin(&bench.client, &namespace).await?;
    // The first pod of a namespace waits for more than others do.
    a_pod_of(bench, &namespace, &mut observer, "first").await?;
    let mut found = Found::default();
    let meter = Meter::start(bench)?;
    for number in 0..PAIRS {
        let (pod, name) = (format!("pod-{number}"), format!("box-{number}"));
        // Each is the first of its pair as often as the other.
        if number % 2 == 0 {
            found
                .pods
                .push(a_pod_of(bench, &namespace, &mut observer, &pod).await?);
            found.note(&a_box_of(bench, &namespace, &mut observer, &name).await?)?;
        } else {
            found.note(&a_box_of(bench, &namespace, &mut observer, &name).await?)?;
            found
                .pods
                .push(a_pod_of(bench, &namespace, &mut observer, &pod).await?);
        }
    }
    let spent = meter.stop(bench, &namespace)?;
    report(
        bench,
        found,
        &spent.details(PAIRS),
        spent.cpu_each(audit::CONTROLLER, PAIRS),
    );
    cleanup::boxes(&bench.client, &namespace).await
}

impl Found {
    fn note(&mut self, life: &Life) -> Result<()> {
        let ended = life.box_ended.context("a box that has ended")?;
        self.boxes
            .push(ended.saturating_duration_since(life.created));
        self.lags.extend(life.lag());
        Ok(())
    }
}

/// From the making of a bare pod until its end is seen.
async fn a_pod_of(
    bench: &Bench,
    namespace: &str,
    observer: &mut Observer,
    name: &str,
) -> Result<Duration> {
    observer.create(name);
    create(&bench.client, &core_in(namespace, "pods"), &a_pod(name)).await?;
    observer
        .one(name, PATIENCE, |life| life.pod_ended.is_some())
        .await?;
    let life = observer.life(name).context("a pod that was seen")?;
    let ended = life.pod_ended.context("a pod that has ended")?;
    Ok(ended.saturating_duration_since(life.created))
}

/// The life of a Box until its pod is gone, so that the next begins on a quiet node.
async fn a_box_of(
    bench: &Bench,
    namespace: &str,
    observer: &mut Observer,
    name: &str,
) -> Result<Life> {
    observer.create(name);
    let manifest = a_box(name, Place::Real);
    create(&bench.client, &boxes_in(namespace), &manifest).await?;
    observer
        .one(name, PATIENCE, |life| life.done().is_some())
        .await?;
    observer.life(name).context("a box that was seen")
}

fn report(bench: &mut Bench, found: Found, spent: &Value, cpu: f64) {
    let (pods, boxes) = (Times::new(found.pods), Times::new(found.boxes));
    let lags = Times::new(found.lags);
    let report = &mut bench.report;
    let name = |what: &str| format!("real node, 50 pairs: {what}");
    report.figure(
        name("bare pod, create to ended, p50"),
        "ms",
        pods.percent(50),
    );
    report.figure(name("Box, create to ended, p50"), "ms", boxes.percent(50));
    let more = boxes.percent(50) - pods.percent(50);
    report.figure(name("Box more than pod, p50"), "ms", more);
    report.figure(name("end to recorded, p50"), "ms", lags.percent(50));
    report.figure(name("end to recorded, p99"), "ms", lags.percent(99));
    report.figure(name("controller CPU, each"), "ms", cpu);
    let detail = json!({
        "pod_ms": pods.quantiles(), "box_ms": boxes.quantiles(), "lag_ms": lags.quantiles(),
        "spent": spent,
    });
    report.detail("pairs", detail);
}
