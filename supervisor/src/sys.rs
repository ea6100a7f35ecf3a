//! The system calls that cannot be made safely, or not through rustix: signals by number, and what
//! comes between two programs.
//!
//! They go through the C library, which is in the program anyway: rustix has them in a module only
//! that is closed to programs with a C library.

use std::ffi::CStr;
use std::ptr::{from_ref, null, null_mut};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::Pid;

use crate::signals::{LAST_SIGNAL, Received, Sender};
use crate::strings::Strings;

/// Which side of a fork this is.
pub(crate) enum Fork {
    Child,
    Parent(Pid),
}

/// Duplicates the process.
///
/// # Errors
/// `EAGAIN` where no more processes are allowed, `ENOMEM`.
#[expect(
    unsafe_code,
    reason = "a fork of a process with threads could deadlock"
)]
pub(crate) fn fork() -> Result<Fork, Errno> {
    // SAFETY: this process has one thread, so the child can do whatever its parent could.
    match unsafe { libc::fork() } {
        0 => Ok(Fork::Child),
        pid @ 1.. => Pid::from_raw(pid).map(Fork::Parent).ok_or(Errno::CHILD),
        _ => Err(last_error()),
    }
}

/// Becomes another program. Returns only if that failed, and why.
#[expect(unsafe_code, reason = "execve takes pointers")]
pub(crate) fn exec(path: &CStr, arguments: Strings, environment: Strings) -> Errno {
    // SAFETY: a string, and two vectors that `Strings` vouches for.
    unsafe {
        libc::execve(path.as_ptr(), arguments.as_ptr(), environment.as_ptr());
    }
    last_error()
}

/// Ends the process at once: nothing is flushed or dropped.
#[expect(unsafe_code, reason = "not offered safely")]
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: it takes a number and does not return.
    unsafe { libc::_exit(code) }
}

/// Sends a signal. A `pid` of -1 means every process that can be seen and may be signalled, but this
/// one and the first of the PID namespace.
///
/// # Errors
/// `ESRCH` where there is no such process, `EPERM`.
#[expect(unsafe_code, reason = "rustix knows no real-time signals")]
pub(crate) fn send(pid: i32, signal: i32) -> Result<(), Errno> {
    // SAFETY: it takes two numbers.
    match unsafe { libc::kill(pid, signal) } {
        0 => Ok(()),
        _ => Err(last_error()),
    }
}

/// Closes every descriptor but the standard ones: none of them is for the command. Without the call,
/// which is of Linux 5.9, they stay.
#[expect(
    unsafe_code,
    reason = "another owner of a descriptor could still use it"
)]
pub(crate) fn close_all_but_standard() {
    // SAFETY: it takes three numbers, and nothing is open yet in this program.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0);
    }
}

/// Gives every signal its default meaning again. One that was ignored when this program was started
/// would be for the command too, and an ignored SIGCHLD would lose its wait status.
#[expect(unsafe_code, reason = "a handler could be anything; this is none")]
pub(crate) fn reset_dispositions() {
    // As the kernel has it, with zeros for the default, no flags and no signals to hold back.
    let default = [0_usize; 4];
    for signal in 1..=LAST_SIGNAL {
        // SAFETY: as large as the kernel's structure. Signals that have no disposition answer EINVAL.
        // The C library would refuse those that it uses itself.
        unsafe {
            let none = null_mut::<usize>();
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                &raw const default,
                none,
                SET,
            );
        }
    }
}

/// A set of signals as the kernel has it, one bit for each. The C library's own keeps out those that
/// it uses itself.
type SignalSet = u64;

/// Every signal. The kernel leaves KILL and STOP out of it.
const ALL: SignalSet = SignalSet::MAX;

/// The size of a set.
const SET: usize = size_of::<SignalSet>();

/// Holds back every signal, to be taken by [`next_signal`].
pub(crate) fn block_signals() {
    set_mask(ALL);
}

