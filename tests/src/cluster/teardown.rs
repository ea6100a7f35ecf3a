//! Ending a cluster, whole or half torn down, so that nothing is left.

use anyhow::Result;

use super::host::{self, Host};
use super::layout::Layout;
use super::{cgroups, containerd, kubelet, mounts, network, process};

/// Whether there is anything to tear down.
pub(crate) fn is_needed(layout: &Layout) -> bool {
    layout.root().exists() || layout.run().exists() || network::bridge_exists()
}

/// Removes processes, mounts, cgroups, links, the network and the files, in the order in which each
/// lets go of the next. Every step copes with what is already gone.
pub(crate) async fn run(layout: &Layout, host: Host) -> Result<()> {
    process::kill_all(layout).await?;
    cgroups::remove(host.cgroup_driver).await?;
    mounts::detach_below(&[layout.root(), layout.run()])?;
    containerd::remove_shim_sockets(layout)?;
    kubelet::remove_traces(layout)?;
    network::remove()?;
    host::restore_sysctls(layout)?;
    layout.remove()
}
