//! containerd: its configuration, and images put into it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::address::registry_url;
use super::host::{CgroupDriver, Host};
use super::layout::Layout;
use super::process::Component;
use super::tools::Tools;
use crate::images::PAUSE;

/// The namespace in which Kubernetes' images and containers live.
const NAMESPACE: &str = "k8s.io";

/// Where shims put their sockets, whatever containerd's configuration says.
const SHIM_SOCKETS: &str = "/run/containerd/s";

/// Where CNI plugins are: Debian's folder, then the one that most others use.
pub(crate) const CNI_PLUGINS: [&str; 2] = ["/usr/lib/cni", "/opt/cni/bin"];

/// containerd as a program to start.
pub(crate) fn component(layout: &Layout, tools: &Tools) -> Component {
    let config = layout.config().join("containerd.toml");
    Component {
        name: "containerd",
        program: tools.containerd.join("containerd"),
        arguments: vec!["--config".into(), config.display().to_string()],
    }
}

/// containerd's configuration.
pub(crate) fn config(layout: &Layout, host: Host) -> String {
    let systemd = host.cgroup_driver == CgroupDriver::Systemd;
    let restrict = !host.may_lower_oom_score;
    format!(
        r#"version = 4
imports = []
root = {root:?}
state = {state:?}

[plugins."io.containerd.server.v1.grpc"]
  address = {socket:?}

[plugins."io.containerd.server.v1.ttrpc"]
  address = {ttrpc:?}

[plugins."io.containerd.internal.v1.opt"]
  path = {opt:?}

[plugins."io.containerd.nri.v1.nri"]
  disable = true

[plugins."io.containerd.cri.v1.images"]
  # A pull that stands still is given up at once: tests wait for that.
  image_pull_progress_timeout = "10s"

  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = {PAUSE:?}

  [plugins."io.containerd.cri.v1.images".registry]
    config_path = {hosts:?}

[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = {restrict}
  netns_mounts_under_state_dir = true
  tolerate_missing_hugetlb_controller = true

  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = {CNI_PLUGINS:?}
    conf_dir = {cni:?}
    use_internal_loopback = true

  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"

    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      SystemdCgroup = {systemd}
      Root = {runc:?}
"#,
        root = text(&layout.containerd_root()),
        state = text(&layout.containerd_state()),
        socket = text(&layout.containerd_socket()),
        ttrpc = text(&layout.run().join("containerd.ttrpc.sock")),
        opt = text(&layout.containerd_root().join("opt")),
        hosts = text(&hosts_folder(layout)),
        cni = text(&cni_folder(layout)),
        runc = text(&layout.run().join("runc")),
    )
}

/// A path as text, which `{:?}` then quotes as TOML does.
fn text(path: &Path) -> String {
    path.display().to_string()
}

/// Where containerd looks for the pod network.
pub(crate) fn cni_folder(layout: &Layout) -> PathBuf {
    layout.config().join("cni")
}

/// Where containerd looks for what each registry's name stands for.
pub(crate) fn hosts_folder(layout: &Layout) -> PathBuf {
    layout.config().join("hosts")
}

/// Every registry, whatever its name, is the one on loopback: no look-up leaves this machine.
pub(crate) fn default_host() -> String {
    format!("server = {:?}\n", registry_url())
}

/// Whether containerd answers.
pub(crate) fn answers(layout: &Layout, tools: &Tools) -> Result<()> {
    ctr(layout, tools, &["version"], &[])
}

/// Puts an archive, given as its bytes, among the images.
pub(crate) fn import(layout: &Layout, tools: &Tools, archive: &[u8]) -> Result<()> {
    ctr(layout, tools, &["images", "import", "-"], archive)
}

fn ctr(layout: &Layout, tools: &Tools, args: &[&str], input: &[u8]) -> Result<()> {
    let mut child = Command::new(tools.ctr())
        .args(["--namespace", NAMESPACE, "--address"])
        .arg(layout.containerd_socket())
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", tools.ctr().display()))?;
    if let Some(mut stdin) = child.stdin.take() {
        // Where ctr closes its input early, its own words tell why.
        let _ = stdin.write_all(input);
    }
    let done = child.wait_with_output().context("cannot wait for ctr")?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        bail!(
            "`ctr {}` failed ({}): {}",
            args.join(" "),
            done.status,
            said.trim()
        );
    }
    Ok(())
}

/// Deletes the sockets of our shims, which lie outside our folders and outlive a killed shim.
pub(crate) fn remove_shim_sockets(layout: &Layout) -> Result<()> {
    let bundles = layout
        .containerd_state()
        .join("io.containerd.runtime.v2.task")
        .join(NAMESPACE);
    for bundle in fs::read_dir(bundles)
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
    {
        let text = fs::read_to_string(bundle.path().join("bootstrap.json")).unwrap_or_default();
        if let Some(socket) = shim_socket(&text) {
            let removed = fs::remove_file(&socket);
            if removed.is_err_and(|error| error.kind() != std::io::ErrorKind::NotFound) {
                bail!("cannot delete the socket {}", socket.display());
            }
        }
    }
    // Fails where another containerd has sockets there.
    let _ = fs::remove_dir(SHIM_SOCKETS).and_then(|()| fs::remove_dir("/run/containerd"));
    Ok(())
}

/// The socket that a bundle's `bootstrap.json` names, if it is where shims put theirs.
fn shim_socket(bootstrap: &str) -> Option<PathBuf> {
    let value: serde_json::Value = serde_json::from_str(bootstrap).ok()?;
    let path = PathBuf::from(value.get("address")?.as_str()?.strip_prefix("unix://")?);
    path.starts_with(SHIM_SOCKETS).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shims_socket_is_read_from_its_bundle_and_nothing_elsewhere_is_touched() {
        let ours = r#"{"version":3,"address":"unix:///run/containerd/s/abc","protocol":"ttrpc"}"#;
        assert_eq!(
            shim_socket(ours),
            Some(PathBuf::from("/run/containerd/s/abc"))
        );
        assert_eq!(shim_socket(r#"{"address":"unix:///etc/passwd"}"#), None);
        assert_eq!(shim_socket(""), None);
    }

    #[test]
    fn no_registry_is_looked_up_outside() {
        assert_eq!(default_host(), "server = \"http://127.0.0.1:16500\"\n");
    }
}
