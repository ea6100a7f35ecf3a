//! What can go wrong with an archive.

/// An archive's answer.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failed call on the archive.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// Nothing is there under this key. Said only by an archive that answered.
    #[error("{what} is not in the archive")]
    NotFound {
        /// What was asked for.
        what: String,
    },
    /// The archive cannot be reached, is slow, or had a fault of its own. Worth another try.
    #[error("the archive is unavailable: {message}")]
    Unavailable {
        /// What it said.
        message: String,
    },
    /// It has no room.
    #[error("the archive is full: {message}")]
    Full {
        /// What it said.
        message: String,
    },
    /// It does not let us: read-only, credentials, or permissions.
    #[error("the archive refuses: {message}")]
    Refused {
        /// What it said.
        message: String,
    },
    /// What is there is not what was written.
    #[error("{what} is corrupt: {message}")]
    Corrupt {
        /// The object.
        what: String,
        /// How.
        message: String,
    },
}

impl Error {
    /// A static word for metrics.
    #[must_use]
    pub const fn class(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "not_found",
            Self::Unavailable { .. } => "unavailable",
            Self::Full { .. } => "full",
            Self::Refused { .. } => "refused",
            Self::Corrupt { .. } => "corrupt",
        }
    }
}
