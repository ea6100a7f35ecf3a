//! The collector of a played node as a process of this machine: it reads log files that the test
//! writes, into an archive of the test's own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use super::access::kubeconfig_path;
use super::node::PlayedNode;
use super::process::{Process, program};
use super::watch::PATIENCE;
use super::world::World;

/// How long until its open files are looked at again, of which nobody brings news.
const AGAIN: Duration = Duration::from_millis(20);

/// A collector on this machine. It ends when it is dropped.
pub struct HostCollector(Process);

impl World {
    /// A collector for a played node, from this folder of pod logs to this archive with these
    /// settings. It runs.
    ///
    /// # Errors
    /// When there is no such program, or it cannot be run.
    pub fn host_collector(
        &self,
        node: &PlayedNode,
        logs: &Path,
        archive: &str,
        settings: &[(String, String)],
    ) -> Result<HostCollector> {
        let mut arguments = vec![
            "--log-format=json".to_owned(),
            "--listen=127.0.0.1:0".to_owned(),
            format!("--node={}", node.name()),
            format!("--logs={}", logs.display()),
            format!("--archive={archive}"),
        ];
        let setting = |(key, value): &(String, String)| format!("--archive-option={key}={value}");
        arguments.extend(settings.iter().map(setting));
        let program = program("BOXES_COLLECTOR", "boxes-collector")?;
        let mut it = HostCollector(Process::new(program, arguments, &kubeconfig_path()?));
        it.start()?;
        Ok(it)
    }
}

impl HostCollector {
    /// Starts it, after a kill.
    ///
    /// # Errors
    /// When the program cannot be run.
    pub fn start(&mut self) -> Result<()> {
        self.0.start()
    }

    /// Waits until it has said such a line since it was started.
    ///
    /// # Errors
    /// When it does not within that time.
    pub async fn says(&self, patience: Duration, is: impl Fn(&str) -> bool) -> Result<()> {
        self.0.says(patience, is).await
    }

    /// What it has said since it was started.
    #[must_use]
    pub fn log(&self) -> Vec<String> {
        self.0.log()
    }

    /// The files that it has open, by the names that they had when it opened them or have now.
    ///
    /// # Errors
    /// When it does not run.
    pub fn open_files(&self) -> Result<Vec<PathBuf>> {
        self.0.open_files()
    }

    /// Waits until it has a file open.
    ///
    /// # Errors
    /// When it has not in time.
    pub async fn opens(&self, path: &Path) -> Result<()> {
        let opening = async {
            while !self.open_files()?.iter().any(|open| open == path) {
                tokio::time::sleep(AGAIN).await;
            }
            anyhow::Ok(())
        };
        let opened = tokio::time::timeout(PATIENCE, opening).await;
        opened.with_context(|| format!("it does not open {}", path.display()))?
    }

    /// Kills it, as a crash would.
    ///
    /// # Errors
    /// When it does not run: it must not have ended by itself.
    pub async fn kill(&mut self) -> Result<()> {
        self.0.kill().await
    }

    /// Asks it to end.
    ///
    /// # Errors
    /// When it does not run or does not end.
    pub async fn stop(self) -> Result<()> {
        self.0.stop().await
    }
}
