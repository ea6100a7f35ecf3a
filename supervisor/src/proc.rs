//! What `/proc` tells of processes. All of it may be missing; then there is no answer, never a wrong
//! one.

use std::mem::MaybeUninit;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, RawDir, openat, readlinkat_raw};
use rustix::io::Errno;
use rustix::path::{Arg, DecInt};
use rustix::process::getpid;

/// A process as `/proc/<pid>/stat` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub pid: i32,
    pub parent: i32,
    /// Whether any of its threads still runs: a zombie's first thread has ended, others may not.
    pub alive: bool,
    /// When it was started. With the PID it names a process for ever.
    pub start: u64,
}

/// The processes of a PID namespace. It is checked to be ours: the numbers of another would name
/// the wrong processes.
pub(crate) struct Proc(OwnedFd);

impl Proc {
    /// Opens `/proc`; nothing when it is missing or another namespace's.
    pub(crate) fn open() -> Option<Self> {
        let folder = open(CWD, c"/proc", OFlags::DIRECTORY).ok()?;
        let mut buffer = [0; 16];
        let own = readlinkat_raw(&folder, c"self", &mut buffer[..]).ok()?;
        let pid = DecInt::new(getpid().as_raw_pid());
        (buffer.get(..own)? == pid.as_bytes()).then_some(Self(folder))
    }

    /// A process; nothing when there is none of that PID.
    pub(crate) fn process(&self, pid: i32) -> Option<Process> {
        let folder = open(&self.0, DecInt::new(pid), OFlags::DIRECTORY).ok()?;
        let file = open(folder, c"stat", OFlags::empty()).ok()?;
        let mut buffer = [0; 1024];
        let length = rustix::io::read(file, &mut buffer).ok()?;
        parse(pid, buffer.get(..length)?)
    }

    /// Calls with the PID of every process. Those that start or end meanwhile may be missed.
    pub(crate) fn each(&self, mut visit: impl FnMut(i32)) {
        let Ok(folder) = open(&self.0, c".", OFlags::DIRECTORY) else {
            return;
        };
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut entries = RawDir::new(folder, &mut buffer);
        while let Some(Ok(entry)) = entries.next() {
            if let Some(pid) = number(entry.file_name().to_bytes()) {
                visit(pid);
            }
        }
    }
}

fn open(folder: impl AsFd, path: impl Arg, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC;
    openat(folder, path, flags, Mode::empty())
}

/// Reads a line of `stat`. The name, in parentheses, is the process's choice and may hold any
/// character; the last parenthesis ends it.
fn parse(pid: i32, line: &[u8]) -> Option<Process> {
    let name_end = line.iter().rposition(|byte| *byte == b')')?;
    let mut fields = line.get(name_end + 2..)?.split(|byte| *byte == b' ');
    let state = fields.next()?;
    let parent = number(fields.next()?)?;
    let threads: u32 = number(fields.nth(15)?)?;
    let start = number(fields.nth(1)?)?;
    Some(Process {
        pid,
        parent,
        alive: !matches!(state, b"Z" | b"X") || threads > 1,
        start,
    })
}

fn number<T: std::str::FromStr>(digits: &[u8]) -> Option<T> {
    str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use rustix::process::{getpid, getppid};

    use super::{Proc, Process, parse};

    const REST: &str = "5 5 0 -1 4194304 1 0 0 0 0 0 0 0 20 0";

    #[rstest]
    #[case("S", 1, true)]
    #[case("T", 1, true)]
    #[case("D", 1, true)]
    #[case("Z", 1, false)]
    #[case("Z", 2, true)]
    #[case("X", 1, false)]
    fn states(#[case] state: &str, #[case] threads: u32, #[case] alive: bool) {
        let line = format!("7 (a) b) (c) {state} 3 {REST} {threads} 0 8123 0 0");
        let expected = Process {
            pid: 7,
            parent: 3,
            alive,
            start: 8123,
        };
        assert_eq!(parse(7, line.as_bytes()), Some(expected));
    }

    #[rstest]
    #[case("")]
    #[case("7 (a)")]
    #[case("7 (a) ")]
    #[case("7 (a) S")]
    #[case("7 (a) S x 1 1")]
    #[case("7 (a) S 3 5 5 0")]
    fn no_such_line(#[case] line: &str) {
        assert_eq!(parse(7, line.as_bytes()), None);
    }

    #[test]
    fn the_real_one_has_this_process_and_its_parent() {
        let (pid, parent) = (getpid().as_raw_pid(), getppid().unwrap().as_raw_pid());
        let proc = Proc::open().expect("a /proc of this namespace");
        let own = proc.process(pid).unwrap();
        assert!(
            own.alive && own.parent == parent && own.start > 0,
            "{own:?}"
        );
        let mut seen = Vec::new();
        proc.each(|it| seen.push(it));
        assert!(seen.contains(&pid) && seen.contains(&parent), "{seen:?}");
    }
}
