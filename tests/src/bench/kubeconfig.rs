//! Who the benchmark and the controller are to the API server.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::{Value, json};

use crate::harness::{DEPLOYMENT, NAMESPACE};

/// How long the controller's token is good for: longer than any run.
const VALID_SECONDS: i64 = 2 * 60 * 60;

/// A client with the rights of a kubeconfig.
pub(super) async fn client(path: &Path) -> Result<Client> {
    let file = Kubeconfig::read_from(path)
        .with_context(|| format!("cannot read the kubeconfig {}", path.display()))?;
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    config.proxy_url = None;
    Client::try_from(config).context("cannot make a client")
}

/// Writes a kubeconfig of the controller's own ServiceAccount: it works with the rights that the chart
/// gives it, and the audit log tells its requests from all others.
pub(super) async fn for_the_controller(
    client: &Client,
    admin: &Path,
    folder: &Path,
) -> Result<PathBuf> {
    let text = fs::read_to_string(admin).context("cannot read the kubeconfig")?;
    let mut config: Value = serde_saphyr::from_str(&text).context("cannot read the kubeconfig")?;
    let user = json!({"token": token(client).await?});
    let known = config
        .pointer_mut("/users/0/user")
        .context("no user in the kubeconfig")?;
    *known = user;
    let path = folder.join("controller.kubeconfig");
    let _ = fs::remove_file(&path);
    fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .and_then(|mut file| file.write_all(config.to_string().as_bytes()))
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

async fn token(client: &Client) -> Result<String> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
    let asked = TokenRequest {
        spec: Some(TokenRequestSpec {
            expiration_seconds: Some(VALID_SECONDS),
            ..TokenRequestSpec::default()
        }),
        ..TokenRequest::default()
    };
    let given = accounts
        .create_token_request(DEPLOYMENT, &PostParams::default(), &asked)
        .await
        .context("no token for the controller: is Boxes installed in this cluster?")?;
    let status = given.status.context("a token request without an answer")?;
    status.token.context("a token request without a token")
}
