//! A real Kubernetes cluster on this machine: one node, started from programs that are built from Go
//! modules, without a container engine and without the network.
//!
//! Guarantees: [`Cluster::up`] returns when the API answers, the node is ready and pods can be made;
//! a healthy cluster is used again; whatever an earlier one left behind, crashed or half torn down,
//! is removed first. [`Cluster::down`] leaves no process, mount, namespace, cgroup, link, route, nft
//! table, kernel setting or file.
//!
//! Assumptions: root on Linux, one cluster on a machine, and the packages of `tests/cluster/setup.sh`.
//!
//! Images: every pull goes to a registry on loopback that serves what was imported, so `image: busybox`
//! works as it does for any user; an unknown image is "not found" at once. `127.0.0.1:PORT/…` goes to
//! that port itself. Host ports of pods are not offered.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

mod address;
pub(crate) mod archive;
mod cgroups;
mod command;
mod components;
mod containerd;
mod freeze;
mod health;
mod host;
mod kubeconfig;
mod kubelet;
mod layout;
mod lock;
mod mounts;
mod network;
mod pki;
mod prerequisites;
mod process;
mod progress;
pub(crate) mod reference;
pub mod registry;
mod startup;
mod store;
mod teardown;
mod tools;
mod wait;

pub use freeze::Frozen;
pub use progress::Progress;

use host::Host;
use layout::Layout;
use lock::Lock;
use startup::Startup;
use tools::Tools;

/// A cluster by its state folder, running or not.
#[derive(Debug, Clone)]
pub struct Cluster {
    layout: Layout,
    program: PathBuf,
}

/// What a look at a cluster showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Each program that was started, and its process number if it runs.
    pub components: Vec<(String, Option<i32>)>,
    /// What does not work, if anything.
    pub trouble: Option<String>,
}

impl Cluster {
    /// The cluster that the environment names (`BOXES_STATE`, else the user's state folder).
    ///
    /// `program` is the path of `boxes-cluster`, which also serves as the registry.
    ///
    /// # Errors
    /// When the folder is no use: not absolute, or too long for unix sockets.
    pub fn from_env(program: PathBuf) -> Result<Self> {
        Ok(Self {
            layout: Layout::from_env()?,
            program,
        })
    }

    /// The administrator's kubeconfig.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.layout.kubeconfig()
    }

    /// The API server's audit log: one JSON object a line, metadata only.
    #[must_use]
    pub fn audit_log(&self) -> PathBuf {
        self.layout.audit_log()
    }

    /// The log of one of the cluster's programs, such as `kubelet`.
    #[must_use]
    pub fn log(&self, component: &str) -> PathBuf {
        self.layout.log(component)
    }

    /// Holds one of the cluster's programs still, such as `kubelet`, until the answer is dropped.
    ///
    /// # Errors
    /// When it does not run.
    pub fn freeze(&self, component: &str) -> Result<Frozen> {
        Frozen::program(&self.layout, component)
    }

    /// The path of a program by its name (`kubectl`, `helm`, `ctr`), built if it is missing.
    ///
    /// # Errors
    /// When there is no such program, or its build failed.
    pub fn tool(name: &str) -> Result<PathBuf> {
        tools::path_of(name)
    }

    /// Starts the cluster, or finds it running and healthy.
    ///
    /// # Errors
    /// When a program is missing or ends early, or a deadline passes; the message says which and why.
    pub async fn up(&self, progress: Progress) -> Result<()> {
        prerequisites::must_be_root()?;
        prerequisites::check()?;
        let host = Host::look()?;
        let tools = Tools::find()?;
        let startup = Startup::new(&self.layout, &tools, host, &self.program);
        let mut lock = Lock::acquire(&self.layout)?;
        if startup.is_current() {
            match self.status().await.trouble {
                None => {
                    progress.say("the cluster is running");
                    return startup.import_own_images();
                }
                Some(trouble) => progress.say(&format!("the cluster is not whole: {trouble}")),
            }
        }
        if teardown::is_needed(&self.layout) {
            progress
                .step(
                    "removing what an earlier cluster left",
                    teardown::run(&self.layout, host),
                )
                .await?;
        }
        lock.own(&self.layout)?;
        startup.run(progress).await
    }

    /// Ends the cluster and removes every trace of it.
    ///
    /// # Errors
    /// When something resists; the message names it.
    pub async fn down(&self, progress: Progress) -> Result<()> {
        prerequisites::must_be_root()?;
        let host = Host::look()?;
        let lock = Lock::acquire(&self.layout)?;
        progress
            .step("removing the cluster", teardown::run(&self.layout, host))
            .await?;
        lock.remove()
    }

    /// Looks whether the cluster works.
    pub async fn status(&self) -> Status {
        let components: Vec<(String, Option<i32>)> = process::records(&self.layout)
            .into_iter()
            .map(|(name, record)| (name, record.is_running().then_some(record.pid)))
            .collect();
        let trouble = match components.iter().find(|(_, pid)| pid.is_none()) {
            Some((name, _)) => Some(format!("{name} is not running")),
            None if components.is_empty() => Some("no cluster runs: start one with up".to_owned()),
            None => self.api_trouble().await,
        };
        Status {
            components,
            trouble,
        }
    }

    async fn api_trouble(&self) -> Option<String> {
        let client = match health::client(&self.layout).await {
            Ok(client) => client,
            Err(error) => return Some(format!("{error:#}")),
        };
        let limit = std::time::Duration::from_secs(5);
        match tokio::time::timeout(limit, health::all(&client)).await {
            Ok(wait::Seen::Ready(())) => None,
            Ok(wait::Seen::NotYet(seen)) => Some(seen),
            Err(_) => Some("the API server does not answer within 5 s".to_owned()),
        }
    }

    /// Adds the images of an OCI archive to the node and to the registry; their full names.
    ///
    /// # Errors
    /// When the file is no OCI archive with names in it, or containerd refuses it.
    pub fn import(&self, archive: &Path) -> Result<Vec<String>> {
        let tools = Tools::find()?;
        let file = std::fs::File::open(archive)
            .with_context(|| format!("cannot open the archive {}", archive.display()))?;
        let content = archive::Archive::read(std::io::BufReader::new(file))
            .with_context(|| format!("cannot import {}", archive.display()))?;
        startup::import(&self.layout, &tools, &content)?;
        Ok(content
            .images
            .iter()
            .map(|(name, _)| name.to_string())
            .collect())
    }
}

/// Bytes as lower-case hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A value as YAML.
fn yaml(value: &serde_json::Value) -> Result<String> {
    serde_saphyr::to_string(value).context("cannot write YAML")
}

/// The applets of a busybox.
pub(crate) fn applets(busybox: &Path) -> Result<Vec<String>> {
    let listed = command::run(busybox, &["--list"])?;
    Ok(listed.lines().map(str::to_owned).collect())
}

pub(crate) use command::which as find_program;
