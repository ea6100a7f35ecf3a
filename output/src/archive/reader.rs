//! How output is read.

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use jiff::Timestamp;

use super::entry::{Entry, Stream};
use super::error::Result;
use super::key::{RunKey, Uid};
use super::manifest::Manifest;

/// Where to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At the first entry.
    Beginning,
    /// At the entry of this number.
    Entry(u64),
    /// At the first record logged at this time or later. Records after it may be a little older:
    /// times are not always in order.
    Time(Timestamp),
    /// At the last so many lines, counted in one stream or in both. An unfinished line at the end
    /// counts as one. Entries of the other stream that lie between are given too.
    TailLines {
        /// How many.
        lines: u64,
        /// Of which stream.
        stream: Option<Stream>,
    },
}

/// Reads output. Every stream gives the entries in order, each exactly once, in batches that are
/// never empty; after an error it ends, and may be taken up again at the next [`Start::Entry`].
pub trait Reader: Send + Sync {
    /// The runs of a Box, oldest first as far as the archive knows; none if it knows no such Box.
    fn runs<'a>(&'a self, box_uid: &'a Uid) -> BoxFuture<'a, Result<Vec<RunKey>>>;

    /// How a run's output ended; `None` while it is being collected, or if there is none.
    fn manifest<'a>(&'a self, run: &'a RunKey) -> BoxFuture<'a, Result<Option<Manifest>>>;

    /// What is there now.
    fn read(&self, run: &RunKey, start: Start) -> BoxStream<'static, Result<Vec<Entry>>>;

    /// What is there, and then what comes, until the manifest is written and everything before it
    /// was given. It waits for a run that has no output yet. Dropping it ends it.
    fn follow(&self, run: &RunKey, start: Start) -> BoxStream<'static, Result<Vec<Entry>>>;
}
