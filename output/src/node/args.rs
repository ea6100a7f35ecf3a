//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Parser;

use crate::program::{LogFormat, setting};

/// Saves the output of the Boxes on one node.
#[derive(Clone, Debug, Parser)]
#[command(name = "boxes-collector", version)]
pub struct Args {
    /// How much to log: error, warn, info, debug, trace, or a filter such as `info,kube=debug`.
    #[arg(long, default_value = "info")]
    pub log_level: String,

    /// How to write log lines.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,

    /// Address that /livez, /readyz and /metrics are served on.
    #[arg(long, default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,

    /// The node whose pods are collected.
    #[arg(long, env = "NODE_NAME")]
    pub node: String,

    /// The node's folder of pod logs.
    #[arg(long, default_value = "/var/log/pods")]
    pub logs: PathBuf,

    /// Where the output goes: <file:///folder>, <s3://bucket/prefix>, <gs://bucket/prefix> or
    /// <az://container/prefix>. Credentials come from the environment.
    #[arg(long, value_name = "URL", env = "BOXES_ARCHIVE")]
    pub archive: String,

    /// A setting of the archive's backend, such as `aws_endpoint=http://minio:9000`; may be given
    /// more than once.
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub archive_option: Vec<(String, String)>,

    /// How many MiB of output may wait in memory, over all boxes.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..))]
    pub memory: u16,

    /// Also delete the output of Boxes that are gone. One collector of a cluster is enough, but more
    /// do no harm.
    #[arg(long)]
    pub sweep: bool,
}
