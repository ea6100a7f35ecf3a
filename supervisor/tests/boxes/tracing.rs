//! Looking at a box in the moment in which its supervisor exits. The kernel ends what is left in a PID
//! namespace when its first process is gone, so a look after that would find nothing in any case.

use crate::processes::{eventually, in_namespace_of};

/// A traced supervisor. All calls must come from the thread that traces.
pub(crate) struct Traced {
    pid: i32,
    exiting: bool,
    /// It stands still in its exit. One that was seized too late for that just ends.
    held: bool,
}

impl Traced {
    /// Has a process stop when it exits; nothing when it has exited already.
    pub(crate) fn seize(pid: i32) -> Option<Self> {
        // SAFETY: none of the arguments is an address.
        let seized = unsafe {
            libc::ptrace(
                libc::PTRACE_SEIZE,
                pid,
                0usize,
                libc::PTRACE_O_TRACEEXIT as usize,
            )
        };
        (seized == 0).then_some(Self {
            pid,
            exiting: false,
            held: false,
        })
    }

    /// Waits until it exits. Gives the processes that are in its namespace besides it then, zombies
    /// included, and lets it go; nothing when it was too late to hold it.
    pub(crate) fn others_at_exit(mut self) -> Option<Vec<i32>> {
        eventually("the exit of the supervisor", || {
            self.is_exiting().then_some(())
        });
        if !self.held {
            return None;
        }
        let all = in_namespace_of(self.pid).into_iter();
        let others = all.filter(|pid| *pid != self.pid).collect();
        self.go_on(libc::PTRACE_DETACH, 0);
        Some(others)
    }

    /// Lets it go once it has been killed: even then it stops.
    pub(crate) fn release(mut self) {
        eventually("the end of the supervisor", || {
            self.is_exiting().then_some(())
        });
        self.go_on(libc::PTRACE_DETACH, 0);
    }

    /// Whether it exits or has ended. Lets it go on when it stops for something else: a signal, or
    /// a SIGCONT for which it was not stopped. So it must be asked now and then.
    pub(crate) fn is_exiting(&mut self) -> bool {
        let mut status = 0;
        // SAFETY: room for the status.
        let pid = unsafe { libc::waitpid(self.pid, &raw mut status, libc::WNOHANG | libc::__WALL) };
        if pid == self.pid && libc::WIFSTOPPED(status) {
            self.stopped(status);
        } else {
            self.exiting |= pid != 0;
        }
        self.exiting
    }

    fn stopped(&mut self, status: i32) {
        match status >> 16 {
            libc::PTRACE_EVENT_EXIT => (self.exiting, self.held) = (true, true),
            0 => self.go_on(libc::PTRACE_CONT, libc::WSTOPSIG(status)),
            _ => self.go_on(libc::PTRACE_CONT, 0),
        }
    }

    fn go_on(&self, request: impl Into<i64>, signal: i32) {
        // SAFETY: none of the arguments is an address.
        unsafe {
            libc::syscall(
                libc::SYS_ptrace,
                request.into(),
                self.pid,
                0usize,
                i64::from(signal),
            );
        }
    }
}
