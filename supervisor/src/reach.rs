//! The processes of the box besides the supervisor and the command: which they are, and signals to
//! all of them.

use libc::{SIGCONT, SIGKILL, SIGTERM};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal, set_child_subreaper,
};

use crate::proc::{Proc, Process};
use crate::signals::{Origin, Received, Sender};
use crate::stderr::{say, words};
use crate::sys::send;

/// Every process that may be signalled.
const ALL: i32 = -1;

/// How the processes of the box are told from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The PID namespace is the container's own: all that are in it.
    Namespace,
    /// It is shared with other containers or the host: our descendants. One whose parent ends becomes
    /// our child.
    Descendants,
}

impl Reach {
    /// What this process can reach. Where it is not the first of its PID namespace, makes orphans its
    /// own from now on.
    pub(crate) fn of_this_process() -> Self {
        if getpid().is_init() {
            return Self::Namespace;
        }
        if let Err(error) = set_child_subreaper(Some(getpid())) {
            say(&["daemons may outlive the box: ", &words(error)]);
        }
        Self::Descendants
    }

    /// Asks all of them to end: the command with `signal`, the others with TERM. Stopped ones are
    /// continued, or they could not.
    pub(crate) fn terminate(self, command: Option<Pid>, signal: i32) {
        if self == Self::Namespace && signal == SIGTERM {
            let _ = send(ALL, SIGTERM);
        } else {
            self.terminate_one_by_one(command, signal);
        }
        self.signal_all(SIGCONT);
    }

    fn terminate_one_by_one(self, command: Option<Pid>, signal: i32) {
        let command = command.map_or(0, Pid::as_raw_pid);
        if command != 0 {
            let _ = send(command, signal);
        }
        for process in self.others() {
            if process.pid != command {
                signal_one(process, SIGTERM);
            }
        }
    }

    /// Ends all that are there now.
    pub(crate) fn kill(self) {
        self.signal_all(SIGKILL);
    }

    fn signal_all(self, signal: i32) {
        match self {
            Self::Namespace => {
                let _ = send(ALL, signal);
            }
            Self::Descendants => {
                for process in self.others() {
                    signal_one(process, signal);
                }
            }
        }
    }

    /// How many still run that are not the supervisor itself. 1 where nothing is known but that there
    /// are some.
    ///
    /// `children`: whether this process still has some. In a namespace of our own there can be others:
    /// those that the container runtime put into it, which it reaps itself.
    pub(crate) fn remaining(self, children: bool) -> u32 {
        let alone = match self {
            Self::Namespace => !children && send(ALL, 0) == Err(Errno::SRCH),
            Self::Descendants => !children,
        };
        if alone {
            return 0;
        }
        let Some(proc) = Proc::open() else {
            return 1;
        };
        let alive = self.others_in(&proc).iter().filter(|it| it.alive).count();
        u32::try_from(alive).unwrap_or(u32::MAX)
    }

    fn others(self) -> Vec<Process> {
        Proc::open().map_or_else(Vec::new, |proc| self.others_in(&proc))
    }

    fn others_in(self, proc: &Proc) -> Vec<Process> {
        let own = getpid().as_raw_pid();
        let mut all = Vec::new();
        proc.each(|pid| all.extend(proc.process(pid)));
        all.retain(|it| it.pid != own);
        match self {
            Self::Namespace => all,
            Self::Descendants => descendants(own, all),
        }
    }

    /// Where a signal comes from.
    pub(crate) fn origin(self, received: Received) -> Origin {
        match received.sender {
            Sender::Kernel | Sender::Claimed => Origin::Inside,
            Sender::Process(0) => Origin::Outside,
            Sender::Process(pid) if pid == getpid().as_raw_pid() => Origin::Supervisor,
            Sender::Process(pid) => self.origin_of(pid),
        }
    }

    fn origin_of(self, pid: i32) -> Origin {
        match self {
            Self::Namespace => Origin::Inside,
            Self::Descendants if self.others().iter().any(|it| it.pid == pid) => Origin::Inside,
            Self::Descendants => Origin::Outside,
        }
    }
}

/// Those of some processes that descend from one.
fn descendants(ancestor: i32, mut candidates: Vec<Process>) -> Vec<Process> {
    let mut found: Vec<Process> = Vec::new();
    loop {
        let before = found.len();
        let family = |pid| pid == ancestor || found.iter().any(|it| it.pid == pid);
        let (children, rest): (Vec<_>, Vec<_>) =
            candidates.into_iter().partition(|it| family(it.parent));
        found.extend(children);
        if found.len() == before {
            return found;
        }
        candidates = rest;
    }
}

/// Signals a process, and no other that has got its PID since it was seen.
fn signal_one(seen: Process, signal: i32) {
    let Some(pid) = Pid::from_raw(seen.pid) else {
        return;
    };
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(process) if still(seen) => {
            if let Some(signal) = Signal::from_named_raw(signal) {
                let _ = pidfd_send_signal(process, signal);
            }
        }
        // Not every runtime has these calls.
        Err(Errno::NOSYS | Errno::PERM) if still(seen) => {
            let _ = send(seen.pid, signal);
        }
        _ => {}
    }
}

fn still(seen: Process) -> bool {
    let now = Proc::open().and_then(|proc| proc.process(seen.pid));
    now.is_some_and(|now| now.start == seen.start)
}

#[cfg(test)]
mod tests {
    use super::{Process, descendants};

    fn process((pid, parent): (i32, i32)) -> Process {
        Process {
            pid,
            parent,
            alive: true,
            start: 1,
        }
    }

    #[test]
    fn descendants_are_found_in_whatever_order_they_are_listed() {
        let all = [
            (1, 0),
            (9, 8),
            (2, 1),
            (8, 7),
            (7, 5),
            (6, 2),
            (5, 1),
            (10, 5),
        ]
        .map(process);
        let mut found: Vec<_> = descendants(5, all.into()).iter().map(|it| it.pid).collect();
        found.sort_unstable();
        assert_eq!(found, [7, 8, 9, 10]);
    }

    #[test]
    fn a_ring_of_parents_belongs_to_nobody() {
        assert_eq!(descendants(5, [(7, 8), (8, 7)].map(process).into()), []);
    }
}
