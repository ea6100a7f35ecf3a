//! Starting a cluster, step by step.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use kube::Client;

use super::address::{API_PORT, ETCD_PORT, LOOPBACK, REGISTRY_PORT};
use super::archive::{Archive, digest};
use super::host::{Host, prepare_sysctls};
use super::layout::Layout;
use super::pki::Pki;
use super::process::{self, Component};
use super::progress::Progress;
use super::store::Store;
use super::tools::Tools;
use super::wait::{Seen, until};
use super::{
    cgroups, components, containerd, health, kubeconfig, kubelet, network, registry, yaml,
};
use crate::images;

/// How long a single step may take on a slow machine.
const LIMIT: Duration = Duration::from_secs(90);

/// A cluster about to be started.
pub(crate) struct Startup<'a> {
    layout: &'a Layout,
    tools: &'a Tools,
    host: Host,
    program: &'a Path,
    pki: Pki,
}

impl<'a> Startup<'a> {
    pub(crate) fn new(layout: &'a Layout, tools: &'a Tools, host: Host, program: &'a Path) -> Self {
        Self {
            layout,
            tools,
            host,
            program,
            pki: Pki::new(layout.pki()),
        }
    }

    /// Whether the cluster that runs, if any, was started from the same programs and settings.
    pub(crate) fn is_current(&self) -> bool {
        let running = fs::read_to_string(self.layout.fingerprint()).unwrap_or_default();
        self.fingerprint()
            .is_ok_and(|fingerprint| fingerprint == running)
    }

    /// Starts everything, and returns when pods can be made.
    pub(crate) async fn run(&self, progress: Progress) -> Result<()> {
        progress
            .step("preparing certificates, configuration and network", async {
                self.prepare()
            })
            .await?;
        let registry = registry::component(self.layout, self.program.to_owned());
        self.start(progress, &registry, async || Ok(port(REGISTRY_PORT)))
            .await?;
        let runtime = containerd::component(self.layout, self.tools);
        self.start(progress, &runtime, async || Ok(self.containerd()))
            .await?;
        let etcd = components::etcd(self.layout, self.tools, &self.pki);
        self.start(progress, &etcd, async || Ok(port(ETCD_PORT)))
            .await?;
        let client = self.start_control_plane(progress).await?;
        progress
            .step("importing busybox and pause", async {
                self.import_own_images()
            })
            .await?;
        self.start_node(progress, &client).await?;
        let fingerprint = self.layout.fingerprint();
        fs::write(&fingerprint, self.fingerprint()?)
            .with_context(|| format!("cannot write {}", fingerprint.display()))
    }

    async fn start_control_plane(&self, progress: Progress) -> Result<Client> {
        let client = health::client(self.layout).await?;
        let api = components::api_server(self.layout, self.tools, &self.pki);
        self.start(progress, &api, async || Ok(health::api(&client).await))
            .await?;
        let at_once = async || Ok(Seen::Ready(()));
        let manager = components::controller_manager(self.layout, self.tools, &self.pki);
        self.start(progress, &manager, at_once).await?;
        let scheduler = components::scheduler(self.layout, self.tools);
        self.start(progress, &scheduler, at_once).await?;
        Ok(client)
    }

    async fn start_node(&self, progress: Progress, client: &Client) -> Result<()> {
        let proxy = kubelet::proxy(self.layout, self.tools);
        self.start(progress, &proxy, async || Ok(Seen::Ready(())))
            .await?;
        let kubelet = kubelet::kubelet(self.layout, self.tools);
        self.start(progress, &kubelet, async || Ok(health::node(client).await))
            .await?;
        let account = self.watched("the default ServiceAccount", async || {
            Ok(health::service_account(client).await)
        });
        progress
            .step("waiting for the default ServiceAccount", account)
            .await
    }

    /// Starts one program and waits for its sign of life.
    async fn start(
        &self,
        progress: Progress,
        component: &Component,
        alive: impl AsyncFnMut() -> Result<Seen<()>>,
    ) -> Result<()> {
        let work = async {
            process::start(self.layout, &self.tools.containerd, component).await?;
            self.watched(component.name, alive).await
        };
        progress
            .step(&format!("starting {}", component.name), work)
            .await
    }

