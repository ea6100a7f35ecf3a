//! The node's two Kubernetes programs: kubelet and kube-proxy.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::address::{
    DNS_IP, KUBELET_HEALTH_PORT, LOOPBACK, NODE, NODE_IP, POD_RANGE, PROXY_HEALTH_PORT,
    PROXY_METRICS_PORT,
};
use super::cgroups;
use super::components::flag;
use super::host::{CgroupDriver, Host};
use super::kubeconfig;
use super::layout::Layout;
use super::pki::{Authority, Pki};
use super::process::Component;
use super::tools::Tools;

/// Where the kubelet links to the logs of containers, whatever its configuration says.
const CONTAINER_LOGS: &str = "/var/log/containers";

/// Where the kubelet listens for device plugins, whatever its root folder is.
const DEVICE_PLUGINS: &str = "/var/lib/kubelet/device-plugins";

/// The kubelet as a program to start.
pub(crate) fn kubelet(layout: &Layout, tools: &Tools) -> Component {
    Component {
        name: "kubelet",
        program: tools.kubernetes.join("kubelet"),
        arguments: vec![
            flag("config", layout.config().join("kubelet.yaml").display()),
            flag("kubeconfig", kubeconfig::path(layout, "kubelet").display()),
            flag("hostname-override", NODE),
            flag("node-ip", NODE_IP),
            flag("root-dir", layout.kubelet().display()),
            flag("cert-dir", layout.kubelet().join("pki").display()),
        ],
    }
}

/// The kubelet's configuration. Cgroup v1 is accepted where the machine has nothing newer.
pub(crate) fn config(layout: &Layout, pki: &Pki, host: Host) -> Value {
    let cgroup_root = match host.cgroup_driver {
        CgroupDriver::Systemd => "/".to_owned(),
        CgroupDriver::Cgroupfs => format!("/{}", cgroups::ROOT),
    };
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": NODE_IP,
        "healthzBindAddress": LOOPBACK,
        "healthzPort": KUBELET_HEALTH_PORT,
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": pki.certificate(Authority::Cluster.name())},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": pki.certificate("kubelet"),
        "tlsPrivateKeyFile": pki.key("kubelet"),
        "containerRuntimeEndpoint": format!("unix://{}", layout.containerd_socket().display()),
        "podLogsDir": layout.pods(),
        "volumePluginDir": layout.kubelet().join("volume-plugins"),
        "cgroupDriver": host.cgroup_driver.name(),
        "cgroupRoot": cgroup_root,
        "cgroupsPerQOS": true,
        "failCgroupV1": false,
        "failSwapOn": false,
        "oomScoreAdj": if host.may_lower_oom_score { -999 } else { 0 },
        "makeIPTablesUtilChains": false,
        "clusterDNS": [DNS_IP],
        "clusterDomain": "cluster.local",
        "resolvConf": "",
        "maxPods": 250,
        "serializeImagePulls": false,
        "registryPullQPS": 0,
        "eventRecordQPS": 0,
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {"memory.available": "100Mi"},
        "volumeStatsAggPeriod": "10s",
    })
}

/// kube-proxy as a program to start.
pub(crate) fn proxy(layout: &Layout, tools: &Tools) -> Component {
    Component {
        name: "kube-proxy",
        program: tools.kubernetes.join("kube-proxy"),
        arguments: vec![flag(
            "config",
            layout.config().join("kube-proxy.yaml").display(),
        )],
    }
}

/// kube-proxy's configuration.
///
/// All Service traffic is masqueraded: pods share one bridge, so an answer would otherwise go straight
/// to the asking pod, which never asked that address.
pub(crate) fn proxy_config(layout: &Layout, host: Host) -> Value {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": kubeconfig::path(layout, "kube-proxy")},
        "mode": "nftables",
        "nftables": {"masqueradeAll": true, "minSyncPeriod": "0s"},
        "clusterCIDR": POD_RANGE,
        "hostnameOverride": NODE,
        "bindAddress": LOOPBACK,
        "healthzBindAddress": format!("{LOOPBACK}:{PROXY_HEALTH_PORT}"),
        "metricsBindAddress": format!("{LOOPBACK}:{PROXY_METRICS_PORT}"),
        "nodePortAddresses": [format!("{NODE_IP}/32")],
        "oomScoreAdj": if host.may_lower_oom_score { -999 } else { 0 },
        "conntrack": {"maxPerCore": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    })
}

/// Deletes what the kubelet puts outside of its folders: links to logs, and a socket.
pub(crate) fn remove_traces(layout: &Layout) -> Result<()> {
    remove_links(Path::new(CONTAINER_LOGS), &layout.pods())?;
    let folder = Path::new(DEVICE_PLUGINS);
    let socket = folder.join("kubelet.sock");
    // A kubelet that is not ours listens there.
    if UnixStream::connect(&socket).is_ok() {
        return Ok(());
    }
    let removed = fs::remove_file(&socket);
    if removed.is_ok() {
        // Fails where something else is in them.
        let _ = fs::remove_dir(folder).and_then(|()| fs::remove_dir("/var/lib/kubelet"));
    }
    Ok(())
}

fn remove_links(folder: &Path, target: &Path) -> Result<()> {
    for entry in fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
    {
        let path = entry.path();
        if fs::read_link(&path).is_ok_and(|to| to.starts_with(target)) {
            fs::remove_file(&path).with_context(|| format!("cannot delete {}", path.display()))?;
        }
    }
    // Fails where another kubelet has links there.
    let _ = fs::remove_dir(folder);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_to_our_logs_are_deleted() {
        let folder = std::env::temp_dir().join(format!("bx-links-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        std::os::unix::fs::symlink("/ours/a.log", folder.join("a")).unwrap();
        std::os::unix::fs::symlink("/theirs/b.log", folder.join("b")).unwrap();
        remove_links(&folder, Path::new("/ours")).unwrap();
        let left: Vec<_> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(left, ["b"]);
    }
}
