//! Where a Service of the cluster is served, by its `EndpointSlice`s. Neither the cluster's DNS nor its
//! proxies of Services are needed for it, and what is known not to be ready is not tried.

use std::net::{IpAddr, SocketAddr};

use k8s_openapi::api::discovery::v1::{Endpoint, EndpointPort, EndpointSlice};
use kube::api::ListParams;
use kube::{Api, Client};

/// The name of the port in a Service.
const PORT: &str = "https";

/// A Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Service {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Service {
    /// The Service of a host `<name>.<namespace>.svc`; `None` if it is named otherwise.
    pub(crate) fn of_host(host: &str) -> Option<Self> {
        let (name, namespace) = host.strip_suffix(".svc")?.split_once('.')?;
        (!namespace.contains('.')).then(|| Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }

    /// The addresses that serve it now.
    pub(crate) async fn addresses(&self, client: &Client) -> Result<Vec<SocketAddr>, kube::Error> {
        let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), &self.namespace);
        let of_it =
            ListParams::default().labels(&format!("kubernetes.io/service-name={}", self.name));
        let list = slices.list(&of_it).await?;
        Ok(list.items.iter().flat_map(addresses).collect())
    }
}

fn addresses(slice: &EndpointSlice) -> Vec<SocketAddr> {
    let mut ports = slice.ports.iter().flatten();
    let is_it = |port: &&EndpointPort| port.name.as_deref() == Some(PORT);
    let port = ports.find(is_it).and_then(|port| port.port);
    let Some(port) = port.and_then(|port| u16::try_from(port).ok()) else {
        return Vec::new();
    };
    let endpoints = slice.endpoints.iter().flatten();
    let ready = endpoints.filter(|endpoint| is_ready(endpoint));
    let all = ready.flat_map(|endpoint| &endpoint.addresses);
    all.filter_map(|address| address.parse::<IpAddr>().ok())
        .map(|address| SocketAddr::new(address, port))
        .collect()
}

/// What is not told is to be taken for ready.
fn is_ready(endpoint: &Endpoint) -> bool {
    let conditions = endpoint.conditions.as_ref();
    conditions.and_then(|it| it.ready).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[rstest::rstest]
    #[case("reader.boxes-system.svc", Some(("boxes-system", "reader")))]
    #[case("reader.boxes-system.svc.cluster.local", None)]
    #[case("reader.example.org", None)]
    #[case("reader.svc", None)]
    #[case("a.b.c.svc", None)]
    fn a_service_is_named_by_its_host(#[case] host: &str, #[case] service: Option<(&str, &str)>) {
        let known = Service::of_host(host);
        let known = known
            .as_ref()
            .map(|it| (it.namespace.as_str(), it.name.as_str()));
        assert_eq!(known, service);
    }

    #[test]
    fn what_is_ready_is_tried_at_its_own_port() {
        let slice = serde_json::from_value(json!({
            "addressType": "IPv4",
            "ports": [{"name": "http", "port": 8080}, {"name": "https", "port": 8443}],
            "endpoints": [
                {"addresses": ["10.0.0.1"], "conditions": {"ready": true}},
                {"addresses": ["10.0.0.2"], "conditions": {"ready": false}},
                {"addresses": ["10.0.0.3"]},
                {"addresses": ["host.example.org"]},
            ],
        }))
        .unwrap();
        let expected = ["10.0.0.1:8443", "10.0.0.3:8443"].map(|it| it.parse().unwrap());
        assert_eq!(addresses(&slice), expected);
    }
}
