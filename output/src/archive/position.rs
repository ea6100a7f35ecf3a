//! How far a log was read: what a restarted collector needs, kept in every segment.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::entry::Stream;

/// A place in a container's log.
///
/// A file is known by its beginning, since its name and its inode change as it is rotated and
/// compressed, and its first line, which has a time in nanoseconds, does not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The mark of the file; empty if none was read.
    pub file: String,
    /// Of which attempt of the container it is.
    #[serde(default)]
    pub attempt: u32,
    /// How many bytes of it, uncompressed, were read.
    pub offset: u64,
    /// The line that the place is inside of, if it is a very long one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<LineHead>,
    /// Whether the gap that follows this file was told already.
    #[serde(default)]
    pub gap_told: bool,
}

/// What a line of the log says before its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineHead {
    /// When it was logged.
    pub time: Timestamp,
    /// Where the command wrote to.
    pub stream: Stream,
    /// Whether the command's line ends with this one.
    pub ends_line: bool,
}
