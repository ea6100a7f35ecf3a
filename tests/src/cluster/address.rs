//! Where everything listens: loopback, and a bridge that the cluster makes for itself.
//!
//! Both ranges come from 198.18.0.0/15, which is set aside for tests of this kind and routed nowhere.

/// The bridge to which every pod is attached.
pub(crate) const BRIDGE: &str = "boxes0";
/// The bridge's own address: the node's address, and the one at which pods reach the API server.
pub(crate) const NODE_IP: &str = "198.19.0.1";
/// The range from which pods get their addresses; [`NODE_IP`] is its first.
pub(crate) const POD_RANGE: &str = "198.19.0.0/16";
/// The length of [`POD_RANGE`]'s prefix.
pub(crate) const POD_PREFIX: u8 = 16;
/// The range of Service addresses.
pub(crate) const SERVICE_RANGE: &str = "198.18.0.0/16";
/// The `kubernetes` Service: always the first address of [`SERVICE_RANGE`].
pub(crate) const API_SERVICE_IP: &str = "198.18.0.1";
/// Where pods would look for DNS. Nothing answers there, and the kubelet does not warn.
pub(crate) const DNS_IP: &str = "198.18.0.10";
/// For everything that only this machine's own programs reach.
pub(crate) const LOOPBACK: &str = "127.0.0.1";

/// The API server, on loopback and on the bridge.
pub(crate) const API_PORT: u16 = 16443;
/// etcd, for its one client.
pub(crate) const ETCD_PORT: u16 = 16379;
/// etcd, for the peers that it does not have.
pub(crate) const ETCD_PEER_PORT: u16 = 16380;
/// The registry that serves every image.
pub(crate) const REGISTRY_PORT: u16 = 16500;
/// The controller manager's metrics and health.
pub(crate) const CONTROLLER_MANAGER_PORT: u16 = 16257;
/// The scheduler's metrics and health.
pub(crate) const SCHEDULER_PORT: u16 = 16259;
/// The kubelet's health.
pub(crate) const KUBELET_HEALTH_PORT: u16 = 16248;
/// kube-proxy's health.
pub(crate) const PROXY_HEALTH_PORT: u16 = 16256;
/// kube-proxy's metrics.
pub(crate) const PROXY_METRICS_PORT: u16 = 16249;

/// The only node's name.
pub(crate) const NODE: &str = "boxes";

/// The API server as this machine's programs reach it.
pub(crate) fn api_url() -> String {
    format!("https://{LOOPBACK}:{API_PORT}")
}

/// The registry as containerd reaches it.
pub(crate) fn registry_url() -> String {
    format!("http://{LOOPBACK}:{REGISTRY_PORT}")
}
