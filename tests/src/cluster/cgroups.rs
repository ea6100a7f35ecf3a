//! The cgroups of pods: made here so that they can be told from anybody else's, and removed.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use super::command;
use super::host::CgroupDriver;
use super::process;
use super::wait::{Seen, until};

/// The cgroup below which the kubelet makes those of its pods, where systemd does not.
pub(crate) const ROOT: &str = "boxes-cluster";

/// systemd's slice for pods, which has the kubelet's own name for it.
const SLICE: &str = "kubepods.slice";

/// What pods need from a cgroup v2 hierarchy.
const CONTROLLERS: [&str; 6] = ["cpuset", "cpu", "io", "memory", "hugetlb", "pids"];

/// Makes the root of pods' cgroups.
pub(crate) fn create(driver: CgroupDriver) -> Result<()> {
    if driver == CgroupDriver::Systemd {
        return Ok(());
    }
    for Hierarchy { mount, unified } in hierarchies()? {
        if unified {
            enable_controllers(&mount)?;
        }
        let folder = mount.join(ROOT);
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make the cgroup {}", folder.display()))?;
    }
    Ok(())
}

/// Ends every process in the pods' cgroups, then removes them.
pub(crate) async fn remove(driver: CgroupDriver) -> Result<()> {
    if driver == CgroupDriver::Systemd {
        // Fails where there is none.
        let _ = command::run("systemctl", &["stop", SLICE]);
    }
    let roots: Vec<PathBuf> = hierarchies()?
        .into_iter()
        .map(|hierarchy| hierarchy.mount.join(ROOT))
        .collect();
    until(
        "the processes of pods to end",
        Duration::from_secs(20),
        async || {
            let alive: Vec<i32> = roots.iter().flat_map(|root| processes(root)).collect();
            for pid in &alive {
                process::kill(*pid);
            }
            Ok(match alive.first() {
                None => Seen::Ready(()),
                Some(pid) => Seen::NotYet(format!("{} processes, one is {pid}", alive.len())),
            })
        },
    )
    .await?;
    roots.iter().try_for_each(|root| remove_tree(root))
}

/// A mounted cgroup hierarchy.
struct Hierarchy {
    mount: PathBuf,
    unified: bool,
}

fn hierarchies() -> Result<Vec<Hierarchy>> {
    let table = fs::read_to_string("/proc/self/mounts").context("cannot read /proc/self/mounts")?;
    Ok(table.lines().filter_map(hierarchy).collect())
}

fn hierarchy(line: &str) -> Option<Hierarchy> {
    let mut fields = line.split(' ').skip(1);
    let mount = PathBuf::from(fields.next()?);
    match fields.next()? {
        "cgroup" => Some(Hierarchy {
            mount,
            unified: false,
        }),
        "cgroup2" => Some(Hierarchy {
            mount,
            unified: true,
        }),
        _ => None,
    }
}

/// Lets children of the root have the controllers that exist.
fn enable_controllers(mount: &Path) -> Result<()> {
    let offered = fs::read_to_string(mount.join("cgroup.controllers")).unwrap_or_default();
    for controller in CONTROLLERS {
        if offered.split_whitespace().any(|name| name == controller) {
            let file = mount.join("cgroup.subtree_control");
            fs::write(&file, format!("+{controller}"))
                .with_context(|| format!("cannot write +{controller} to {}", file.display()))?;
        }
    }
    Ok(())
}

/// The processes in a cgroup and below.
fn processes(cgroup: &Path) -> Vec<i32> {
    let own = fs::read_to_string(cgroup.join("cgroup.procs")).unwrap_or_default();
    let own = own.lines().filter_map(|line| line.parse().ok());
    own.chain(children(cgroup).iter().flat_map(|child| processes(child)))
        .collect()
}

fn children(cgroup: &Path) -> Vec<PathBuf> {
    fs::read_dir(cgroup)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_dir())
        .collect()
}

fn remove_tree(cgroup: &Path) -> Result<()> {
    for child in children(cgroup) {
        remove_tree(&child)?;
    }
    match fs::remove_dir(cgroup) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove the cgroup {}", cgroup.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_told_apart() {
        let v1 = hierarchy("cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0").unwrap();
        let v2 = hierarchy("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0").unwrap();
        assert!(!v1.unified && v2.unified);
        assert_eq!(v1.mount, Path::new("/sys/fs/cgroup/cpu"));
        assert!(hierarchy("tmpfs /sys/fs/cgroup tmpfs rw 0 0").is_none());
    }
}
