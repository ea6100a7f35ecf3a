//! The cluster that all tests of this process share.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::apps::v1::Deployment;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use tokio::sync::OnceCell;

use super::controller::{DEPLOYMENT, NAMESPACE, is_available};
use super::watch::{PATIENCE, until};

/// What to do when there is no cluster to test on.
const ADVICE: &str = "`make test` starts a cluster and runs this suite on it; or start one with \
    `make demo`, then: KUBECONFIG=$(make --silent kubeconfig) cargo test -p boxes-tests --test e2e";

/// The cluster was looked at once, and what was wrong with it then.
static CHECKED: OnceCell<Option<String>> = OnceCell::const_new();

/// How long the first answer of the cluster may take.
const FIRST_ANSWER: Duration = Duration::from_secs(20);

/// The file that `KUBECONFIG` names.
pub(super) fn kubeconfig_path() -> Result<PathBuf> {
    match std::env::var_os("KUBECONFIG").filter(|value| !value.is_empty()) {
        Some(path) => Ok(PathBuf::from(path)),
        None => bail!("KUBECONFIG is not set, so there is no cluster to test on. {ADVICE}"),
    }
}

/// A client for the runtime that asks. A client must not be used on another runtime than its own,
/// and every test has one: only the configuration is shared.
pub(super) async fn client() -> Result<Client> {
    let client = Client::try_from(Box::pin(config()).await?).context("cannot make a client")?;
    let trouble = CHECKED.get_or_init(|| trouble(client.clone())).await;
    match trouble {
        None => Ok(client),
        Some(trouble) => bail!("{trouble}"),
    }
}

/// A client of a user with no rights but those bound to that name.
pub(super) async fn client_as(user: &str) -> Result<Client> {
    let mut config = Box::pin(config()).await?;
    config.auth_info.impersonate = Some(user.to_owned());
    Client::try_from(config).context("cannot make a client")
}

async fn config() -> Result<Config> {
    let path = kubeconfig_path()?;
    let kubeconfig = Kubeconfig::read_from(&path)
        .with_context(|| format!("cannot read KUBECONFIG={}. {ADVICE}", path.display()))?;
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .with_context(|| format!("KUBECONFIG={} is no use", path.display()))
}

/// What keeps tests from running on this cluster, if anything.
async fn trouble(client: Client) -> Option<String> {
    let deployments: Api<Deployment> = Api::namespaced(client, NAMESPACE);
    let answer = tokio::time::timeout(FIRST_ANSWER, deployments.get_opt(DEPLOYMENT)).await;
    let file = kubeconfig_path().unwrap_or_default().display().to_string();
    match answer {
        Err(_) => Some(format!(
            "the cluster of KUBECONFIG={file} does not answer within {} s. {ADVICE}",
            FIRST_ANSWER.as_secs()
        )),
        Ok(Err(error)) => Some(format!(
            "the cluster of KUBECONFIG={file} does not answer: {error}. {ADVICE}"
        )),
        Ok(Ok(None)) => Some(format!(
            "Boxes is not installed in the cluster of KUBECONFIG={file}: there is no deployment \
             {DEPLOYMENT} in namespace {NAMESPACE}. {ADVICE}"
        )),
        Ok(Ok(Some(_))) => not_available(deployments).await,
    }
}

async fn not_available(deployments: Api<Deployment>) -> Option<String> {
    let available = until(
        &deployments,
        DEPLOYMENT,
        "the controller to be available",
        PATIENCE,
        |seen| seen.is_some_and(is_available).then_some(()),
    );
    available.await.err().map(|error| format!("{error:#}"))
}
