//! Programs that end with this one.

use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child as Process, Command};

/// How long a program may take to end when asked.
const PATIENCE: Duration = Duration::from_secs(10);

/// A program that runs. It is killed when it is dropped, and by the kernel when this process dies.
#[derive(Debug)]
pub(super) struct Child {
    name: &'static str,
    process: Process,
    pid: i32,
}

impl Child {
    /// Starts a program, its output in `log`, with one variable in its environment.
    ///
    /// It is in a process group of its own, so that Ctrl-C ends it only when this program does.
    pub(super) fn start(
        name: &'static str,
        program: &Path,
        arguments: &[impl AsRef<OsStr>],
        (variable, value): (&str, &Path),
        log: &Path,
    ) -> Result<Self> {
        let output = File::create(log).with_context(|| format!("cannot make {}", log.display()))?;
        let errors = output.try_clone().context("cannot share a log")?;
        let process = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .arg(program)
            .args(arguments)
            .env(variable, value)
            .env_remove("HTTPS_PROXY")
            .env_remove("https_proxy")
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let pid = process.id().and_then(|pid| i32::try_from(pid).ok());
        Ok(Self {
            name,
            process,
            pid: pid.with_context(|| format!("{name} has no process number"))?,
        })
    }

    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    /// Fails if it has ended.
    pub(super) fn check(&mut self) -> Result<()> {
        match self.process.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("{} ended: {status}; see its log", self.name),
        }
    }

    /// Ends it, gently first.
    pub(super) async fn stop(mut self) -> Result<()> {
        if let Some(pid) = Pid::from_raw(self.pid) {
            // It may have ended by itself.
            let _ = kill_process(pid, Signal::TERM);
        }
        if tokio::time::timeout(PATIENCE, self.process.wait())
            .await
            .is_err()
        {
            self.process.kill().await.context("cannot kill")?;
        }
        Ok(())
    }
}
