//! The first process of a box. It starts the box's command, ends what the command leaves behind, and
//! reports how the command ended in one line, which nothing else can tell: a container's exit code of
//! 139 is a segmentation fault or a command that returned 139.
//!
//! ```text
//! boxes-supervisor run [--grace=<seconds>] [--report=<file>] -- <program> [<argument>…]
//! boxes-supervisor install <folder>
//! boxes-supervisor --version
//! ```
//!
//! # A box's life
//! 1. It closes itself to other processes, opens the file of the report, and holds back every signal.
//! 2. It starts the command in a session of its own, with the terminal if there is one, and with
//!    descriptors, environment and folder as they were given; only `BOXES_REPORT_KEY` is taken out. Signals
//!    have their default meaning. A command that cannot be started ends with 127 or 126, and the report says
//!    why.
//! 3. It takes one signal after the other, and the wait status of every orphan. What comes from outside of
//!    the box is a *stop*; the rest goes to the command.
//! 4. At a stop, or when the command has ended by itself, every other process gets TERM and CONT; after
//!    the grace KILL.
//! 5. When all have ended, it writes the report as the only line of the file, and exits as the command did:
//!    with its code, or with 128 and its signal.
//!
//! | what | file |
//! |---|---|
//! | the line, for others to test against | `report.rs` |
//! | the command line | `arguments.rs`, `install.rs` |
//! | from first to last | `supervise.rs`, `run.rs` |
//! | starting the command | `launch.rs`, `search.rs` |
//! | what a signal means | `signals.rs` |
//! | the other processes | `reach.rs`, `proc.rs` |
//! | out-of-memory kills | `oom.rs` |
//! | what is unsafe | `sys.rs`, `strings.rs` |
//!
//! # What it promises
//! - A command cannot forge a stop, nor the line at the end of the file while the supervisor lives. It has
//!   no way to kill the first process of its PID namespace by a signal.
//! - Nothing of the box runs when the report is written, unless the report counts `survivors`.
//! - It needs no capability, user, writable file system or configuration of its own. What a runtime lacks
//!   (`/proc`, `prctl`, the cgroup's files) makes the report poorer, not wrong.
//!
//! # What it cannot promise
//! - A process in uninterruptible sleep (a dead disk or server) cannot be killed. It is waited for one second,
//!   and counted as a survivor. So is a process of another user, such as a setuid program's, where the
//!   supervisor is not root. In a PID namespace of its own all end with the supervisor, as far as the kernel
//!   can end them.
//! - With `hostPID` or `shareProcessNamespace` it is not the first process and signals only its descendants,
//!   found by walking `/proc`. What is started by another, as by `kubectl exec`, it cannot find. There TERM is
//!   a stop from whomever it comes, and another signal is one if its sender is no descendant any more. A
//!   command can end it with KILL; then there is no report.
//! - The grace must be shorter than the kubelet's own, by the second that dying may take. If the kubelet kills
//!   first (hard eviction, node shutdown, forced deletion) there is no report.
//! - Where the kernel kills the whole cgroup for want of memory (`memory.oom.group`, which the kubelet sets on
//!   cgroup v2), the supervisor goes too, and there is no report. Otherwise the counter tells how many were
//!   killed, not which.
//! - A signal that is pending already is not queued a second time, unless it is a real-time one. So a command
//!   that sends TERM to the supervisor without pause can hide a stop, and is killed by the kubelet.
//! - A command of the same user can set limits on the supervisor (`prlimit`), among them one of processor time
//!   by which the kernel kills it, or of file size so that no report is written. Either loses the
//!   report; neither makes a false one as long as readers ask for the key, which the command does not get.
//! - A stop in the first millisecond, before signals are held back, is lost as it is in any container whose
//!   first process has not set up its handlers yet; the kubelet's KILL follows.
//! - Processes that others put into the box's PID namespace (`kubectl exec`, a debugging container that
//!   targets it) end with the box.

mod arguments;
mod install;
mod launch;
mod oom;
mod proc;
mod reach;
pub mod report;
mod report_file;
mod run;
mod search;
mod signals;
mod stderr;
mod strings;
mod supervise;
mod sys;
mod text;
mod utc;

pub use strings::Strings;

use arguments::Asked;

/// What the program answers to a command line that it cannot make out: `EX_USAGE`.
const USAGE: u8 = 64;

/// The program: does what its arguments ask for, and gives its exit status.
#[must_use]
pub fn main(arguments: Strings, environment: Strings) -> u8 {
    match arguments::read(arguments) {
        Asked::Run(run) => supervise::supervise(run, environment),
        Asked::Install(folder) => install::install(folder),
        Asked::Version => tell_version(),
        Asked::Unclear => tell_usage(),
    }
}

fn tell_version() -> u8 {
    let line = concat!("boxes-supervisor ", env!("CARGO_PKG_VERSION"), "\n");
    u8::from(rustix::io::write(rustix::stdio::stdout(), line.as_bytes()).is_err())
}

fn tell_usage() -> u8 {
    stderr::say(&[
        "usage: run [--grace=<seconds>] [--report=<file>] -- <program> [<argument>...] \
                   | install <folder> | --version",
    ]);
    USAGE
}
