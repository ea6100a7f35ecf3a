//! The real kubectl, as a user runs it.

use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, ensure};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::cluster::Cluster;

/// kubectl in one namespace.
#[derive(Debug, Clone)]
pub struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    namespace: String,
}

/// What kubectl said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// Whether it succeeded.
    pub success: bool,
    /// On standard output.
    pub out: String,
    /// On standard error.
    pub err: String,
}

impl Said {
    /// What it printed; it must have succeeded.
    ///
    /// # Errors
    /// When it failed; with what it said.
    pub fn ok(self) -> Result<String> {
        ensure!(self.success, "kubectl failed: {}{}", self.out, self.err);
        Ok(self.out)
    }

    /// What it complained about; it must have failed.
    ///
    /// # Errors
    /// When it succeeded.
    pub fn refused(self) -> Result<String> {
        ensure!(
            !self.success,
            "kubectl succeeded, and should not have: {}",
            self.out
        );
        Ok(self.err)
    }
}

impl Kubectl {
    pub(super) fn new(kubeconfig: PathBuf, namespace: &str) -> Result<Self> {
        let namespace = namespace.to_owned();
        Ok(Self {
            program: program()?,
            kubeconfig,
            namespace,
        })
    }

    /// Runs kubectl to its end.
    ///
    /// # Errors
    /// When it cannot be run at all.
    pub async fn run<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Result<Said> {
        self.run_with_input(args, "").await
    }

    /// Runs kubectl to its end with something on its standard input, such as a manifest for `-f -`.
    ///
    /// # Errors
    /// When it cannot be run at all.
    pub async fn run_with_input<'a>(
        &self,
        args: impl IntoIterator<Item = &'a str>,
        input: &str,
    ) -> Result<Said> {
        let mut child = Command::new(&self.program)
            .args(["--namespace", &self.namespace])
            .args(args)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("KUBECACHEDIR", cache())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot run {}", self.program.display()))?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin
                .write_all(input.as_bytes())
                .await
                .context("kubectl does not read its input")?;
        }
        child
            .wait_with_output()
            .await
            .map(Said::from)
            .context("kubectl was lost")
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            success: output.status.success(),
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }
}

/// Where kubectl keeps what it learned of the API: beside the tests' own program, so that a clean build
/// folder is all that has to be removed.
fn cache() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    program.with_file_name("kubectl-cache")
}

/// The program: `KUBECTL` when it is set, else the one of the test cluster, found once.
fn program() -> Result<PathBuf> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let found = PROGRAM.get_or_init(|| {
        let named = std::env::var_os("KUBECTL").filter(|value| !value.is_empty());
        named.map_or_else(
            || Cluster::tool("kubectl").map_err(|error| format!("{error:#}")),
            |path| Ok(PathBuf::from(path)),
        )
    });
    found.clone().map_err(|error| anyhow!(error))
}
