//! Running other programs to their end.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Runs a program; its standard output, or an error with what it said.
pub(crate) fn run(program: impl AsRef<OsStr>, args: &[&str]) -> Result<String> {
    let line = || format!("{} {}", program.as_ref().display(), args.join(" "));
    let done = Command::new(program.as_ref())
        .args(args)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run `{}`", line()))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        bail!("`{}` failed ({}): {}", line(), done.status, said.trim());
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// Whether a program ran and succeeded.
pub(crate) fn succeeds(program: &str, args: &[&str]) -> bool {
    run(program, args).is_ok()
}

/// Finds a program as a shell would, and beyond `PATH` in the folders for administrators.
pub(crate) fn which(program: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(SYSTEM_PATH.split(':').map(Into::into))
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
}

/// Where Debian and its kin keep their programs.
pub(crate) const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
