//! The supervisor's own failures. Its standard error is the command's, so it says nothing else there.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::stdio::stderr;

/// How long a full pipe is waited for: what cannot be said must not keep a box from ending.
const PATIENCE: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// Says something, in one line.
pub(crate) fn say(parts: &[&str]) {
    let line = ["boxes-supervisor: ", &parts.concat(), "\n"].concat();
    let error = stderr();
    let mut ready = [PollFd::new(&error, PollFlags::OUT)];
    if poll(&mut ready, Some(&PATIENCE)) != Ok(0) {
        let _ = rustix::io::write(error, line.as_bytes());
    }
}

/// The system's words for an error.
pub(crate) fn words(error: Errno) -> String {
    std::io::Error::from(error).to_string()
}
