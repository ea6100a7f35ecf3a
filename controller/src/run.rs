//! From the command line to the running controller.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use boxes_crds::BOX_UID_LABEL;
use boxes_lifecycle::PodView;
use futures::StreamExt;
use jiff::Timestamp;
use kube::runtime::reflector::store::Writer;
use kube::runtime::{Controller, WatchStreamExt, controller, reflector, watcher};
use kube::{Api, Client};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, SetOnce};

use crate::announce::Announcer;
use crate::args::Args;
use crate::cache::CachedBox;
use crate::context::Context;
use crate::lease::Election;
use crate::memory::Memories;
use crate::metrics::Metrics;
use crate::reconcile::{on_error, reconcile};
use crate::supervision::Supervision;
use crate::{logging, orphans, server};

/// The caches' sides that the watches write.
struct Writers {
    boxes: Writer<CachedBox>,
    pods: Writer<PodView>,
}

/// Runs until a signal asks to stop.
///
/// # Errors
/// The cluster cannot be reached as configured, the address cannot be listened on, or the lease is
/// lost: whoever started the process is to start it again.
pub async fn run(args: Args) -> anyhow::Result<()> {
    logging::start(&args)?;
    let client = Client::try_default()
        .await
        .context("no cluster: set KUBECONFIG, or run in a pod with a ServiceAccount")?;
    let (cx, writers) = context(client.clone(), &args);
    server::serve(args.listen, cx.clone()).await?;

    let Some(name) = &args.lease_name else {
        return lead(cx, writers).await;
    };
    let mut election = Election::new(client, &args.lease_namespace, name, &args.identity);
    tracing::info!(
        identity = args.identity,
        lease = name,
        "waiting for the lease"
    );
    tokio::select! {
        () = election.win(|| cx.ready.store(true, Ordering::Relaxed)) => {}
        () = asked_to_stop() => return Ok(()),
    }
    tracing::info!(identity = args.identity, lease = name, "leading");
    tokio::select! {
        done = lead(cx, writers) => {
            election.release().await.context("giving up the lease")?;
            done
        }
        lost = election.keep() => Err(lost),
    }
}

fn context(client: Client, args: &Args) -> (Arc<Context>, Writers) {
    let (boxes, boxes_writer) = reflector::store();
    let (pods, pods_writer) = reflector::store();
    let cx = Context {
        announcer: Announcer::start(client.clone(), args.identity.clone()),
        supervision: Supervision::start(client.clone(), args),
        client,
        pods,
        boxes,
        memories: Memories::default(),
        metrics: Metrics::new(),
        slots: Semaphore::new(args.concurrency.into()),
        boxes_listed: SetOnce::new(),
        pods_listed: SetOnce::new(),
        ready: AtomicBool::new(false),
    };
    (
        Arc::new(cx),
        Writers {
            boxes: boxes_writer,
            pods: pods_writer,
        },
    )
}

/// Works until asked to stop; the passes that are under way are finished.
async fn lead(cx: Arc<Context>, writers: Writers) -> anyhow::Result<()> {
    let boxes = Api::<CachedBox>::all(cx.client.clone());
    let boxes = watcher(boxes, watcher::Config::default()).default_backoff();
    let boxes = reflector(writers.boxes, boxes)
        .inspect(on_list(&cx, |cx| &cx.boxes_listed))
        .applied_objects();
    let pods = Api::<PodView>::all(cx.client.clone());
    let pods = watcher(pods, watcher::Config::default().labels(BOX_UID_LABEL)).default_backoff();
    let pods = reflector(writers.pods, pods)
        .inspect(on_list(&cx, |cx| &cx.pods_listed))
        .touched_objects();

    tokio::spawn(announce_start(cx.clone()));
    tokio::spawn(orphans::watch(cx.clone()));
    Controller::for_stream(boxes, cx.boxes.clone())
        .owns_stream(pods)
        // Without a bound: passes queue for the slots of the context, in order.
        .with_config(controller::Config::default().concurrency(0))
        .graceful_shutdown_on(asked_to_stop())
        .run(reconcile, on_error, cx.clone())
        .for_each(|result| {
            note(&cx, result);
            std::future::ready(())
        })
        .await;
    tracing::info!("stopped as asked");
    Ok(())
}

/// Failed passes are logged where they fail; here it is the watches.
fn note<T, E: std::error::Error>(
    cx: &Context,
    result: Result<T, controller::Error<E, watcher::Error>>,
) {
    if let Err(controller::Error::QueueError(error)) = result {
        cx.metrics.count_error("watch");
        tracing::warn!(error = %error, "a watch failed and is taken up again");
    }
}

/// Sets a gate once a watch has its first whole list. (A store's own `wait_until_ready` wakes only
/// one of those that wait for it.)
fn on_list<K>(
    cx: &Arc<Context>,
    gate: fn(&Context) -> &SetOnce<()>,
) -> impl FnMut(&Result<watcher::Event<K>, watcher::Error>) + use<K> {
    let cx = cx.clone();
    move |event| {
        if let Ok(watcher::Event::InitDone) = event {
            // It is set already when a watch lists again.
            let _ = gate(&cx).set(());
        }
    }
}

/// One line about what a start found.
async fn announce_start(cx: Arc<Context>) {
    let began = Timestamp::now();
    cx.boxes_listed.wait().await;
    cx.pods_listed.wait().await;
    cx.ready.store(true, Ordering::Relaxed);
    let boxes = cx.boxes.state();
    let took = Timestamp::now().duration_since(began).as_millis();
    tracing::info!(
        boxes = boxes.len(),
        ended = boxes.iter().filter(|object| object.has_ended()).count(),
        pods = cx.pods.len(),
        took_ms = i64::try_from(took).unwrap_or(i64::MAX),
        "the controller has started"
    );
}

async fn asked_to_stop() {
    let (terminate, interrupt) = (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    );
    match (terminate, interrupt) {
        (Ok(mut terminate), Ok(mut interrupt)) => {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        }
        _ => std::future::pending().await,
    }
}
