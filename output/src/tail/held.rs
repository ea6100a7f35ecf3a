//! A file that a tailer holds, and what it says to others.

use std::collections::VecDeque;
use std::io;
use std::time::Instant;

use super::folder::Folder;
use super::snapshot::{Found, Opened, find};
use super::source::Source;
use super::writers::Ask;
use crate::archive::{Gap, GapReason, LineHead};
use crate::cri;

/// Takes what a log says.
pub trait Sink {
    /// Bytes that the command wrote.
    fn record(&mut self, head: LineHead, bytes: &[u8]);
    /// Something is missing here.
    fn gap(&mut self, gap: Gap);
}

/// One open file.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) source: Source,
    /// Whether it was opened under the name of a rotated file.
    pub(crate) rotated: bool,
    /// When it was opened.
    pub(crate) seen: Instant,
    /// Since when its end is reached.
    pub(crate) quiet: Option<Instant>,
    /// When it was first found that nobody writes to it any more.
    pub(crate) closed: Option<Instant>,
    /// What is missing between the file before and this one.
    pub(crate) gap_before: Option<Gap>,
    /// How often in a row it could not be read.
    pub(crate) errors: u32,
}

impl Held {
    pub(crate) fn new(opened: Opened, seen: Instant) -> Self {
        let unreadable = missing(GapReason::Unreadable, None);
        Self {
            source: opened.source,
            rotated: opened.rotated,
            seen,
            quiet: None,
            closed: None,
            gap_before: opened.after_bad.then_some(unreadable),
            errors: 0,
        }
    }

    /// Whether there is a later file than this, the newest one. Of another attempt it is looked for once
    /// nobody writes to this one, and nothing is left to be read.
    pub(crate) fn is_followed(&self, folder: &Folder, attempt: u32, ask: Ask) -> io::Result<bool> {
        match folder.current(attempt)? {
            Some(current) if current != self.source.id => Ok(true),
            _ if self.quiet.is_none() || self.source.is_written(ask) == Some(true) => Ok(false),
            _ => Ok(folder
                .newest_attempt()?
                .is_some_and(|newest| newest > attempt)),
        }
    }

    /// Which of the files is this one under its new name, as it is or compressed.
    pub(crate) fn find_renamed(&mut self, files: &mut VecDeque<Self>) -> Option<usize> {
        let same = |file: &Self| !file.source.is_packed() && file.source.id == self.source.id;
        if let Some(at) = files.iter().position(same) {
            return Some(at);
        }
        let mark = self.source.mark().ok().flatten()?.to_owned();
        match find(files.iter_mut(), &mark) {
            Found::At(at) => Some(at),
            Found::Unsure(..) | Found::Nowhere => None,
        }
    }
}

/// What the parser says, as the tailer says it.
pub(crate) struct Lines<'a, S>(pub(crate) &'a mut S);

impl<S: Sink> cri::Sink for Lines<'_, S> {
    fn record(&mut self, head: LineHead, bytes: &[u8]) {
        self.0.record(head, bytes);
    }

    fn malformed(&mut self, bytes: u64) {
        self.0.gap(missing(GapReason::Malformed, Some(bytes)));
    }
}

pub(crate) const fn missing(reason: GapReason, bytes: Option<u64>) -> Gap {
    Gap {
        from: None,
        to: None,
        bytes,
        reason,
    }
}