/// Lets every signal through, as a program expects that is started.
pub(crate) fn unblock_signals() {
    set_mask(0);
}

#[expect(unsafe_code, reason = "not offered safely")]
fn set_mask(set: SignalSet) {
    // SAFETY: a valid set, and the old one is not asked for. It cannot fail.
    unsafe {
        let none = null_mut::<SignalSet>();
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &raw const set,
            none,
            SET,
        );
    }
}

/// Takes the next signal that was held back; waits for one if there is none, but no longer than
/// `patience`, and without one for ever.
///
/// The kernel gives the lowest number first. Those above `last`, the one taken before, get their turn
/// nevertheless: else a command could hide a stop behind a flood of signals with lower numbers.
pub(crate) fn next_signal(last: i32, patience: Option<Duration>) -> Option<Received> {
    take_signal(above(last), Some(Duration::ZERO)).or_else(|| take_signal(ALL, patience))
}

/// The signals with higher numbers than one. 0 is below all.
fn above(signal: i32) -> SignalSet {
    ALL.checked_shl(signal.unsigned_abs()).unwrap_or(0)
}

#[expect(unsafe_code, reason = "reads what the kernel tells of a signal")]
fn take_signal(set: SignalSet, patience: Option<Duration>) -> Option<Received> {
    let patience = patience.map(timespec);
    let limit = patience.as_ref().map_or(null(), from_ref);
    // SAFETY: a valid set, room for the answer, and a time or none. A zeroed answer is a valid one.
    let (signal, info) = unsafe {
        let mut info = std::mem::zeroed();
        let (set, info_at) = (&raw const set, &raw mut info);
        let signal = libc::syscall(libc::SYS_rt_sigtimedwait, set, info_at, limit, SET);
        (signal, info)
    };
    let signal = i32::try_from(signal).ok().filter(|signal| *signal > 0)?;
    Some(Received {
        signal,
        sender: sender(&info),
    })
}

/// Who sent a signal. Only for what `kill` and `tkill` send does the kernel fill in the sender: with
/// `sigqueue` a process writes what it likes, so that tells nothing.
#[expect(unsafe_code, reason = "the sender is in a union")]
fn sender(info: &libc::siginfo_t) -> Sender {
    match info.si_code {
        libc::SI_USER | libc::SI_TKILL => {
            // SAFETY: these codes come with a PID.
            Sender::Process(unsafe { info.si_pid() })
        }
        1.. => Sender::Kernel,
        _ => Sender::Claimed,
    }
}

fn timespec(duration: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: duration.as_secs().try_into().unwrap_or_default(),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

/// Gives up the terminal of the own session, if it has one. The kernel sends HUP and CONT to the
/// terminal's foreground group, which is that of this process.
#[expect(unsafe_code, reason = "any request is possible through ioctl")]
pub(crate) fn give_up_terminal() {
    // SAFETY: this request takes no argument. Where there is nothing to give up it answers ENOTTY.
    unsafe {
        libc::ioctl(0, libc::TIOCNOTTY);
    }
}

/// Closes standard input and output.
#[expect(
    unsafe_code,
    reason = "another owner of a descriptor could still use it"
)]
pub(crate) fn close_input_and_output() {
    // SAFETY: nothing in this program uses either.
    unsafe {
        libc::close(0);
        libc::close(1);
    }
}

fn last_error() -> Errno {
    let error = std::io::Error::last_os_error();
    Errno::from_raw_os_error(error.raw_os_error().unwrap_or(libc::EINVAL))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::above;

    #[rstest]
    #[case(0, u64::MAX)]
    #[case(1, u64::MAX - 1)]
    #[case(15, u64::MAX << 15)]
    #[case(63, 1 << 63)]
    #[case(64, 0)]
    fn signals_above(#[case] signal: i32, #[case] expected: u64) {
        assert_eq!(above(signal), expected);
    }
}
