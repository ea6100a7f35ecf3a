//! What a machine must have before a cluster is started on it.

use std::path::Path;

use anyhow::{Result, bail};

use super::command;
use super::containerd::CNI_PLUGINS;

const PROGRAMS: [&str; 6] = ["ip", "nft", "runc", "mount", "setsid", "busybox"];

/// Refuses anyone but root.
pub(crate) fn must_be_root() -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!("only root can start or end a cluster: it has mounts, cgroups and a bridge");
    }
    Ok(())
}

/// Names what is missing.
pub(crate) fn check() -> Result<()> {
    let mut missing: Vec<&str> = PROGRAMS
        .into_iter()
        .filter(|name| command::which(name).is_none())
        .collect();
    if !CNI_PLUGINS
        .iter()
        .any(|folder| Path::new(folder).join("bridge").is_file())
    {
        missing.push("the CNI plugins");
    }
    if !missing.is_empty() {
        bail!(
            "missing on this machine: {}; run tests/cluster/setup.sh",
            missing.join(", ")
        );
    }
    Ok(())
}
