//! The file that the report goes to: the container's termination message, which the workload may write
//! to as well.

use std::ffi::CStr;

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, ftruncate, open};
use rustix::io::{Errno, fcntl_dupfd_cloexec};

use crate::report::Report;
use crate::stderr::{say, words};

/// The file, open from before the command starts: it cannot put another in its place.
pub(crate) struct ReportFile(Option<OwnedFd>);

impl ReportFile {
    /// Opens it. Without one the command runs all the same, and only the kubelet tells how it ended.
    pub(crate) fn open(path: &CStr) -> Self {
        let file = try_open(path);
        if let Err(error) = file {
            let path = path.to_string_lossy();
            say(&["no report: cannot open ", &path, ": ", &words(error)]);
        }
        Self(file.ok())
    }

    /// Writes a report as the only line of the file.
    ///
    /// What the workload wrote goes first: a line of its own making must not stand there in place of a
    /// report that could not be written, and what the kubelet keeps of a long message is cut again
    /// where a pod has several containers.
    pub(crate) fn write(&self, report: &Report) {
        let Some(file) = &self.0 else {
            return;
        };
        // Not every file has a length.
        let _ = ftruncate(file, 0);
        let line = ["\n", &report.line(), "\n"].concat();
        if let Err(error) = append(file, &line) {
            say(&["no report: cannot write it: ", &words(error)]);
        }
    }
}

fn try_open(path: &CStr) -> Result<OwnedFd, Errno> {
    // Never to wait, whatever the file is.
    let special = OFlags::NOCTTY | OFlags::NONBLOCK;
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CLOEXEC | special;
    let file = open(path, flags, Mode::empty())?;
    // Behind the standard descriptors, should one of them be closed: the report is not for stderr.
    fcntl_dupfd_cloexec(file, 3)
}

/// Writes all of a line at once, or fails.
fn append(file: &OwnedFd, line: &str) -> Result<(), Errno> {
    match rustix::io::write(file, line.as_bytes())? {
        written if written == line.len() => Ok(()),
        _ => Err(Errno::NOSPC),
    }
}
