//! A program of ours as a process of this machine: it can be killed at any moment, and what it says is
//! kept.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::watch;

/// How long it may take to end when asked.
const GRACE: Duration = Duration::from_secs(10);

/// What would lead a program elsewhere than to loopback.
const PROXIES: [&str; 6] = [
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
];

/// A program, and its process while it runs.
pub(super) struct Process {
    program: PathBuf,
    arguments: Vec<String>,
    kubeconfig: PathBuf,
    variables: Vec<(String, String)>,
    child: Option<Child>,
    log: Arc<Mutex<Vec<String>>>,
    news: watch::Sender<usize>,
}

impl Process {
    /// A program that does not run yet.
    pub(super) fn new(program: PathBuf, arguments: Vec<String>, kubeconfig: &Path) -> Self {
        Self {
            program,
            arguments,
            kubeconfig: kubeconfig.to_owned(),
            variables: Vec::new(),
            child: None,
            log: Arc::default(),
            news: watch::channel(0).0,
        }
    }

    /// The same with these variables in its environment.
    pub(super) fn with_variables(self, variables: Vec<(String, String)>) -> Self {
        Self { variables, ..self }
    }

    /// Starts it. What an earlier process said is forgotten.
    pub(super) fn start(&mut self) -> Result<()> {
        let mut command = Command::new(&self.program);
        for proxy in PROXIES {
            command.env_remove(proxy);
        }
        let mut child = command
            .args(&self.arguments)
            .env("KUBECONFIG", &self.kubeconfig)
            .envs(self.variables.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot run {}", self.program.display()))?;
        let errors = child.stderr.take().context("no standard error")?;
        // Of this process alone: one that was killed may still be read.
        self.log = Arc::default();
        tokio::spawn(keep(errors, Arc::clone(&self.log), self.news.clone()));
        self.child = Some(child);
        Ok(())
    }

    /// Waits until it has said such a line since it was started.
    pub(super) async fn says(&self, patience: Duration, is: impl Fn(&str) -> bool) -> Result<()> {
        let mut news = self.news.subscribe();
        let search = news.wait_for(|_| lock(&self.log).iter().any(|line| is(line)));
        let found = tokio::time::timeout(patience, search).await;
        match found {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => bail!("the log ended"),
            Err(_) => bail!(
                "{} did not say it within {} s; it said:\n{}",
                self.program.display(),
                patience.as_secs(),
                self.log().join("\n")
            ),
        }
    }

    /// What it has said since it was started.
    pub(super) fn log(&self) -> Vec<String> {
        lock(&self.log).clone()
    }

    /// The files that it has open.
    pub(super) fn open_files(&self) -> Result<Vec<PathBuf>> {
        let child = self.child.as_ref().and_then(Child::id);
        let folder = format!("/proc/{}/fd", child.context("it does not run")?);
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            // It may just have been closed.
            files.extend(std::fs::read_link(entry?.path()).ok());
        }
        Ok(files)
    }

    /// Kills it, as a crash would. It must not have ended by itself.
    pub(super) async fn kill(&mut self) -> Result<()> {
        let mut child = self.child.take().context("it does not run")?;
        let ended = child.try_wait()?;
        ensure!(
            ended.is_none(),
            "{} ended by itself ({ended:?}):\n{}",
            self.program.display(),
            self.log().join("\n")
        );
        let killed = child.kill().await;
        killed.with_context(|| format!("cannot kill {}", self.program.display()))
    }

    /// Asks it to end, and waits until it has.
    pub(super) async fn stop(mut self) -> Result<()> {
        let mut child = self.child.take().context("it does not run")?;
        let number = child.id().and_then(|id| i32::try_from(id).ok());
        let pid = number.and_then(Pid::from_raw).context("it has ended")?;
        kill_process(pid, Signal::TERM)?;
        let ended = tokio::time::timeout(GRACE, child.wait()).await;
        ended.context("it does not end when asked")??;
        Ok(())
    }
}

async fn keep(errors: ChildStderr, log: Arc<Mutex<Vec<String>>>, news: watch::Sender<usize>) {
    let mut lines = BufReader::new(errors).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        lock(&log).push(line);
        news.send_modify(|count| *count += 1);
    }
}

fn lock<T>(it: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A program of ours: the one that the variable names, else the one that its image is made of.
pub(super) fn program(variable: &str, name: &str) -> Result<PathBuf> {
    let named = std::env::var_os(variable).filter(|value| !value.is_empty());
    let built = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/image");
    let path = named.map_or_else(|| Path::new(built).join(name), PathBuf::from);
    ensure!(
        path.is_file(),
        "there is no {}: tests/cluster/image.sh builds it, and {variable} may name another",
        path.display()
    );
    Ok(path)
}
