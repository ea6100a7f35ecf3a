//! The bridge, the route of the service range, and the guard that keeps the cluster to itself.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::address::{API_PORT, BRIDGE, NODE_IP, POD_PREFIX, POD_RANGE, SERVICE_RANGE};
use super::command::{run, succeeds, which};
use super::host::set_sysctl;

/// Our own nft table.
const GUARD: &str = "boxes-cluster";

/// The name of the pod network. CNI keeps a result per container under it.
pub(crate) const POD_NETWORK: &str = "boxes-cluster";

/// Where CNI keeps those results, whatever its configuration says.
const CNI_RESULTS: &str = "/var/lib/cni/results";

/// Makes the bridge, the route and the guard.
pub(crate) fn create() -> Result<()> {
    let address = format!("{NODE_IP}/{POD_PREFIX}");
    run("ip", &["link", "add", BRIDGE, "type", "bridge"])?;
    set_sysctl(&format!("net/ipv4/conf/{BRIDGE}/send_redirects"), "0")?;
    run("ip", &["address", "add", &address, "dev", BRIDGE])?;
    run("ip", &["link", "set", BRIDGE, "up"])?;
    run(
        "ip",
        &[
            "route",
            "replace",
            SERVICE_RANGE,
            "dev",
            BRIDGE,
            "src",
            NODE_IP,
        ],
    )?;
    load(&guard())
}

/// Nobody outside reaches the API server, pods reach nothing outside, and what kube-proxy did not
/// send to a pod is refused at once.
pub(crate) fn guard() -> String {
    format!(
        "table inet {GUARD} {{
    chain input {{
        type filter hook input priority filter; policy accept;
        tcp dport {API_PORT} iifname != {{ \"lo\", \"{BRIDGE}\" }} drop
    }}
    # Before kube-proxy's chain, which drops what this refuses.
    chain forward {{
        type filter hook forward priority -120; policy accept;
        ip daddr {SERVICE_RANGE} meta l4proto tcp reject with tcp reset
        ip daddr {SERVICE_RANGE} reject
        iifname \"{BRIDGE}\" oifname != \"{BRIDGE}\" meta l4proto tcp reject with tcp reset
        iifname \"{BRIDGE}\" oifname != \"{BRIDGE}\" reject
        oifname \"{BRIDGE}\" iifname != \"{BRIDGE}\" drop
    }}
}}
"
    )
}

/// Feeds rules to nft.
fn load(rules: &str) -> Result<()> {
    let mut nft =
        Command::new(which("nft").context("nft is not installed: run tests/cluster/setup.sh")?)
            .args(["-f", "-"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot run nft")?;
    if let Some(mut input) = nft.stdin.take() {
        input
            .write_all(rules.as_bytes())
            .context("cannot write to nft")?;
    }
    let done = nft.wait_with_output().context("cannot wait for nft")?;
    if !done.status.success() {
        bail!(
            "nft refused the guard's rules: {}",
            String::from_utf8_lossy(&done.stderr).trim()
        );
    }
    Ok(())
}

/// The pod network, for CNI. Host ports are not offered: they would need iptables.
pub(crate) fn cni_config(ipam: &Path) -> serde_json::Value {
    serde_json::json!({
        "cniVersion": "0.4.0",
        "name": POD_NETWORK,
        "plugins": [{
            "type": "bridge",
            "bridge": BRIDGE,
            "isGateway": true,
            "ipMasq": false,
            "ipam": {
                "type": "host-local",
                "dataDir": ipam,
                "ranges": [[{"subnet": POD_RANGE, "gateway": NODE_IP}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        }],
    })
}

/// Removes the bridge with what hangs on it (its route goes with it), our table and kube-proxy's.
pub(crate) fn remove() -> Result<()> {
    for veth in ports() {
        // It may vanish by itself at this moment, with its pod's network namespace.
        let _ = run("ip", &["link", "delete", &veth]);
    }
    if bridge_exists() {
        run("ip", &["link", "delete", BRIDGE])?;
    }
    for (family, table) in [("inet", GUARD), ("ip", "kube-proxy"), ("ip6", "kube-proxy")] {
        if which("nft").is_some() && succeeds("nft", &["list", "table", family, table]) {
            run("nft", &["delete", "table", family, table])?;
        }
    }
    remove_cni_results()
}

/// Whether the bridge is there.
pub(crate) fn bridge_exists() -> bool {
    Path::new("/sys/class/net").join(BRIDGE).exists()
}

/// The ends of pods' links on the bridge.
fn ports() -> Vec<String> {
    let folder = Path::new("/sys/class/net").join(BRIDGE).join("brif");
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect()
}

fn remove_cni_results() -> Result<()> {
    let ours = format!("{POD_NETWORK}-");
    for path in files_in(Path::new(CNI_RESULTS)) {
        if path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(&ours))
        {
            fs::remove_file(&path).with_context(|| format!("cannot delete {}", path.display()))?;
        }
    }
    // Fails where another network has results of its own.
    let _ = fs::remove_dir(CNI_RESULTS).and_then(|()| fs::remove_dir("/var/lib/cni"));
    Ok(())
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect()
}
