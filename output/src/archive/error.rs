//! What can go wrong with an archive.

use super::key::RunKey;

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
    /// It belongs to another cluster, and is left alone.
    #[error("the archive belongs to the cluster whose namespace kube-system has the UID {cluster}")]
    Foreign {
        /// The UID of that cluster's namespace `kube-system`.
        cluster: String,
    },
    /// Another build wrote it, in a format that this one does not know. It is left as it is.
    #[error("{what} is of a version that this build does not know: {version}")]
    UnknownVersion {
        /// The object.
        what: String,
        /// Its version.
        version: u32,
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
    /// An entry should be there, and is not.
    pub(crate) fn missing(run: &RunKey, entry: u64) -> Self {
        Self::Corrupt {
            what: run.to_string(),
            message: format!("entry {entry} is missing"),
        }
    }

    /// A static word for metrics.
    #[must_use]
    pub const fn class(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "not_found",
            Self::Unavailable { .. } => "unavailable",
            Self::Full { .. } => "full",
            Self::Refused { .. } => "refused",
            Self::Foreign { .. } => "foreign",
            Self::UnknownVersion { .. } => "unknown_version",
            Self::Corrupt { .. } => "corrupt",
        }
    }
}

impl From<object_store::Error> for Error {
    fn from(error: object_store::Error) -> Self {
        use object_store::Error as Theirs;
        let message = words(&error);
        match error {
            Theirs::NotFound { path, .. } => Self::NotFound { what: path },
            Theirs::PermissionDenied { .. }
            | Theirs::Unauthenticated { .. }
            | Theirs::NotSupported { .. }
            | Theirs::NotImplemented { .. }
            | Theirs::InvalidPath { .. }
            | Theirs::UnknownConfigurationKey { .. } => Self::Refused { message },
            other => of_cause(&other, message),
        }
    }
}

/// What the operating system, or a server in its own words, gives as the cause.
fn of_cause(error: &object_store::Error, message: String) -> Error {
    use std::io::ErrorKind;
    let kind = causes(error).find_map(|cause| cause.downcast_ref::<std::io::Error>());
    match kind.map(std::io::Error::kind) {
        Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge) => {
            Error::Full { message }
        }
        Some(ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied) => {
            Error::Refused { message }
        }
        Some(_) | None if says(&FULL, &message) => Error::Full { message },
        Some(_) | None if says(&REFUSED, &message) => Error::Refused { message },
        Some(_) | None => Error::Unavailable { message },
    }
}

/// Error codes and statuses of S3-compatible servers that have no room.
const FULL: [&str; 4] = [
    "XMinioStorageFull",
    "QuotaExceeded",
    "EntityTooLarge",
    "507 Insufficient Storage",
];

/// Statuses that a list gives only in words.
const REFUSED: [&str; 2] = ["401 Unauthorized", "403 Forbidden"];

fn says(words: &[&str], message: &str) -> bool {
    words.iter().any(|word| message.contains(word))
}

/// The longest message that is worth carrying: servers answer with whole pages.
const LONGEST: usize = 400;

fn words(error: &object_store::Error) -> String {
    error.to_string().chars().take(LONGEST).collect()
}

fn causes<'a>(
    error: &'a object_store::Error,
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    let first: &(dyn std::error::Error + 'static) = error;
    std::iter::successors(Some(first), |cause| cause.source())
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    fn generic(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        let store = "S3";
        let source = source.into();
        object_store::Error::Generic { store, source }.into()
    }

    #[rstest::rstest]
    #[case(ErrorKind::StorageFull, "full")]
    #[case(ErrorKind::QuotaExceeded, "full")]
    #[case(ErrorKind::ReadOnlyFilesystem, "refused")]
    #[case(ErrorKind::PermissionDenied, "refused")]
    #[case(ErrorKind::ConnectionRefused, "unavailable")]
    #[case(ErrorKind::TimedOut, "unavailable")]
    #[case(ErrorKind::Other, "unavailable")]
    fn the_systems_word_counts(#[case] kind: ErrorKind, #[case] class: &str) {
        assert_eq!(generic(std::io::Error::from(kind)).class(), class);
    }

    #[rstest::rstest]
    #[case("status code: 403 Forbidden: <Error/>", "refused")]
    #[case("status code: 507 Insufficient Storage", "full")]
    #[case("<Code>XMinioStorageFull</Code>", "full")]
    #[case("status code: 503 Service Unavailable", "unavailable")]
    fn a_servers_word_counts(#[case] message: &str, #[case] class: &str) {
        assert_eq!(generic(message).class(), class);
    }
}
