//! What kind of machine this is, and the kernel settings that a cluster changes on it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use rustix::thread::{CapabilitySet, capabilities};

use super::layout::Layout;

/// Who makes cgroups for pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CgroupDriver {
    /// systemd, where it runs the machine.
    Systemd,
    /// The kubelet and runc themselves.
    Cgroupfs,
}

impl CgroupDriver {
    /// The kubelet's word for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Systemd => "systemd",
            Self::Cgroupfs => "cgroupfs",
        }
    }
}

/// What differs between machines.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Host {
    pub(crate) cgroup_driver: CgroupDriver,
    /// Whether a negative OOM score may be set. Without it runc dies when asked for one.
    pub(crate) may_lower_oom_score: bool,
}

impl Host {
    /// Looks at this machine.
    pub(crate) fn look() -> Result<Self> {
        let systemd = Path::new("/run/systemd/system").is_dir();
        let held = capabilities(None).context("cannot read this process's capabilities")?;
        Ok(Self {
            cgroup_driver: if systemd {
                CgroupDriver::Systemd
            } else {
                CgroupDriver::Cgroupfs
            },
            may_lower_oom_score: held.effective.contains(CapabilitySet::SYS_RESOURCE),
        })
    }
}

/// Settings that this module or the kubelet changes.
const CHANGED: [&str; 8] = [
    "net/ipv4/ip_forward",
    "net/ipv4/conf/all/send_redirects",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
];

/// Records the kernel settings as they are, then lets packets be forwarded between pods.
///
/// Without redirects: pods share a bridge, so that the kernel would tell a pod to look there for
/// Service addresses itself, and would save its rejections up for that.
pub(crate) fn prepare_sysctls(layout: &Layout) -> Result<()> {
    let before: BTreeMap<&str, String> = CHANGED
        .into_iter()
        .filter_map(|name| {
            Some((
                name,
                fs::read_to_string(sysctl(name)).ok()?.trim().to_owned(),
            ))
        })
        .collect();
    let record = layout.sysctls();
    fs::write(&record, serde_json::to_string_pretty(&before)?)
        .with_context(|| format!("cannot write {}", record.display()))?;
    set_sysctl("net/ipv4/ip_forward", "1")?;
    set_sysctl("net/ipv4/conf/all/send_redirects", "0")
}

/// Puts back what [`prepare_sysctls`] recorded, if it did.
pub(crate) fn restore_sysctls(layout: &Layout) -> Result<()> {
    let Ok(record) = fs::read_to_string(layout.sysctls()) else {
        return Ok(());
    };
    // An unreadable record comes from a crash while it was written: nothing had been changed yet.
    let before: BTreeMap<String, String> = serde_json::from_str(&record).unwrap_or_default();
    for (name, value) in before
        .iter()
        .filter(|(name, _)| CHANGED.contains(&name.as_str()))
    {
        let now = fs::read_to_string(sysctl(name)).unwrap_or_default();
        if now.trim() != value {
            set_sysctl(name, value)?;
        }
    }
    Ok(())
}

/// Changes one kernel setting.
pub(crate) fn set_sysctl(name: &str, value: &str) -> Result<()> {
    let path = sysctl(name);
    fs::write(&path, value).with_context(|| format!("cannot write {value} to {path}"))
}

fn sysctl(name: &str) -> String {
    format!("/proc/sys/{name}")
}
