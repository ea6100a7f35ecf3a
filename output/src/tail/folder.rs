//! Opens log folders and files, and nothing that a link leads to.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, statat,
};
use rustix::io::Errno;

use super::name::{LogName, in_order};

/// The node's folder of pod logs.
#[derive(Debug)]
pub struct LogRoot(OwnedFd);

/// What tells a file from others while it is open.
pub(crate) type FileId = (u64, u64);

const FOLDER: OFlags = OFlags::DIRECTORY.union(READ);
/// Not to wait for whoever writes to a pipe that stands where a log should be.
const FILE: OFlags = OFlags::NONBLOCK.union(READ);
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
const BENEATH: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS);

impl LogRoot {
    /// Opens the folder, usually `/var/log/pods`.
    ///
    /// # Errors
    /// It is not there, or not a folder.
    pub fn open(path: &Path) -> io::Result<Self> {
        // The way to the root is the administrator's and may have links.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(openat(CWD, path, flags, Mode::empty())?))
    }

    /// Opens a folder in it, such as `<namespace>_<pod>_<uid>/<container>`.
    pub(crate) fn folder(&self, path: &str) -> io::Result<Folder> {
        Ok(Folder(beneath(&self.0, path, FOLDER)?))
    }
}

/// A container's log folder.
#[derive(Debug)]
pub(crate) struct Folder(OwnedFd);

impl Folder {
    /// The log files in it, oldest first.
    pub(crate) fn list(&self) -> io::Result<Vec<LogName>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            let name = entry.file_name().to_str().ok();
            names.extend(name.and_then(LogName::parse));
        }
        Ok(in_order(names))
    }

    /// Which file is written; `None` while there is none. An attempt may be followed by the next one.
    pub(crate) fn current(&self, attempt: u32) -> io::Result<Option<FileId>> {
        match self.id_of(&LogName::current(attempt.saturating_add(1)))? {
            None => self.id_of(&LogName::current(attempt)),
            next => Ok(next),
        }
    }

    /// The last attempt that has a file.
    pub(crate) fn newest_attempt(&self) -> io::Result<Option<u32>> {
        Ok(self.list()?.last().map(|last| last.attempt))
    }

    fn id_of(&self, name: &LogName) -> io::Result<Option<FileId>> {
        match statat(&self.0, name.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some((stat.st_dev, stat.st_ino))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a file of the log.
    pub(crate) fn open(&self, name: &LogName) -> io::Result<(File, FileId)> {
        let file = beneath(&self.0, &name.file_name(), FILE)?;
        let stat = fstat(&file)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(io::Error::other("a log file is no regular file"));
        }
        Ok((file.into(), (stat.st_dev, stat.st_ino)))
    }
}

fn beneath(dir: &OwnedFd, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
    match openat2(dir, path, flags, Mode::empty(), BENEATH) {
        // An old kernel, or a filter that does not know the call.
        Err(Errno::NOSYS | Errno::PERM) => step_by_step(dir, path, flags),
        other => Ok(other?),
    }
}

/// The same by hand: each part of the path by itself, and no link at any.
fn step_by_step(dir: &OwnedFd, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
    let parts: Vec<&str> = path.split('/').collect();
    if parts.iter().any(|part| matches!(*part, "" | "." | "..")) {
        return Err(Errno::XDEV.into());
    }
    let (last, folders) = parts.split_last().ok_or(Errno::NOENT)?;
    let mut at = dir.try_clone()?;
    for part in folders {
        at = openat(at.as_fd(), *part, FOLDER, Mode::empty())?;
    }
    Ok(openat(at.as_fd(), *last, flags, Mode::empty())?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[rstest::rstest]
    #[case("pod/box", true)]
    #[case("pod", true)]
    #[case("../outside", false)]
    #[case("pod/../../outside", false)]
    #[case("/etc", false)]
    #[case("link", false)]
    #[case("link/box", false)]
    #[case("pod/link", false)]
    fn only_real_folders_below_are_opened(#[case] path: &str, #[case] good: bool) {
        let base = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(base.path().join("logs/pod/box")).unwrap();
        std::fs::create_dir_all(base.path().join("outside/box")).unwrap();
        symlink("../outside", base.path().join("logs/link")).unwrap();
        symlink("box", base.path().join("logs/pod/link")).unwrap();
        let root = LogRoot::open(&base.path().join("logs")).unwrap();
        assert_eq!(root.folder(path).is_ok(), good);
        assert_eq!(step_by_step(&root.0, path, FOLDER).is_ok(), good);
    }

    #[test]
    fn links_and_pipes_are_no_logs() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("pod");
        std::fs::create_dir_all(&folder).unwrap();
        let root = LogRoot::open(base.path()).unwrap();
        let opened = root.folder("pod").unwrap();
        symlink("/etc/passwd", folder.join("0.log")).unwrap();
        assert!(opened.open(&LogName::current(0)).is_err());
        std::fs::remove_file(folder.join("0.log")).unwrap();
        rustix::fs::mknodat(CWD, folder.join("0.log"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert!(opened.open(&LogName::current(0)).is_err());
    }
}
