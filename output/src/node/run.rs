//! From the command line to the running collector.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use boxes_crds::BOX_UID_LABEL;
use boxes_program::{Election, asked_to_stop, serve};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::MissedTickBehavior;

use super::args::Args;
use super::health::Health;
use super::pods::Pods;
use super::{cluster, sweep};
use crate::archive::Archive;
use crate::collector::{Budget, Collector, Outcome};
use crate::tail::LogRoot;

/// How often it looks whether the API server is to be asked something.
const PACE: Duration = Duration::from_secs(2);

/// Runs until a signal asks to stop. What is not stored then is read again by the next one.
///
/// # Errors
/// The cluster is not configured, the logs are not there, or an address cannot be listened on.
pub async fn run(args: Args) -> anyhow::Result<()> {
    args.logging.start()?;
    let client = Client::try_default()
        .await
        .context("no cluster: set KUBECONFIG, or run in a pod with a ServiceAccount")?;
    let logs = LogRoot::open(&args.logs)
        .with_context(|| format!("cannot open {}: see --logs", args.logs.display()))?;
    let archive = open_archive(&args)?;
    let health = Arc::new(Health::default());
    serve("--listen", args.listen, health.clone()).await?;
    tracing::info!(node = args.node, "the collector has started");
    tokio::select! {
        () = work(&args, client, logs, archive, health) => {}
        () = asked_to_stop() => tracing::info!("stopped as asked"),
    }
    Ok(())
}

async fn work(args: &Args, client: Client, logs: LogRoot, archive: Archive, health: Arc<Health>) {
    let archive = archive.of_cluster(cluster::identity(&client).await);
    let budget = Budget::new(usize::from(args.memory) << 20);
    let (collector, outcomes) = Collector::new(logs, archive.clone(), budget);
    health.begin(collector.stats());
    tokio::spawn(cluster::claim(archive.clone(), health.clone()));
    if let Some((namespace, name)) = &args.sweep_lease {
        let election = Election::new(client.clone(), namespace, name, &args.node, sweep::SILENT);
        tokio::spawn(sweep::sweep(client.clone(), archive, election));
    }
    let pods = Pods::new(client.clone(), collector);
    collect(args, client, pods, outcomes, &health).await;
}

fn open_archive(args: &Args) -> anyhow::Result<Archive> {
    let url = &args.archive.url;
    Archive::open(url, &args.archive.options())
        .with_context(|| format!("cannot open the archive {url}: see --archive"))
}

async fn collect(
    args: &Args,
    client: Client,
    mut pods: Pods,
    mut outcomes: UnboundedReceiver<Outcome>,
    health: &Health,
) {
    let config = watcher::Config::default()
        .fields(&format!("spec.nodeName={}", args.node))
        .labels(BOX_UID_LABEL);
    let events = watcher(Api::<Pod>::all(client), config).default_backoff();
    let mut events = std::pin::pin!(events);
    let mut pace = tokio::time::interval(PACE);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            Some(event) = events.next() => see(&mut pods, event),
            Some(outcome) = outcomes.recv() => pods.save(&outcome),
            Some(news) = pods.news() => pods.hear(news),
            _ = pace.tick() => {}
        }
        pods.send_out();
        if pods.is_ready() {
            health.set_ready();
        }
    }
}

fn see(pods: &mut Pods, event: watcher::Result<watcher::Event<Pod>>) {
    match event {
        Ok(watcher::Event::Init) => pods.begin_list(),
        Ok(watcher::Event::InitApply(pod) | watcher::Event::Apply(pod)) => pods.see(pod),
        Ok(watcher::Event::InitDone) => pods.end_list(),
        Ok(watcher::Event::Delete(pod)) => pods.delete(&pod),
        Err(error) => {
            tracing::warn!(error = %error, "the watch failed and is taken up again");
        }
    }
}
