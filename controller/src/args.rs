//! The command line.

use std::net::SocketAddr;

use boxes_program::Logging;
use clap::{Parser, ValueEnum};

/// Runs Boxes: one command in one pod, with an honest record of how it ended.
#[derive(Clone, Debug, Parser)]
#[command(name = "boxes-controller", version)]
pub struct Args {
    /// What is logged, and how.
    #[command(flatten)]
    pub logging: Logging,

    /// Address that /livez, /readyz and /metrics are served on.
    #[arg(long, default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,

    /// Namespace of the lease that lets only one controller write.
    #[arg(long, default_value = "default")]
    pub lease_namespace: String,

    /// Name of the lease. Without it the controller trusts that it is alone.
    #[arg(long)]
    pub lease_name: Option<String>,

    /// Who holds the lease; in a pod, the pod's name.
    #[arg(long, default_value = "boxes-controller")]
    pub identity: String,

    /// How many Boxes are worked on at once.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..))]
    pub concurrency: u16,

    /// Image of the supervisor that commands run under, best by digest. Without it they run
    /// unsupervised, and how they end is known from the kubelet's exit code alone.
    #[arg(long)]
    pub supervisor_image: Option<String>,

    /// When that image is pulled: Always, `IfNotPresent` or Never.
    #[arg(long)]
    pub supervisor_pull_policy: Option<String>,

    /// Keep the pod of each new box until a collector on its node has saved its output. Without it, what
    /// is not saved ten seconds after the end of a box is given up.
    #[arg(long)]
    pub output: bool,

    /// How the supervisor gets into boxes.
    #[arg(long, value_enum, default_value_t = InjectionChoice::Auto)]
    pub supervisor_injection: InjectionChoice,
}

/// How the supervisor gets into boxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InjectionChoice {
    /// By image volume where every node that takes pods supports it, else by init container.
    Auto,
    /// Its image is mounted: kubelet 1.35 and containerd 2.1 or CRI-O 1.33 on every node.
    ImageVolume,
    /// An init container copies it.
    InitContainer,
}
