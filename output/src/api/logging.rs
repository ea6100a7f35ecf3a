//! Log lines: constant messages, values as fields.

use tracing_subscriber::EnvFilter;

use super::args::{Args, LogFormat};

/// What is always said less loudly, unless `--log-level` names it.
const QUIET: &str = "kube_runtime=warn";

/// Starts logging to standard error.
pub(crate) fn start(args: &Args) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(format!("{QUIET},{}", args.log_level))
        .map_err(|error| anyhow::anyhow!("--log-level {:?}: {error}", args.log_level))?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false);
    match args.log_format {
        LogFormat::Json => lines
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .init(),
        LogFormat::Text => lines.with_ansi(false).init(),
    }
    Ok(())
}
