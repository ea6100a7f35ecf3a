//! From the command line to the running controller.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use boxes_lifecycle::PodView;
use boxes_program::{DURATION, Election, asked_to_stop, serve};
use jiff::Timestamp;
use kube::Client;
use kube::runtime::reflector;
use kube::runtime::reflector::store::Writer;
use tokio::sync::SetOnce;

use crate::announce::Announcer;
use crate::args::Args;
use crate::cache::CachedBox;
use crate::context::Context;
use crate::health::Health;
use crate::memory::Memories;
use crate::metrics::Metrics;
use crate::otlp::Receiver;
use crate::queue::Queue;
use crate::supervision::Supervision;
use crate::traces::Traces;
use crate::{orphans, passes};

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
    args.logging.start()?;
    let client = Client::try_default()
        .await
        .context("no cluster: set KUBECONFIG, or run in a pod with a ServiceAccount")?;
    let (cx, writers) = context(client.clone(), &args)?;
    serve("--listen", args.listen, Health(cx.clone())).await?;

    let at_once = args.concurrency.into();
    let Some(name) = &args.lease_name else {
        return lead(cx, writers, at_once).await;
    };
    let mut election = Election::new(
        client,
        &args.lease_namespace,
        name,
        &args.identity,
        DURATION,
    );
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
        done = lead(cx, writers, at_once) => {
            election.release().await.context("giving up the lease")?;
            done
        }
        lost = election.keep() => Err(lost),
    }
}

fn context(client: Client, args: &Args) -> anyhow::Result<(Arc<Context>, Writers)> {
    let metrics = Arc::new(Metrics::new());
    let traces = traces(&metrics).context("traces cannot be exported")?;
    let (boxes, boxes_writer) = reflector::store();
    let (pods, pods_writer) = reflector::store();
    let cx = Context {
        announcer: Announcer::start(
            client.clone(),
            args.identity.clone(),
            metrics.events.clone(),
        ),
        supervision: Supervision::start(client.clone(), args, metrics.clone()),
        saves_output: args.output,
        traces,
        client,
        pods,
        boxes,
        memories: Memories::default(),
        metrics,
        queue: Queue::new(),
        boxes_listed: SetOnce::new(),
        pods_listed: SetOnce::new(),
        ready: AtomicBool::new(false),
    };
    let writers = Writers {
        boxes: boxes_writer,
        pods: pods_writer,
    };
    Ok((Arc::new(cx), writers))
}

/// What exports traces, if the environment names a receiver of them.
fn traces(metrics: &Metrics) -> anyhow::Result<Traces> {
    let receiver = Receiver::of_environment()?;
    Traces::start(receiver.as_ref(), metrics.traces.clone())
}

/// Works until asked to stop; the passes that are under way are finished.
async fn lead(cx: Arc<Context>, writers: Writers, at_once: usize) -> anyhow::Result<()> {
    tokio::spawn(announce_start(cx.clone()));
    tokio::spawn(orphans::watch(cx.clone()));
    tokio::spawn(passes::watch_boxes(cx.clone(), writers.boxes));
    tokio::spawn(passes::watch_pods(cx.clone(), writers.pods));
    passes::make(&cx, at_once, asked_to_stop()).await;
    cx.traces.finish().await;
    tracing::info!("stopped as asked");
    Ok(())
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
