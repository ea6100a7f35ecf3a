//! Starts and ends the cluster on which Boxes is tested and shown.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use boxes_tests::cluster::{Cluster, Progress, registry};
use clap::{Parser, Subcommand};

/// A real Kubernetes cluster on this machine, for tests and demonstrations.
///
/// Its state is in `$BOXES_STATE`, else in `$XDG_STATE_HOME/boxes/cluster`, else in
/// `~/.local/state/boxes/cluster`.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Says nothing about its progress
    #[arg(long, global = true)]
    quiet: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Starts the cluster and returns when it is ready; uses the one that runs if it is healthy
    Up,
    /// Ends the cluster and removes every trace of it
    Down,
    /// Prints the path of the administrator's kubeconfig
    Kubeconfig,
    /// Shows whether the cluster works; fails if it does not
    Status,
    /// Adds the images of OCI archives, from which pods may then run
    Import {
        /// OCI archives, as buildah and podman write them with `push NAME oci-archive:FILE:NAME`
        #[arg(required = true)]
        archives: Vec<PathBuf>,
    },
    /// Prints the log of one of the cluster's programs
    Logs {
        /// Its name, such as kubelet; `audit` is the API server's audit log
        component: String,
    },
    /// Prints the path of a program that fits the cluster, building it if it is missing
    Tool {
        /// kubectl, helm or ctr
        name: String,
    },
    /// Serves the images in a folder: one of the cluster's own programs
    #[command(hide = true)]
    Registry {
        /// The folder
        folder: PathBuf,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let progress = if arguments.quiet {
        Progress::quiet()
    } else {
        Progress::default()
    };
    match run(arguments.command, progress).await {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(command: Command, progress: Progress) -> Result<ExitCode> {
    let program = std::env::current_exe().context("this program does not know its own path")?;
    let cluster = Cluster::from_env(program)?;
    match command {
        Command::Up => cluster.up(progress).await?,
        Command::Down => cluster.down(progress).await?,
        Command::Kubeconfig => say(&cluster.kubeconfig().display().to_string())?,
        Command::Status => return status(&cluster).await,
        Command::Import { archives } => import(&cluster, &archives)?,
        Command::Logs { component } => logs(&cluster, &component)?,
        Command::Tool { name } => say(&Cluster::tool(&name)?.display().to_string())?,
        Command::Registry { folder } => registry::serve(folder).await?,
    }
    Ok(ExitCode::SUCCESS)
}

fn say(line: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{line}").context("cannot write to standard output")
}

async fn status(cluster: &Cluster) -> Result<ExitCode> {
    let status = cluster.status().await;
    for (name, pid) in &status.components {
        let state = pid.map_or_else(|| "ended".to_owned(), |pid| format!("process {pid}"));
        say(&format!("{name:<25} {state}"))?;
    }
    match &status.trouble {
        None => say("the cluster is ready").map(|()| ExitCode::SUCCESS),
        Some(trouble) => say(trouble).map(|()| ExitCode::FAILURE),
    }
}

fn import(cluster: &Cluster, archives: &[PathBuf]) -> Result<()> {
    for archive in archives {
        for name in cluster.import(archive)? {
            say(&name)?;
        }
    }
    Ok(())
}

fn logs(cluster: &Cluster, component: &str) -> Result<()> {
    let path = cluster.log(component);
    let mut file = std::fs::File::open(&path)
        .with_context(|| format!("there is no log of {component}: {}", path.display()))?;
    std::io::copy(&mut file, &mut std::io::stdout().lock()).context("cannot print the log")?;
    Ok(())
}
