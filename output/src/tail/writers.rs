//! Whether anybody still writes to a file: asked of the kernel, which needs no state and no guess of time.
//!
//! A read lease is given only on a file that nobody has open for writing (`fcntl(2)`, `F_SETLEASE`). It
//! is given back at once. Whoever opens the file for writing in between waits for these microseconds,
//! and the kernel tells the lease's holder by SIGIO, which would end the process if it were not ignored.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::Once;

/// Says of an open file whether somebody has it open for writing; `None` if that cannot be told: the file
/// system knows no leases, or the file is another user's.
pub(crate) type Ask = fn(&File) -> Option<bool>;

/// Asks the kernel.
pub(crate) fn is_written(file: &File) -> Option<bool> {
    static NO_SIGNAL: Once = Once::new();
    NO_SIGNAL.call_once(ignore_sigio);
    if set_lease(file, libc::F_RDLCK) {
        set_lease(file, libc::F_UNLCK);
        return Some(false);
    }
    let error = std::io::Error::last_os_error();
    (error.raw_os_error() == Some(libc::EAGAIN)).then_some(true)
}

#[expect(unsafe_code, reason = "rustix has no leases")]
fn set_lease(file: &File, kind: i32) -> bool {
    // SAFETY: the descriptor is open, and the call takes a number and no pointer.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, kind) == 0 }
}

#[expect(unsafe_code, reason = "rustix sets no dispositions of signals")]
fn ignore_sigio() {
    // SAFETY: no handler is installed that could run, and none was: nothing here waits for this signal.
    unsafe {
        libc::signal(libc::SIGIO, libc::SIG_IGN);
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;

    #[test]
    fn a_file_is_written_while_somebody_has_it_open_for_that() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("0.log");
        let writer = OpenOptions::new().append(true).create(true).open(&path);
        let (writer, file) = (writer.unwrap(), File::open(&path).unwrap());
        let other_reader = File::open(&path).unwrap();
        assert_eq!(is_written(&file), Some(true));
        let second = writer.try_clone().unwrap();
        drop(writer);
        assert_eq!(is_written(&file), Some(true));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(is_written(&file), Some(true), "whatever its name");
        drop(second);
        assert_eq!(is_written(&file), Some(false));
        assert_eq!(
            is_written(&other_reader),
            Some(false),
            "nothing is left of it"
        );
    }

    #[test]
    fn of_what_knows_no_leases_it_cannot_be_told() {
        assert_eq!(is_written(&File::open("/dev/null").unwrap()), None);
    }

    #[test]
    fn who_opens_a_file_for_writing_while_it_is_asked_about_does_so() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("0.log");
        let file = File::create(&path)
            .map(drop)
            .and_then(|()| File::open(&path));
        let file = file.unwrap();
        let opening = std::thread::spawn(move || {
            for _ in 0..2000 {
                OpenOptions::new().append(true).open(&path).unwrap();
            }
        });
        while !opening.is_finished() {
            assert!(is_written(&file).is_some());
        }
        opening.join().unwrap();
    }
}
