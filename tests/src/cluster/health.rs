//! Whether the cluster works, asked of its API.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Node, ServiceAccount};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};

use super::address::NODE;
use super::layout::Layout;
use super::wait::Seen;

/// A client with the administrator's rights.
pub(crate) async fn client(layout: &Layout) -> Result<Client> {
    let path = layout.kubeconfig();
    let file = Kubeconfig::read_from(&path)
        .with_context(|| format!("cannot read the kubeconfig {}", path.display()))?;
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    // Whatever proxy the environment names, it is not meant for this machine's own cluster.
    config.proxy_url = None;
    Client::try_from(config).context("cannot make a client from the kubeconfig")
}

/// Whether the API server says that it is ready.
pub(crate) async fn api(client: &Client) -> Seen<()> {
    let request = http::Request::get("/readyz").body(Vec::new());
    match request {
        Ok(request) => match client.request_text(request).await {
            Ok(_) => Seen::Ready(()),
            Err(error) => Seen::NotYet(error.to_string()),
        },
        Err(error) => Seen::NotYet(error.to_string()),
    }
}

/// Whether the node is ready.
pub(crate) async fn node(client: &Client) -> Seen<()> {
    let node = match Api::<Node>::all(client.clone()).get_opt(NODE).await {
        Ok(Some(node)) => node,
        Ok(None) => return Seen::NotYet("the node has not registered".into()),
        Err(error) => return Seen::NotYet(error.to_string()),
    };
    let conditions = node
        .status
        .and_then(|status| status.conditions)
        .unwrap_or_default();
    match conditions
        .iter()
        .find(|condition| condition.type_ == "Ready")
    {
        Some(ready) if ready.status == "True" => Seen::Ready(()),
        Some(ready) => Seen::NotYet(ready.message.clone().unwrap_or_default()),
        None => Seen::NotYet("the node has no Ready condition".into()),
    }
}

/// Whether pods can be made in the default namespace.
pub(crate) async fn service_account(client: &Client) -> Seen<()> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    match accounts.get_opt("default").await {
        Ok(Some(_)) => Seen::Ready(()),
        Ok(None) => Seen::NotYet("no ServiceAccount default in the namespace default".into()),
        Err(error) => Seen::NotYet(error.to_string()),
    }
}

/// All of them at once: the first that does not hold.
pub(crate) async fn all(client: &Client) -> Seen<()> {
    if let Seen::NotYet(seen) = api(client).await {
        return Seen::NotYet(format!("the API server: {seen}"));
    }
    if let Seen::NotYet(seen) = node(client).await {
        return Seen::NotYet(format!("the node {NODE}: {seen}"));
    }
    service_account(client).await
}
