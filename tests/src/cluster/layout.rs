//! Where a cluster keeps its files.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use super::hex;

/// The folders of one cluster: its state, and its sockets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    root: PathBuf,
    run: PathBuf,
}

/// A unix socket's path holds at most 108 bytes, and the kubelet adds up to 45 to ours.
const LONGEST_ROOT: usize = 62;

/// What a cluster puts into its state folder. Only these are ever deleted from it.
const CONTENTS: [&str; 12] = [
    "kubeconfig",
    "fingerprint",
    "sysctls.json",
    "pki",
    "config",
    "etcd",
    "kubelet",
    "containerd",
    "pods",
    // What boxes wrote: the collector's pod makes it.
    "archive",
    "registry",
    "log",
];

impl Layout {
    /// The layout below `root`, which must be absolute and short enough for unix sockets.
    pub(crate) fn new(root: PathBuf) -> Result<Self> {
        if !root.is_absolute() {
            bail!(
                "the state folder {} must be an absolute path",
                root.display()
            );
        }
        let length = root.as_os_str().len();
        if length > LONGEST_ROOT {
            bail!(
                "the state folder {} has {length} bytes, and unix sockets below it allow at most \
                 {LONGEST_ROOT}: choose a shorter one with BOXES_STATE",
                root.display()
            );
        }
        let digest = Sha256::digest(root.as_os_str().as_encoded_bytes());
        let run = PathBuf::from(format!("/run/boxes-{}", hex(&digest[..4])));
        Ok(Self { root, run })
    }

    /// The layout that the environment names: `$BOXES_STATE`, else `$XDG_STATE_HOME/boxes/cluster`,
    /// else `~/.local/state/boxes/cluster`.
    pub(crate) fn from_env() -> Result<Self> {
        let state = env::var_os("BOXES_STATE").filter(|value| !value.is_empty());
        let xdg = env::var_os("XDG_STATE_HOME").filter(|value| !value.is_empty());
        let home = env::var_os("HOME").filter(|value| !value.is_empty());
        let root = match (state, xdg, home) {
            (Some(state), _, _) => PathBuf::from(state),
            (None, Some(xdg), _) => PathBuf::from(xdg).join("boxes/cluster"),
            (None, None, Some(home)) => PathBuf::from(home).join(".local/state/boxes/cluster"),
            (None, None, None) => bail!("no HOME in the environment: set BOXES_STATE"),
        };
        Self::new(root)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Sockets and what does not outlive the machine.
    pub(crate) fn run(&self) -> &Path {
        &self.run
    }

    pub(crate) fn pki(&self) -> PathBuf {
        self.root.join("pki")
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.root.join("config")
    }

    pub(crate) fn etcd(&self) -> PathBuf {
        self.root.join("etcd")
    }

    pub(crate) fn kubelet(&self) -> PathBuf {
        self.root.join("kubelet")
    }

    /// containerd's lasting data: images and snapshots.
    pub(crate) fn containerd_root(&self) -> PathBuf {
        self.root.join("containerd")
    }

    /// containerd's state: bundles, mounts, network namespaces.
    pub(crate) fn containerd_state(&self) -> PathBuf {
        self.run.join("containerd")
    }

    pub(crate) fn containerd_socket(&self) -> PathBuf {
        self.run.join("containerd.sock")
    }

    /// The logs of pods.
    pub(crate) fn pods(&self) -> PathBuf {
        self.root.join("pods")
    }

    pub(crate) fn registry(&self) -> PathBuf {
        self.root.join("registry")
    }

    /// The logs of the cluster's own programs, and the audit log.
    pub(crate) fn logs(&self) -> PathBuf {
        self.root.join("log")
    }

    pub(crate) fn log(&self, component: &str) -> PathBuf {
        self.logs().join(format!("{component}.log"))
    }

    pub(crate) fn audit_log(&self) -> PathBuf {
        self.logs().join("audit.log")
    }

    /// One file for each program that was started. They do not survive a restart of the machine.
    pub(crate) fn processes(&self) -> PathBuf {
        self.run.join("processes")
    }

    /// The administrator's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.root.join("kubeconfig")
    }

    /// What the running cluster was started from.
    pub(crate) fn fingerprint(&self) -> PathBuf {
        self.root.join("fingerprint")
    }

    /// The kernel settings as they were before.
    pub(crate) fn sysctls(&self) -> PathBuf {
        self.root.join("sysctls.json")
    }

    /// Makes the folders.
    pub(crate) fn create(&self) -> Result<()> {
        let folders = [
            self.pki(),
            self.config(),
            self.etcd(),
            self.kubelet(),
            self.pods(),
            self.registry(),
            self.logs(),
            self.processes(),
        ];
        for folder in folders {
            fs::create_dir_all(&folder)
                .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        }
        Ok(())
    }

    /// Deletes what a cluster put here, and the folders if nothing else is in them.
    pub(crate) fn remove(&self) -> Result<()> {
        let contents = CONTENTS.iter().map(|name| self.root.join(name));
        for path in contents.chain([self.run.clone()]) {
            remove(&path).with_context(|| format!("cannot delete {}", path.display()))?;
        }
        // Both fail where something else is in them, and that is as it should be.
        let _ = fs::remove_dir(&self.root);
        if let Some(parent) = self
            .root
            .parent()
            .filter(|parent| parent.ends_with("boxes"))
        {
            let _ = fs::remove_dir(parent);
        }
        Ok(())
    }
}

/// Deletes a file or a folder; it is no error if there is none.
fn remove(path: &Path) -> std::io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_state_folder_is_refused_with_advice() {
        let error = Layout::new(PathBuf::from(format!("/{}", "x".repeat(80)))).unwrap_err();
        assert!(error.to_string().contains("BOXES_STATE"), "{error}");
    }

    #[test]
    fn a_relative_state_folder_is_refused() {
        assert!(Layout::new(PathBuf::from("state")).is_err());
    }

    #[test]
    fn two_clusters_have_two_run_folders() {
        let one = Layout::new(PathBuf::from("/var/tmp/one")).unwrap();
        let two = Layout::new(PathBuf::from("/var/tmp/two")).unwrap();
        assert_ne!(one.run(), two.run());
    }

    #[test]
    fn removal_keeps_what_is_not_ours() {
        let root = std::env::temp_dir().join(format!("bx-layout-{}", std::process::id()));
        let layout = Layout {
            root: root.clone(),
            run: root.join("run"),
        };
        layout.create().unwrap();
        fs::write(root.join("mine"), "keep").unwrap();
        layout.remove().unwrap();
        let left: Vec<_> = fs::read_dir(&root)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(left, ["mine"]);
    }
}
