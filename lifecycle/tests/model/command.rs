//! What the command of a box does, and what its image and node do to it.

/// How the start goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// It starts once the image is there.
    Good,
    /// The image never comes.
    NoImage,
    /// There is no such program.
    NoProgram,
    /// The kubelet rejects the pod.
    Rejected,
    /// An init container fails.
    InitFails,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Code(i32),
    Signal(i32),
}

impl Wait {
    /// What the kubelet sees of it.
    pub(crate) fn shown(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(number) => 128 + number,
        }
    }
}

/// What the command does with a TERM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnTerm {
    /// Dies of it: 143 by the kubelet's word.
    Dies,
    /// Returns this code a second later.
    Returns(i32),
    /// Ignores it.
    Ignores,
}

/// One command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command {
    pub start: Start,
    /// Seconds that the image takes.
    pub pull: i64,
    /// Seconds until it returns by itself; never when absent.
    pub runs: Option<i64>,
    /// How it then ends.
    pub ends: Wait,
    pub on_term: OnTerm,
    /// Whether the kernel kills a process of it for want of memory just before it returns.
    pub oom: bool,
    /// Whether a second container stands beside it that ends only when it is told to.
    pub sidecar: bool,
    /// Whether it writes reports of its own into the termination message.
    pub forges: bool,
}

impl Command {
    /// Returns a code after some seconds.
    pub(crate) fn returning(code: i32, runs: i64) -> Self {
        Self {
            start: Start::Good,
            pull: 1,
            runs: Some(runs),
            ends: Wait::Code(code),
            on_term: OnTerm::Dies,
            oom: false,
            sidecar: false,
            forges: false,
        }
    }

    /// Runs until it is told to end.
    pub(crate) fn endless(on_term: OnTerm) -> Self {
        Self {
            runs: None,
            on_term,
            ..Self::returning(0, 0)
        }
    }
}
