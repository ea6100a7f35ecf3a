//! The cluster's programs, built from Go modules once and cached outside the work tree.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Where the programs are.
#[derive(Debug, Clone)]
pub(crate) struct Tools {
    /// etcd, the Kubernetes programs and kubectl.
    pub(crate) kubernetes: PathBuf,
    /// containerd, its shim and ctr.
    pub(crate) containerd: PathBuf,
}

impl Tools {
    /// Finds the cluster's programs, building what is missing: minutes on a new machine.
    pub(crate) fn find() -> Result<Self> {
        let folders = build(&["kubernetes", "containerd"])?;
        match <[PathBuf; 2]>::try_from(folders) {
            Ok([kubernetes, containerd]) => Ok(Self {
                kubernetes,
                containerd,
            }),
            Err(folders) => bail!("the build names {} folders instead of 2", folders.len()),
        }
    }

    pub(crate) fn ctr(&self) -> PathBuf {
        self.containerd.join("ctr")
    }
}

/// The path of one program by its name, built if it is missing.
pub(crate) fn path_of(name: &str) -> Result<PathBuf> {
    let set = match name {
        "containerd" | "containerd-shim-runc-v2" | "ctr" => "containerd",
        "etcd"
        | "kube-apiserver"
        | "kube-controller-manager"
        | "kube-proxy"
        | "kube-scheduler"
        | "kubectl"
        | "kubelet" => "kubernetes",
        "helm" => "helm",
        "kwok" => "kwok",
        other => bail!(
            "there is no tool {other}: known are kubectl, helm, ctr, kwok and the cluster's own programs"
        ),
    };
    let folder = build(&[set])?
        .pop()
        .with_context(|| format!("the build of {set} named no folder"))?;
    Ok(folder.join(name))
}

/// Runs `build.sh`, whose progress goes to standard error; the folders that it names.
fn build(sets: &[&str]) -> Result<Vec<PathBuf>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("cluster/tools/build.sh");
    let done = Command::new(&script)
        .args(sets)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {}", script.display()))?;
    if !done.status.success() {
        bail!(
            "{} {} failed: see its lines above",
            script.display(),
            sets.join(" ")
        );
    }
    Ok(String::from_utf8_lossy(&done.stdout)
        .lines()
        .map(PathBuf::from)
        .collect())
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_unknown_tool_is_refused_with_the_known_ones() {
        let error = super::path_of("kubeadm").unwrap_err().to_string();
        assert!(
            error.contains("kubeadm") && error.contains("kubectl"),
            "{error}"
        );
    }
}
