//! A place in a run's output that moves forward, segment by segment.

use super::entry::Entry;
use super::error::{Error, Result};
use super::key::RunKey;
use super::layout::SegmentName;
use super::names::Names;
use super::segment::Entries;
use super::store::Archive;

pub(crate) struct Cursor {
    archive: Archive,
    run: RunKey,
    /// The next entry.
    at: u64,
    /// The rest of a segment that was begun.
    open: Option<Entries>,
    /// Whether a segment ended there: then the next one begins there, or is merged with what was given.
    aligned: bool,
    names: Names,
}

/// How often a list is taken again when a segment is missing from it: while segments are merged,
/// a list may show neither the old ones nor the new one.
const LISTS: u32 = 3;
/// How many entries are given at once. A reader that is slow holds so many, and the bytes of one
/// segment.
const BATCH: usize = 1024;

impl Cursor {
    pub(crate) const fn new(archive: Archive, run: RunKey, names: Names, at: u64) -> Self {
        Self {
            archive,
            run,
            at,
            open: None,
            aligned: false,
            names,
        }
    }

    pub(crate) const fn at(&self) -> u64 {
        self.at
    }

    /// The next entries, or `None` at the end of what is there.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Entry>>> {
        if let Some(entries) = self.batch()? {
            return Ok(Some(entries));
        }
        for _ in 0..LISTS {
            let mut missed = false;
            while let Some(name) = self.names.holding(self.at) {
                if let Some(entries) = self.take(name).await? {
                    return Ok(Some(entries));
                }
                missed |= self.names.remove(name);
            }
            if self.names.is_empty() && !missed {
                return Ok(None);
            }
            self.list().await?;
        }
        Err(Error::missing(&self.run, self.at))
    }

    /// Looks for what came since the last list.
    pub(crate) async fn list(&mut self) -> Result<()> {
        self.names = self.archive.names(&self.run).await?;
        if self.aligned {
            self.names.forget_before(self.at);
        }
        Ok(())
    }

    /// Whether anything came that a list would show: cheaper than the list.
    pub(crate) async fn has_news(&self) -> Result<bool> {
        if self.aligned {
            self.archive.has_segment_from(&self.run, self.at).await
        } else {
            Ok(true)
        }
    }

    /// The next segment, if it has been written as such. Cheaper than a list.
    pub(crate) async fn probe(&mut self) -> Result<Option<Vec<Entry>>> {
        self.take(SegmentName::plain(self.at)).await
    }

    async fn take(&mut self, name: SegmentName) -> Result<Option<Vec<Entry>>> {
        let (head, mut entries) = match self.archive.segment(&self.run, name).await {
            Err(Error::NotFound { .. }) => return Ok(None),
            other => other?,
        };
        self.aligned = head.summary.next >= self.at;
        if head.summary.next <= self.at {
            self.names.forget_before(self.at);
            return Ok(None);
        }
        for known in entries
            .by_ref()
            .take(saturate(self.at - head.summary.first))
        {
            known?;
        }
        self.open = Some(entries);
        self.names.forget_before(head.summary.next);
        self.batch()
    }

    /// Some of what is left of the segment that was begun.
    fn batch(&mut self) -> Result<Option<Vec<Entry>>> {
        let Some(open) = &mut self.open else {
            return Ok(None);
        };
        let batch: Vec<Entry> = open.take(BATCH).collect::<Result<_>>()?;
        match batch.last() {
            Some(last) => self.at = last.number + 1,
            None => self.open = None,
        }
        Ok(Some(batch).filter(|batch| !batch.is_empty()))
    }
}

fn saturate(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
