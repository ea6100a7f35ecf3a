//! What a signal to the supervisor means.

use libc::{SIGCHLD, SIGCONT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG};

/// The highest signal number of Linux.
pub(crate) const LAST_SIGNAL: i32 = 64;

/// Signals that end no process by default, and with which no container is stopped: they are about
/// the supervisor itself, its children and its terminal. Not so WINCH, with which some images ask to be
/// stopped.
const OWN_BUSINESS: [i32; 6] = [SIGCHLD, SIGCONT, SIGURG, SIGTSTP, SIGTTIN, SIGTTOU];

/// A signal that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub signal: i32,
    pub sender: Sender,
}

/// Who sent a signal, as far as the kernel vouches for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    /// The kernel: a terminal, a timer, a child that ended.
    Kernel,
    /// A process; 0 when it is not in our PID namespace.
    Process(i32),
    /// A process that named itself, so it could be any that may signal us.
    Claimed,
}

/// Where a signal comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// From outside the box: the container runtime, for the kubelet.
    Outside,
    /// From the box or its terminal, or nobody can tell.
    Inside,
    /// From the supervisor: what a broken pipe or a terminal given up causes.
    Supervisor,
}

/// What to do about a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// The box is to stop, with this signal.
    Stop(i32),
    /// It is for the command.
    Forward(i32),
    Nothing,
}

/// What a signal means. Whatever comes from outside is a stop, for an image may name any signal as
/// its own to be stopped with. From inside nothing is, so that no command can forge a stop.
///
/// `shared`: in a PID namespace that is shared with other containers or the host TERM is a stop always,
/// since a sender's place in it can be mistaken.
pub(crate) fn meaning(signal: i32, origin: Origin, shared: bool) -> Meaning {
    if OWN_BUSINESS.contains(&signal) {
        return Meaning::Nothing;
    }
    match origin {
        Origin::Supervisor => Meaning::Nothing,
        Origin::Outside => Meaning::Stop(signal),
        Origin::Inside if shared && signal == SIGTERM => Meaning::Stop(signal),
        Origin::Inside => Meaning::Forward(signal),
    }
}

#[cfg(test)]
mod tests {
    use libc::{
        SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU,
        SIGURG, SIGUSR1, SIGUSR2, SIGWINCH,
    };
    use rstest::rstest;

    use super::Meaning::{Forward, Nothing, Stop};
    use super::Origin::{Inside, Outside, Supervisor};
    use super::meaning;

    #[rstest]
    fn from_outside_any_signal_of_an_image_is_a_stop(
        #[values(
            SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, 34, 37, 64
        )]
        signal: i32,
        #[values(false, true)] shared: bool,
    ) {
        assert_eq!(meaning(signal, Outside, shared), Stop(signal));
    }

    #[rstest]
    fn from_inside_it_is_forwarded(
        #[values(
            SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, 34, 37, 64
        )]
        signal: i32,
    ) {
        assert_eq!(meaning(signal, Inside, false), Forward(signal));
    }

    #[test]
    fn in_a_shared_namespace_only_term_is_a_stop_from_anywhere() {
        assert_eq!(meaning(SIGTERM, Inside, true), Stop(SIGTERM));
        assert_eq!(meaning(SIGHUP, Inside, true), Forward(SIGHUP));
    }

    #[rstest]
    fn some_are_nobody_elses_business(
        #[values(SIGCHLD, SIGCONT, SIGURG, SIGTSTP, SIGTTIN, SIGTTOU)] signal: i32,
        #[values(Outside, Inside, Supervisor)] origin: super::Origin,
        #[values(false, true)] shared: bool,
    ) {
        assert_eq!(meaning(signal, origin, shared), Nothing);
    }

    #[rstest]
    fn what_the_supervisor_causes_itself_is_dropped(#[values(SIGHUP, SIGPIPE)] signal: i32) {
        assert_eq!(meaning(signal, Supervisor, false), Nothing);
    }
}
