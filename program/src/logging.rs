//! Log lines: constant messages, values as fields.

use clap::{Args, ValueEnum};
use tracing_subscriber::EnvFilter;

/// What is always said less loudly, unless `--log-level` names it: kube's spans repeat, in every line,
/// what our fields say.
const QUIET: &str = "kube_runtime=warn";

/// What the command line says about log lines.
#[derive(Clone, Debug, Args)]
pub struct Logging {
    /// How much to log: error, warn, info, debug, trace, or a filter such as `info,kube=debug`.
    #[arg(long, default_value = "info")]
    log_level: String,

    /// How to write log lines.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For people.
    Text,
}

impl Logging {
    /// Starts logging to standard error.
    ///
    /// # Errors
    /// The level is not a filter.
    pub fn start(&self) -> anyhow::Result<()> {
        let level = &self.log_level;
        let filter = EnvFilter::try_new(format!("{QUIET},{level}"))
            .map_err(|error| anyhow::anyhow!("--log-level {level:?}: {error}"))?;
        let lines = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(std::io::stderr)
            .with_target(false);
        match self.log_format {
            LogFormat::Json => lines
                .json()
                .flatten_event(true)
                .with_current_span(false)
                .init(),
            LogFormat::Text => lines.with_ansi(false).init(),
        }
        Ok(())
    }
}
