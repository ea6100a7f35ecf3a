//! From the command line to the running server.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use boxes_program::asked_to_stop;
use kube::Client;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::access::Access;
use super::args::Args;
use super::certificate::{Files, Serving};
use super::context::{Context, KnownProxy, Source};
use super::feed::Timing;
use super::health::Health;
use super::late::LateArchive;
use super::live::Live;
use super::metrics::Metrics;
use super::serve::Limits;
use super::slots::Slots;
use super::{authn, serve, tls};
use crate::archive::ArchiveArgs;

/// Between being unready and closing the door: until then requests are still sent here. With the time
/// that answers have to end, less than the usual 30 s of a pod.
const SETTLE: Duration = Duration::from_secs(5);

/// Runs until a signal asks to stop.
///
/// # Errors
/// The cluster is not configured, an address cannot be listened on, or there is no certificate.
pub async fn run(args: Args) -> anyhow::Result<()> {
    args.logging.start()?;
    tls::install();
    let client = Client::try_default()
        .await
        .context("no cluster: set KUBECONFIG, or run in a pod with a ServiceAccount")?;
    let tls = tls::config(certificate(&args).await?)?;
    let (known, proxy) = watch::channel(None);
    match args.front_ca.clone() {
        Some(ca) => tokio::spawn(authn::keep_file(ca, known)),
        None => tokio::spawn(authn::keep(client.clone(), known)),
    };
    let cx = Arc::new(context(client, &args, proxy)?);
    let (unready, stopping) = watch::channel(false);
    let (close, closed) = watch::channel(false);
    let listener = TcpListener::bind(args.listen)
        .await
        .with_context(|| format!("cannot listen on {}: choose another --listen", args.listen))?;
    let address = listener.local_addr()?;
    let health = Health {
        cx: cx.clone(),
        stopping,
    };
    let health = boxes_program::serve("--health-listen", args.health_listen, health).await?;
    tracing::info!(listen = %address, health = %health, "the log API has started");
    tokio::spawn(stop(unready, close));
    serve::serve(listener, tls, cx, closed, Limits::default()).await;
    tracing::info!("stopped as asked");
    Ok(())
}

async fn certificate(args: &Args) -> anyhow::Result<Arc<Serving>> {
    match (&args.tls_cert, &args.tls_key) {
        (Some(certificate), Some(key)) => {
            let files = Files {
                certificate: certificate.clone(),
                key: key.clone(),
            };
            Serving::from_files(files).await
        }
        _ => Serving::self_made(&args.self_signed),
    }
}

fn context(client: Client, args: &Args, proxy: KnownProxy) -> anyhow::Result<Context> {
    let cluster = Arc::new(Live::new(client));
    Ok(Context {
        access: Access::new(cluster.clone()),
        cluster,
        source: source(args)?,
        proxy,
        slots: Slots::new(args.max_streams.into(), args.max_streams_per_user.into()),
        metrics: Arc::new(Metrics::new()),
        timing: Timing::default(),
    })
}

fn source(args: &Args) -> anyhow::Result<Source> {
    if let Some(upstream) = &args.reader {
        return Ok(Source::Upstream(Box::new(upstream.clone())));
    }
    let known = args.archive.as_ref().context("no --archive")?;
    Ok(Source::Archive {
        archive: Arc::new(archive(known)),
        behind_front: args.front_ca.is_some(),
    })
}

fn archive(args: &ArchiveArgs) -> LateArchive {
    let archive = LateArchive::new(args.url.clone(), args.options());
    if let Err(error) = archive.archive() {
        tracing::error!(error = %error, "the archive cannot be opened; this is tried again for each request");
    }
    archive
}

/// Waits for a signal; then says that no more requests are wanted, and later takes none.
async fn stop(unready: watch::Sender<bool>, close: watch::Sender<bool>) {
    asked_to_stop().await;
    unready.send_replace(true);
    tokio::time::sleep(SETTLE).await;
    close.send_replace(true);
    // Whoever listens is to see the word before it is gone.
    close.closed().await;
}