    /// Waits for a condition, and ends at once with its log when a started program has ended.
    async fn watched(
        &self,
        what: &str,
        mut probe: impl AsyncFnMut() -> Result<Seen<()>>,
    ) -> Result<()> {
        until(what, LIMIT, async || {
            process::check_all(self.layout)?;
            probe().await
        })
        .await
        .with_context(|| {
            format!(
                "the cluster did not start; logs: {}",
                self.layout.logs().display()
            )
        })
    }

    fn containerd(&self) -> Seen<()> {
        match containerd::answers(self.layout, self.tools) {
            Ok(()) => Seen::Ready(()),
            Err(error) => Seen::NotYet(format!("{error:#}")),
        }
    }

    fn prepare(&self) -> Result<()> {
        for taken in [REGISTRY_PORT, ETCD_PORT, API_PORT] {
            if matches!(port(taken), Seen::Ready(())) {
                bail!("another program listens on {LOOPBACK}:{taken}: end it first");
            }
        }
        self.layout.create()?;
        self.pki.create()?;
        kubeconfig::create_all(self.layout, &self.pki)?;
        for (path, text) in self.configuration()? {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)
                    .with_context(|| format!("cannot make the folder {}", folder.display()))?;
            }
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        prepare_sysctls(self.layout)?;
        cgroups::create(self.host.cgroup_driver)?;
        network::create()
    }

    /// Every configuration file with its content.
    fn configuration(&self) -> Result<Vec<(PathBuf, String)>> {
        let (layout, host) = (self.layout, self.host);
        let folder = layout.config();
        let cni = network::cni_config(&layout.run().join("ipam"));
        Ok(vec![
            (
                folder.join("audit-policy.yaml"),
                yaml(&components::audit_policy())?,
            ),
            (
                folder.join("containerd.toml"),
                containerd::config(layout, host),
            ),
            (
                containerd::cni_folder(layout).join("10-boxes.conflist"),
                format!("{cni:#}"),
            ),
            (
                containerd::hosts_folder(layout).join("_default/hosts.toml"),
                containerd::default_host(),
            ),
            (
                folder.join("kubelet.yaml"),
                yaml(&kubelet::config(layout, &self.pki, host))?,
            ),
            (
                folder.join("kube-proxy.yaml"),
                yaml(&kubelet::proxy_config(layout, host))?,
            ),
        ])
    }

    /// A digest of all command lines, configuration files and packet filters.
    fn fingerprint(&self) -> Result<String> {
        let (layout, tools, pki) = (self.layout, self.tools, &self.pki);
        let components = [
            registry::component(layout, self.program.to_owned()),
            containerd::component(layout, tools),
            components::etcd(layout, tools, pki),
            components::api_server(layout, tools, pki),
            components::controller_manager(layout, tools, pki),
            components::scheduler(layout, tools),
            kubelet::proxy(layout, tools),
            kubelet::kubelet(layout, tools),
        ];
        let lines: Vec<_> = components.iter().map(Component::command_line).collect();
        let files = self.configuration()?;
        Ok(digest(&serde_json::to_vec(&(
            lines,
            files,
            network::guard(),
        ))?))
    }

    /// Imports the images that every test needs, unless they are there.
    pub(crate) fn import_own_images(&self) -> Result<()> {
        let store = Store::new(self.layout.registry());
        for image in [images::pause()?, images::busybox()?] {
            let archive = image.archive()?;
            let there = |(name, manifest): &(_, super::archive::Descriptor)| {
                store
                    .resolve(name)
                    .is_some_and(|digest| digest == manifest.digest)
            };
            if !archive.images.iter().all(there) {
                import(self.layout, self.tools, &archive)?;
            }
        }
        Ok(())
    }
}

/// Adds an archive's images to the node, then to the registry.
pub(crate) fn import(layout: &Layout, tools: &Tools, archive: &Archive) -> Result<()> {
    containerd::import(layout, tools, &archive.write()?)?;
    Store::new(layout.registry()).add(archive)
}

/// Whether something listens on a port of loopback.
fn port(port: u16) -> Seen<()> {
    match TcpStream::connect((LOOPBACK, port)) {
        Ok(_) => Seen::Ready(()),
        Err(error) => Seen::NotYet(format!("{LOOPBACK}:{port}: {error}")),
    }
}
