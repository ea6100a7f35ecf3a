//! The controller as a process of this machine, in place of the one in the cluster: it can be killed
//! at any moment, and it reaches the API server through a proxy that can fail.
//!
//! Assumption: the test runs alone ([`e2e_alone`](super::e2e_alone)), which brings the controller in
//! the cluster back.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;

use super::access::kubeconfig_path;
use super::controller::{DEPLOYMENT, NAMESPACE, chart_arguments};
use super::proxy::Proxy;
use super::watch::PATIENCE;
use super::world::World;

/// What it says when it leads and its first lists are in.
const STARTED: &str = "the controller has started";

/// How long it may take to end when asked.
const GRACE: Duration = Duration::from_secs(10);

/// A controller on this machine.
pub struct HostController {
    proxy: Proxy,
    program: PathBuf,
    kubeconfig: PathBuf,
    identity: String,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    process: Option<Child>,
    log: Arc<Mutex<Vec<String>>>,
    news: watch::Sender<usize>,
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
        let program = program()?;
        self.controller().pause().await?;
        let proxy = Proxy::start(as_the_controller(self.client()).await?).await?;
        let kubeconfig = kubeconfig(&proxy, self.namespace())?;
        let mut it = HostController {
            proxy,
            program,
            kubeconfig,
            identity: self.namespace().to_owned(),
            arguments: chart_arguments(&self.client()).await?,
            variables,
            process: None,
            log: Arc::default(),
            news: watch::channel(0).0,
        };
        it.start()?;
        it.leads(PATIENCE).await?;
        Ok(it)
    }
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
        let arguments = [
            "--log-format=json".to_owned(),
            format!("--lease-namespace={NAMESPACE}"),
            format!("--lease-name={DEPLOYMENT}"),
            format!("--identity={}", self.identity),
            "--listen=127.0.0.1:0".to_owned(),
        ];
        let mut process = Command::new(&self.program)
            .args(arguments)
            .args(&self.arguments)
            .env("KUBECONFIG", &self.kubeconfig)
            .envs(self.variables.iter().cloned())
            .env_remove("HTTP_PROXY")
            .env_remove("http_proxy")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot run {}", self.program.display()))?;
        let errors = process.stderr.take().context("no standard error")?;
        lock(&self.log).clear();
        tokio::spawn(keep(errors, Arc::clone(&self.log), self.news.clone()));
        self.process = Some(process);
        Ok(())
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
        let mut news = self.news.subscribe();
        let search = news.wait_for(|_| lock(&self.log).iter().any(|line| is(line)));
        let found = tokio::time::timeout(patience, search).await;
        match found {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => bail!("the log ended"),
            Err(_) => bail!(
                "the controller did not say it within {} s; it said:\n{}",
                patience.as_secs(),
                self.log().join("\n")
            ),
        }
    }

    /// What it has said since it was started.
    #[must_use]
    pub fn log(&self) -> Vec<String> {
        lock(&self.log).clone()
    }

    /// Kills it, as a crash would.
    ///
    /// # Errors
    /// When it does not run: it must not have ended by itself.
    pub async fn kill(&mut self) -> Result<()> {
        let mut process = self.process.take().context("it does not run")?;
        let ended = process.try_wait()?;
        ensure!(
            ended.is_none(),
            "the controller ended by itself ({ended:?}):\n{}",
            self.log().join("\n")
        );
        process.kill().await.context("cannot kill the controller")
    }

    /// Asks it to end, so that it gives up the lease.
    ///
    /// # Errors
    /// When it does not run or does not end.
    pub async fn stop(mut self) -> Result<()> {
        let mut process = self.process.take().context("it does not run")?;
        let number = process.id().and_then(|id| i32::try_from(id).ok());
        let pid = number.and_then(Pid::from_raw).context("it has ended")?;
        kill_process(pid, Signal::TERM)?;
        let ended = tokio::time::timeout(GRACE, process.wait()).await;
        ended.context("the controller does not end when asked")??;
        Ok(())
    }
}

impl Drop for HostController {
    fn drop(&mut self) {
        // What is left is a file in the folder for such files.
        let _ = std::fs::remove_file(&self.kubeconfig);
    }
}

async fn keep(
    errors: tokio::process::ChildStderr,
    log: Arc<Mutex<Vec<String>>>,
    news: watch::Sender<usize>,
) {
    let mut lines = BufReader::new(errors).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        lock(&log).push(line);
        news.send_modify(|count| *count += 1);
    }
}

fn lock<T>(it: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The program that the controller's image is made of.
fn program() -> Result<PathBuf> {
    let named = std::env::var_os("BOXES_CONTROLLER").filter(|value| !value.is_empty());
    let built = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../target/image/boxes-controller"
    );
    let path = named.map_or_else(|| PathBuf::from(built), PathBuf::from);
    ensure!(
        path.is_file(),
        "there is no {}: tests/cluster/image.sh builds it, and BOXES_CONTROLLER may name another",
        path.display()
    );
    Ok(path)
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
