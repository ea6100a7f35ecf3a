//! 200 healthy Boxes, 20 a second, alone and among 10 that are stuck in three ways: a kubelet that
//! never answers, a pod that a foreign finalizer holds, and a quota that lets no pod in.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use kube::Client;
use serde_json::json;

use super::super::cluster_access::{boxes_in, core_in, create, delete, get, patch};
use super::super::life::Life;
use super::super::manifest::{FOREIGN_FINALIZER, Place, a_box, no_pods};
use super::super::observer::Observer;
use super::super::run::Bench;
use super::super::stats::Times;
use super::super::{cleanup, kwok, load};
use super::burst::check;

const HEALTHY: usize = 200;
const PACE: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_mins(2);
/// Until the stuck ones have failed a few times.
const STUCK_SINCE: Duration = Duration::from_secs(8);

pub(super) async fn run(bench: &mut Bench) -> Result<()> {
    bench.fresh_controller().await?;
    // The first is a little slower whatever it is, so it is not the one that is compared.
    healthy(bench).await?;
    let alone = healthy(bench).await?;
    let held = bench.namespace("stuck").await?;
    let full = bench.namespace("full").await?;
    make_stuck(&bench.client, &held, &full).await?;
    tokio::time::sleep(STUCK_SINCE).await;
    let among = healthy(bench).await?;
    let still = stuck_in(&bench.client, &held).await? + stuck_in(&bench.client, &full).await?;
    for namespace in [held, full] {
        cleanup::release_by_hand(&bench.client, &namespace).await?;
    }
    let report = &mut bench.report;
    report.figure(
        "200 alone: create to all done, p50",
        "ms",
        alone.percent(50),
    );
    report.figure(
        "200 alone: create to all done, p99",
        "ms",
        alone.percent(99),
    );
    let name = |what| format!("200 among 10 stuck: {what}");
    report.figure(name("create to all done, p50"), "ms", among.percent(50));
    report.figure(name("create to all done, p99"), "ms", among.percent(99));
    let ratio = among.percent(50) / alone.percent(50);
    report.at_most(name("p50, against alone"), "×", ratio, 1.1);
    let detail = json!({
        "alone_ms": alone.quantiles(), "among_ms": among.quantiles(), "stuck": still,
    });
    report.detail("neighbours", detail);
    if still != 10 {
        bail!("{still} boxes were stuck, and not 10");
    }
    Ok(())
}

/// The times of 200 healthy Boxes.
async fn healthy(bench: &Bench) -> Result<Times> {
    let namespace = bench.namespace("healthy").await?;
    let mut observer = Observer::begin(&bench.client, &namespace).await?;
    load::steady(&bench.client, &namespace, &observer, HEALTHY, PACE).await?;
    observer.done(HEALTHY, PATIENCE).await?;
    let lives = observer.lives();
    check(&lives)?;
    cleanup::boxes(&bench.client, &namespace).await?;
    Ok(Times::new(lives.iter().filter_map(Life::whole)))
}

async fn make_stuck(client: &Client, held: &str, full: &str) -> Result<()> {
    kwok::deaf_node(client).await?;
    create(client, &core_in(full, "resourcequotas"), &no_pods()).await?;
    let mut observer = Observer::begin(client, held).await?;
    for (namespace, name, place) in members(held, full) {
        create(client, &boxes_in(namespace), &a_box(&name, place)).await?;
        if place == Place::Deaf {
            let pod = pod_of(client, namespace, &name).await?;
            bound(client, namespace, &pod).await?;
            delete(
                client,
                &format!("{}/{name}", boxes_in(namespace)),
                &json!({}),
            )
            .await?;
        } else if namespace == held {
            observer.create(&name);
            let pod = pod_of(client, namespace, &name).await?;
            hold(client, namespace, &pod).await?;
        }
    }
    for number in 0..3 {
        let ended = |life: &Life| life.box_ended.is_some();
        observer
            .one(&format!("held-{number}"), PATIENCE, ended)
            .await?;
    }
    Ok(())
}

/// Namespace, name and place of the ten.
fn members<'a>(held: &'a str, full: &'a str) -> Vec<(&'a str, String, Place)> {
    let deaf = (0..4).map(|number| (held, format!("deaf-{number}"), Place::Deaf));
    let foreign = (0..3).map(|number| (held, format!("held-{number}"), Place::Kwok));
    let refused = (0..3).map(|number| (full, format!("full-{number}"), Place::Kwok));
    deaf.chain(foreign).chain(refused).collect()
}

/// The name of a Box's pod, when there is one.
async fn pod_of(client: &Client, namespace: &str, name: &str) -> Result<String> {
    for _ in 0..200 {
        let list: serde_json::Value = get(client, &core_in(namespace, "pods")).await?;
        let pods = list["items"].as_array().into_iter().flatten();
        let annotation = boxes_crds::BOX_NAME_ANNOTATION;
        let found = pods
            .filter(|pod| pod["metadata"]["annotations"][annotation] == name)
            .find_map(|pod| pod["metadata"]["name"].as_str());
        if let Some(pod) = found {
            return Ok(pod.to_owned());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    bail!("the box {name} gets no pod")
}

/// Waits until a pod is bound to its node.
async fn bound(client: &Client, namespace: &str, pod: &str) -> Result<()> {
    for _ in 0..200 {
        let path = format!("{}/{pod}", core_in(namespace, "pods"));
        let seen: serde_json::Value = get(client, &path).await?;
        if seen["spec"]["nodeName"].is_string() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    bail!("the pod {pod} is not bound to a node")
}

/// Adds a foreign finalizer to a pod, at its very version.
async fn hold(client: &Client, namespace: &str, pod: &str) -> Result<()> {
    let path = format!("{}/{pod}", core_in(namespace, "pods"));
    for _ in 0..20 {
        let seen: serde_json::Value = get(client, &path).await?;
        let mut finalizers = seen["metadata"]["finalizers"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        finalizers.push(json!(FOREIGN_FINALIZER));
        let version = &seen["metadata"]["resourceVersion"];
        let change = json!({"metadata": {"finalizers": finalizers, "resourceVersion": version}});
        if patch(client, &path, &change).await.is_ok() {
            return Ok(());
        }
    }
    bail!("the pod {pod} cannot be held")
}

/// How many Boxes of a namespace are there and neither done nor about to be.
async fn stuck_in(client: &Client, namespace: &str) -> Result<usize> {
    let list: serde_json::Value = get(client, &boxes_in(namespace)).await?;
    let items = list["items"].as_array().context("no list of boxes")?;
    let done = |item: &&serde_json::Value| {
        let mut conditions = item["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten();
        conditions.any(|known| known["type"] == "CleanedUp" && known["status"] == "True")
    };
    Ok(items.len() - items.iter().filter(done).count())
}
