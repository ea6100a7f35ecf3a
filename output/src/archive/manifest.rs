//! The end of a run's output: what is there, and what is not.

use serde::{Deserialize, Serialize};

use super::entry::Gap;
use super::key::RunKey;

/// Whether all of it was saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Saved {
    /// Everything that the runtime logged.
    Saved,
    /// There are gaps.
    Partial,
}

impl Saved {
    /// Its name in annotations and files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Saved => "Saved",
            Self::Partial => "Partial",
        }
    }
}

/// What there is of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamTotals {
    /// Bytes, newlines included.
    pub bytes: u64,
    /// Newlines.
    pub lines: u64,
    /// SHA-256 of the bytes, as hexadecimal digits.
    pub sha256: String,
}

/// The version of manifests that this build writes, and the one that it reads.
pub(crate) const VERSION: u32 = 1;

/// What manifests of all versions have.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Versioned {
    pub(crate) version: u32,
}

/// Written once, after the last segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Of this format: 1.
    pub version: u32,
    /// Whose output it is.
    pub run: RunKey,
    /// Whether all of it is there.
    pub state: Saved,
    /// How many entries there are.
    pub entries: u64,
    /// Bytes that the command wrote to both streams.
    pub bytes: u64,
    /// SHA-256 of both streams, in the order of the entries.
    pub sha256: String,
    /// Standard output.
    pub stdout: StreamTotals,
    /// Standard error.
    pub stderr: StreamTotals,
    /// What is missing: the first ones, if there are very many.
    #[serde(default)]
    pub gaps: Vec<Gap>,
    /// How many gaps there are.
    #[serde(default)]
    pub gap_count: u64,
}
