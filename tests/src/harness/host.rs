//! The controller as a process of this machine, in place of the one in the cluster: it can be killed
//! at any moment, and it reaches the API server through a proxy that can fail.
//!
//! Assumption: the test runs alone ([`e2e_alone`](super::e2e_alone)), which brings the controller in
//! the cluster back.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::json;

use super::access::kubeconfig_path;
use super::controller::{DEPLOYMENT, NAMESPACE, chart_arguments};
use super::process::{Process, program};
use super::proxy::Proxy;
use super::watch::PATIENCE;
use super::world::World;

/// What it says when it leads and its first lists are in.
const STARTED: &str = "the controller has started";

/// A controller on this machine.
pub struct HostController {
    proxy: Proxy,
    process: Process,
    _kubeconfig: Removed,
}

/// What is left is a file in the folder for such files.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl World {
    /// Puts a controller on this machine in the place of the one in the cluster, with its rights and
    /// its lease.
    ///
    /// # Errors
    /// When the one in the cluster does not go, or this one does not come up.
    pub async fn host_controller(&self) -> Result<HostController> {
        self.host_controller_with(Vec::new()).await
    }

    /// The same with these variables in its environment.
    ///
    /// # Errors
    /// When the one in the cluster does not go, or this one does not come up.
    pub async fn host_controller_with(
        &self,
        variables: Vec<(String, String)>,
    ) -> Result<HostController> {
        let program = program("BOXES_CONTROLLER", "boxes-controller")?;
        self.controller().pause().await?;
        let proxy = Proxy::start(as_the_controller(self.client()).await?).await?;
        let kubeconfig = Removed(kubeconfig(&proxy, self.namespace())?);
        let mut arguments = arguments(self.namespace());
        arguments.extend(chart_arguments(&self.client()).await?);
        let mut it = HostController {
            proxy,
            process: Process::new(program, arguments, &kubeconfig.0).with_variables(variables),
            _kubeconfig: kubeconfig,
        };
        it.start()?;
        it.leads(PATIENCE).await?;
        Ok(it)
    }
}

/// It has the same name whenever it is started.
fn arguments(identity: &str) -> Vec<String> {
    vec![
        "--log-format=json".to_owned(),
        format!("--lease-namespace={NAMESPACE}"),
        format!("--lease-name={DEPLOYMENT}"),
        format!("--identity={identity}"),
        "--listen=127.0.0.1:0".to_owned(),
    ]
}

impl HostController {
    /// What stands between it and the API server.
    #[must_use]
    pub fn proxy(&self) -> &Proxy {
        &self.proxy
    }

    /// Starts it, under the same name as ever.
    ///
    /// # Errors
    /// When the program cannot be run.
    pub fn start(&mut self) -> Result<()> {
        self.process.start()
    }

    /// Waits until it leads and has its first lists.
    ///
    /// # Errors
    /// When it does not within that time.
    pub async fn leads(&self, patience: Duration) -> Result<()> {
        self.says(patience, |line| line.contains(STARTED)).await
    }

    /// Waits until it has said such a line since it was started.
    ///
    /// # Errors
    /// When it does not within that time.
    pub async fn says(&self, patience: Duration, is: impl Fn(&str) -> bool) -> Result<()> {
        self.process.says(patience, is).await
    }

    /// What it has said since it was started.
    #[must_use]
    pub fn log(&self) -> Vec<String> {
        self.process.log()
    }

    /// Kills it, as a crash would.
    ///
    /// # Errors
    /// When it does not run: it must not have ended by itself.
    pub async fn kill(&mut self) -> Result<()> {
        self.process.kill().await
    }

    /// Asks it to end, so that it gives up the lease.
    ///
    /// # Errors
    /// When it does not run or does not end.
    pub async fn stop(self) -> Result<()> {
        self.process.stop().await
    }
}

/// A client with the rights of the controller's own ServiceAccount.
async fn as_the_controller(admin: Client) -> Result<Client> {
    let accounts: Api<ServiceAccount> = Api::namespaced(admin, NAMESPACE);
    let asked = TokenRequest {
        spec: Some(TokenRequestSpec {
            expiration_seconds: Some(3600),
            ..TokenRequestSpec::default()
        }),
        ..TokenRequest::default()
    };
    let made = accounts
        .create_token_request(DEPLOYMENT, &PostParams::default(), &asked)
        .await
        .context("no token for the controller's ServiceAccount")?;
    let token = made.status.and_then(|status| status.token);
    let token = token.context("a token request without a token")?;
    let file = Kubeconfig::read_from(kubeconfig_path()?)?;
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    config.auth_info = AuthInfo {
        token: Some(token.into()),
        ..AuthInfo::default()
    };
    Client::try_from(config).context("cannot make a client")
}

/// A kubeconfig that names the proxy and holds no secret.
fn kubeconfig(proxy: &Proxy, name: &str) -> Result<PathBuf> {
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "proxy", "cluster": {"server": proxy.url()}}],
        "users": [{"name": "nobody", "user": {}}],
        "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "nobody"}}],
        "current-context": "proxy",
    });
    let path = std::env::temp_dir().join(format!("boxes-{name}.kubeconfig"));
    std::fs::write(&path, config.to_string())
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}
