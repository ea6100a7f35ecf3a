//! One of the cluster's programs held still, as on a machine that hangs.

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};

use super::layout::Layout;
use super::process;

/// A program that stands still until this is dropped.
#[derive(Debug)]
pub struct Frozen {
    pid: Pid,
}

impl Frozen {
    pub(super) fn program(layout: &Layout, name: &str) -> Result<Self> {
        let records = process::records(layout);
        let found = records.iter().find(|(known, _)| known == name);
        let (_, record) = found.with_context(|| format!("no {name} was started"))?;
        ensure!(record.is_running(), "{name} does not run");
        let pid = Pid::from_raw(record.pid).context("a process without a number")?;
        kill_process(pid, Signal::STOP).with_context(|| format!("cannot hold {name} still"))?;
        Ok(Self { pid })
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        // It fails only when the program is gone.
        let _ = kill_process(self.pid, Signal::CONT);
    }
}
