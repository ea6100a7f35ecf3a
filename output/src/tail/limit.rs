//! How many files may be held open.

use std::io;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lets this process open as many files as the system allows it. Gives how many those are, if there is
/// a bound.
///
/// # Errors
/// The system does not allow what it said it would.
pub fn raise_limit() -> io::Result<Option<u64>> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: maximum,
            maximum,
        },
    )?;
    Ok(maximum)
}

/// How many log files all tailers together may hold: the rest is for folders, connections and the
/// archive.
#[must_use]
pub fn share_of_limit() -> u64 {
    getrlimit(Resource::Nofile)
        .current
        .map_or(u64::MAX, |files| files / 2)
}

/// Whether an error says that too many files are open, or that this process may not read any: on a node
/// that enforces `SELinux`, say. That says nothing about a log, which is there when it is over.
#[must_use]
pub fn is_ours(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE | Errno::ACCESS | Errno::PERM)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_to_what_is_allowed() {
        let allowed = raise_limit().unwrap();
        let now = getrlimit(Resource::Nofile);
        assert_eq!((now.current, now.maximum), (allowed, allowed));
        assert!(share_of_limit() > 0);
    }

    #[test]
    fn what_this_process_may_not_do_is_no_fault_of_a_log() {
        for ours in [Errno::MFILE, Errno::NFILE, Errno::ACCESS, Errno::PERM] {
            assert!(is_ours(&ours.into()));
        }
        assert!(!is_ours(&Errno::IO.into()));
    }
}
