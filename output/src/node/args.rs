//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use boxes_program::Logging;
use clap::Parser;

use crate::archive::ArchiveArgs;

/// Saves the output of the Boxes on one node.
#[derive(Clone, Debug, Parser)]
#[command(name = "boxes-collector", version)]
pub struct Args {
    /// What is logged, and how.
    #[command(flatten)]
    pub logging: Logging,

    /// Address that /livez, /readyz and /metrics are served on.
    #[arg(long, default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,

    /// The node whose pods are collected.
    #[arg(long, env = "NODE_NAME")]
    pub node: String,

    /// The node's folder of pod logs.
    #[arg(long, default_value = "/var/log/pods")]
    pub logs: PathBuf,

    /// Where output is kept.
    #[command(flatten)]
    pub archive: ArchiveArgs,

    /// How many MiB of output may wait in memory, over all boxes.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..))]
    pub memory: u16,

    /// Also delete the output of Boxes that are gone: the one collector does that holds this lease.
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = lease)]
    pub sweep_lease: Option<(String, String)>,
}

fn lease(text: &str) -> Result<(String, String), String> {
    let (namespace, name) = text.split_once('/').ok_or("must be NAMESPACE/NAME")?;
    Ok((namespace.to_owned(), name.to_owned()))
}
