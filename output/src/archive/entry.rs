//! What output is made of.

use std::fmt;

use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Where the command wrote to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// Standard output; of a box with a terminal, everything.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    /// Its name in log files and in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

impl fmt::Display for Stream {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// One step of the output, in the order in which the runtime logged it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Counts from 0 in each run, without holes.
    pub number: u64,
    /// What it is.
    pub content: Content,
}

/// Bytes, or the news that some are missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Bytes that the command wrote.
    Record(Record),
    /// Something is missing here.
    Gap(Gap),
}

/// Bytes of one stream: a line, or a part of a long one.
///
/// What the command wrote to a stream is the concatenation of [`Record::bytes`] and, where
/// [`Record::ends_line`] is set, a newline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// When the runtime logged it. Not always in order: clocks step, and the streams race.
    pub time: Timestamp,
    /// Where it was written to.
    pub stream: Stream,
    /// The bytes, without the newline. Any bytes at all.
    pub bytes: Bytes,
    /// Whether a newline follows. Where not, the line goes on in this stream's next record or, at
    /// the end, has no newline.
    pub ends_line: bool,
}

/// Output that was not read, with what is known about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The time of the last record before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    /// The time of the first record after it; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Timestamp>,
    /// How many bytes of log are missing, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Why.
    pub reason: GapReason,
}

/// Why output is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum GapReason {
    /// The kubelet removed a rotated file before it was read.
    RotatedAway,
    /// The log was removed, with its pod, before it was read.
    Removed,
    /// A log file became shorter than what was read of it.
    Truncated,
    /// A line of the log is not in the runtime's format.
    Malformed,
    /// The last line of a file was cut off: the node stopped, or its disk was full.
    Torn,
    /// The node could not read a file.
    Unreadable,
    /// The archive did not take output for so long that unread files were let go.
    Overrun,
    /// The log may have gone on after what was read of it: nobody saw the command end, or its log was
    /// left open for writing.
    EndUnseen,
    /// A reason that a newer build wrote.
    #[serde(other)]
    Other,
}

impl GapReason {
    /// Its name in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RotatedAway => "RotatedAway",
            Self::Removed => "Removed",
            Self::Truncated => "Truncated",
            Self::Malformed => "Malformed",
            Self::Torn => "Torn",
            Self::Unreadable => "Unreadable",
            Self::Overrun => "Overrun",
            Self::EndUnseen => "EndUnseen",
            Self::Other => "Other",
        }
    }
}

impl fmt::Display for GapReason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::RotatedAway => "a log file was rotated away before it was read",
            Self::Removed => "the log was removed before it was read",
            Self::Truncated => "a log file was truncated",
            Self::Malformed => "a line of the log is malformed",
            Self::Torn => "a line of the log was cut off",
            Self::Unreadable => "a log file could not be read",
            Self::Overrun => "the archive did not take the output in time",
            Self::EndUnseen => "the end of the log was not seen",
            Self::Other => "a reason that this build does not know",
        })
    }
}
