//! Starting the command.

use std::ffi::CStr;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, WaitOptions, getpid, getsid, ioctl_tiocsctty, setsid, waitpid};
use rustix::stdio::stdin;
use rustix::termios::isatty;

use crate::report::Ending;
use crate::search::search;
use crate::stderr::words;
use crate::strings::Strings;
use crate::sys::{self, Fork};

/// The code of a shell for a program that is not there.
const NOT_FOUND: u8 = 127;

/// The code of a shell for a program that cannot be executed.
const NOT_EXECUTABLE: u8 = 126;

/// Starts a command, which is its program's name followed by its arguments, in a session of its own.
///
/// # Errors
/// How it ended when it could not be started.
pub(crate) fn launch(command: Strings, environment: Strings) -> Result<Pid, Ending> {
    let program = command.first().unwrap_or_default();
    try_launch(program, command, environment).map_err(|error| not_started(program, error))
}

/// A command that could not be started, for a reason of our own words.
pub(crate) fn refused(reason: &str) -> Ending {
    Ending::NotStarted {
        code: NOT_EXECUTABLE,
        message: reason.to_owned(),
    }
}

fn not_started(program: &CStr, error: Errno) -> Ending {
    let name = program.to_string_lossy();
    let code = match error {
        Errno::NOENT | Errno::NOTDIR => NOT_FOUND,
        _ => NOT_EXECUTABLE,
    };
    let hint = match error {
        Errno::NOENT if is_there(program) => ", which is its interpreter or loader",
        _ => "",
    };
    Ending::NotStarted {
        code,
        message: ["cannot start \"", &name, "\": ", &words(error), hint].concat(),
    }
}

/// Whether a program that was not looked for is there all the same.
fn is_there(program: &CStr) -> bool {
    program.to_bytes().contains(&b'/') && access(program, Access::EXISTS).is_ok()
}

/// The child tells through a pipe why it could not become the command. That the pipe closes without
/// a word means that it did, so no exit code of a command is mistaken for a failure to start it.
fn try_launch(program: &CStr, command: Strings, environment: Strings) -> Result<Pid, Errno> {
    let (result, failure) = pipe_with(PipeFlags::CLOEXEC)?;
    let terminal = release_terminal();
    match sys::fork()? {
        Fork::Child => {
            let error = become_command(program, command, environment, terminal);
            let _ = rustix::io::write(&failure, &error.raw_os_error().to_ne_bytes());
            sys::exit_now(NOT_FOUND.into())
        }
        Fork::Parent(child) => {
            drop(failure);
            started(child, &result)
        }
    }
}

/// Waits for the child to become the command.
fn started(child: Pid, result: &OwnedFd) -> Result<Pid, Errno> {
    let mut error = [0; 4];
    match rustix::io::read(result, &mut error) {
        Ok(4) => {
            let _ = waitpid(Some(child), WaitOptions::empty());
            Err(Errno::from_raw_os_error(i32::from_ne_bytes(error)))
        }
        _ => Ok(child),
    }
}

/// Whether the command is to get a terminal. Only one session can have it, so ours gives it up.
fn release_terminal() -> bool {
    let terminal = isatty(stdin());
    if terminal && getsid(None) == Ok(getpid()) {
        sys::give_up_terminal();
    }
    terminal
}

/// What the child does. Returns only if that failed.
fn become_command(program: &CStr, command: Strings, environment: Strings, terminal: bool) -> Errno {
    let _ = setsid();
    if terminal {
        take_terminal(stdin());
    }
    sys::unblock_signals();
    let path = environment.value(b"PATH");
    search(program, path, |file| sys::exec(file, command, environment))
}

/// Makes it the terminal of the session, whose foreground group then gets its signals: Ctrl-C, changes
/// of the window. Without one the command runs all the same.
fn take_terminal(terminal: impl AsFd) {
    let _ = ioctl_tiocsctty(terminal);
}
