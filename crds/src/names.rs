//! The closed sets of words that this build writes into `status`.
//!
//! On the wire they are plain strings: a word written by a newer build must load (contract §3).

/// Defines an enum whose variants are words of the API, with both directions of the translation.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$variant_doc])* $variant),+ }

        impl $name {
            /// Every word of the set, in the order of the contract.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word as written in the API.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant)),+ }
            }

            /// The variant for a word, `None` for a word that this build does not know.
            #[must_use]
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.as_str() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// `status.state` (contract §2).
    State {
        /// Accepted; no pod is bound to a node yet.
        Pending,
        /// A pod is bound; its image, volumes and container are being made.
        Materializing,
        /// The container has started.
        Running,
        /// Ended: something stopped it.
        Stopped,
        /// Ended: by itself, by its deadline, or by running out of memory.
        Exited,
    }
}

impl State {
    /// Whether the state never changes again.
    #[must_use]
    pub const fn is_final(self) -> bool {
        match self {
            Self::Stopped | Self::Exited => true,
            Self::Pending | Self::Materializing | Self::Running => false,
        }
    }
}

words! {
    /// `status.reason` (contract §3).
    Reason {
        /// The command returned.
        Exit,
        /// A signal that no one asked this system for killed the command.
        Signal,
        /// The command ran past `activeDeadlineSeconds`.
        Timeout,
        /// The kernel's OOM kill ended the box.
        OOM,
        /// A stop was asked.
        Stopped,
        /// Its pod was evicted, or its node shut down.
        Evicted,
        /// Its pod made room for one of a higher priority.
        Preempted,
        /// Someone else deleted its pod.
        PodDeleted,
        /// Its node is positively gone.
        NodeLost,
        /// Its pod is positively absent and no ending was seen.
        PodLost,
        /// The command never started.
        StartFailed,
    }
}

impl Reason {
    /// The state that a box with this reason is in.
    #[must_use]
    pub const fn state(self) -> State {
        match self {
            Self::Exit | Self::Signal | Self::Timeout | Self::OOM => State::Exited,
            Self::Stopped
            | Self::Evicted
            | Self::Preempted
            | Self::PodDeleted
            | Self::NodeLost
            | Self::PodLost
            | Self::StartFailed => State::Stopped,
        }
    }
}

words! {
    /// `status.evidence`: how the ending is known.
    Evidence {
        /// The wait status was reported by the supervisor and agrees with the kubelet.
        Observed,
        /// Only the kubelet's exit code is known.
        Derived,
        /// There is no wait status: the node or the pod was lost.
        Inferred,
    }
}

words! {
    /// `status.stop.by`: what asked for the stop.
    StopCause {
        /// `spec.stopped: true`.
        Spec,
        /// The Box is being deleted.
        Delete,
        /// `spec.startDeadlineSeconds` passed before the command started.
        StartDeadline,
    }
}

words! {
    /// `status.output.state`: how far the saving of the command's output is.
    OutputState {
        /// The command has not started.
        Pending,
        /// It is being saved.
        Saving,
        /// All of it is durable.
        Saved,
        /// What is durable has gaps, which are told with it.
        Partial,
        /// Nobody says what was saved, and nobody will.
        Unavailable,
    }
}

impl OutputState {
    /// Whether the state never changes again.
    #[must_use]
    pub const fn is_final(self) -> bool {
        match self {
            Self::Saved | Self::Partial | Self::Unavailable => true,
            Self::Pending | Self::Saving => false,
        }
    }
}

words! {
    /// `status.history[].type`.
    HistoryType {
        /// The pod was made.
        Created,
        /// The pod was bound to a node.
        Scheduled,
        /// The command's container started.
        Started,
        /// A stop was asked.
        StopRequested,
        /// The kernel killed a process of the box for want of memory.
        OOMKilled,
        /// The box ended; also for a Stopped one.
        Exited,
        /// The output is durable, as far as it could be read.
        OutputSaved,
        /// No pod of the box is left.
        CleanedUp,
    }
}
