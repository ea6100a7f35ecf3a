//! Copying the program to where the box finds it, for an init container to do.

use std::ffi::CStr;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, fchmod, openat, renameat, unlinkat};
use rustix::io::{Errno, read, write};

use crate::stderr::{say, words};

/// The name that it gets in the folder.
const NAME: &CStr = c"boxes-supervisor";

/// Its name until it is complete.
const PART: &CStr = c".boxes-supervisor.part";

/// For everyone to read and execute, and nobody to write: the box may run as any user.
const MODE: Mode = Mode::from_raw_mode(0o555);

/// Copies this program into a folder. Gives the exit status, and says what went wrong.
///
/// The copy appears whole or not at all, and takes the place of an earlier one.
pub(crate) fn install(folder: &CStr) -> u8 {
    match try_install(folder) {
        Ok(()) => 0,
        Err((what, error)) => {
            let folder = folder.to_string_lossy();
            say(&[
                "cannot install to ",
                &folder,
                ": ",
                what,
                ": ",
                &words(error),
            ]);
            1
        }
    }
}

/// What failed, and the system's reason.
type Failure = (&'static str, Errno);

fn try_install(folder: &CStr) -> Result<(), Failure> {
    let program = open(CWD, c"/proc/self/exe", OFlags::RDONLY).map_err(failed("the program"))?;
    let folder = open(CWD, folder, OFlags::DIRECTORY).map_err(failed("the folder"))?;
    // Left behind by one that was killed.
    let _ = unlinkat(&folder, PART, AtFlags::empty());
    let copied = copy_to(&program, &folder);
    if copied.is_err() {
        let _ = unlinkat(&folder, PART, AtFlags::empty());
    }
    copied
}

fn copy_to(program: &OwnedFd, folder: &OwnedFd) -> Result<(), Failure> {
    let create = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let part = open(folder, PART, create).map_err(failed("a new file"))?;
    copy(program, &part).map_err(failed("the copy"))?;
    fchmod(&part, MODE).map_err(failed("its mode"))?;
    renameat(folder, PART, folder, NAME).map_err(failed("its name"))
}

fn failed(what: &'static str) -> impl Fn(Errno) -> Failure {
    move |error| (what, error)
}

fn open(folder: impl AsFd, path: &CStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    openat(folder, path, flags | OFlags::CLOEXEC, MODE)
}

fn copy(from: &OwnedFd, to: &OwnedFd) -> Result<(), Errno> {
    let mut buffer = [0; 16 * 1024];
    loop {
        let length = read(from, &mut buffer)?;
        let Some(bytes) = buffer.get(..length).filter(|bytes| !bytes.is_empty()) else {
            return Ok(());
        };
        write_all(to, bytes)?;
    }
}

fn write_all(to: &OwnedFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        let written = write(to, bytes)?;
        bytes = bytes.get(written..).unwrap_or_default();
    }
    Ok(())
}
