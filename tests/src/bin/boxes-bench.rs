//! Measures Boxes on the cluster that `boxes-cluster` starts.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use boxes_tests::bench::{Options, Scenario, run};
use boxes_tests::cluster::Cluster;
use clap::Parser;

/// What Boxes costs and how fast it is. `docs/performance.md` says how each figure is taken.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Runs only this scenario; may be given more than once
    #[arg(long, value_enum)]
    only: Vec<Scenario>,
    /// The controller's program, a release build
    #[arg(long, default_value = "target/image/boxes-controller")]
    controller: PathBuf,
    /// The file for the figures
    #[arg(long, default_value = "target/bench.json")]
    output: PathBuf,
    /// The figures to compare with
    #[arg(long, default_value = "tests/bench/last.json")]
    last: PathBuf,
    /// What was built, for the file
    #[arg(long, default_value = "unknown")]
    revision: String,
}

#[tokio::main]
async fn main() -> ExitCode {
    match measure(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn measure(arguments: Arguments) -> Result<()> {
    let program = std::env::current_exe().context("this program does not know its own path")?;
    let cluster = Cluster::from_env(program)?;
    let options = Options {
        only: arguments.only,
        controller: arguments.controller,
        output: arguments.output,
        last: arguments.last,
        revision: arguments.revision,
    };
    run(&cluster, &options).await
}
