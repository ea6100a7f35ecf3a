//! What the collector and the log API have in common as programs: parts of their command lines, log
//! lines (constant messages, values as fields), and the signals that end them.

use clap::ValueEnum;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For people.
    Text,
}

/// Reads a setting of the archive's backend, `KEY=VALUE`.
pub(crate) fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("must be KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// What is always said less loudly, unless `--log-level` names it.
const QUIET: &str = "kube_runtime=warn";

/// Starts logging to standard error.
pub(crate) fn start_logging(level: &str, format: LogFormat) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(format!("{QUIET},{level}"))
        .map_err(|error| anyhow::anyhow!("--log-level {level:?}: {error}"))?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false);
    match format {
        LogFormat::Json => lines
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .init(),
        LogFormat::Text => lines.with_ansi(false).init(),
    }
    Ok(())
}

/// Waits until a signal asks the process to stop.
pub(crate) async fn asked_to_stop() {
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
