//! Appends to one run's output. It holds nothing that the archive does not: after a crash, another
//! writer goes on from the last segment.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::entry::Gap;
use super::error::Result;
use super::key::RunKey;
use super::layout::SegmentName;
use super::manifest::{self, Manifest, Saved};
use super::merge::Parts;
use super::names::Names;
use super::position::{LineHead, Position};
use super::segment::{Builder, Sealed};
use super::store::{Archive, Put};
use super::tally::Tally;

/// After so long without a put, it is looked whether another writer was here meanwhile: in a shorter
/// time the segments that it stored are not yet merged, and their names are taken.
const SURE: Duration = Duration::from_secs(5);

/// Appends to one run's output.
#[derive(Debug)]
pub struct Writer {
    archive: Archive,
    run: RunKey,
    tally: Tally,
    position: Option<Position>,
    builder: Builder,
    gap: Option<Gap>,
    /// Closed, and not known to be stored.
    sealed: Option<Sealed>,
    /// Since when it is known that the run's output ends where this writer is; `None` after a put
    /// whose outcome is not known.
    sure: Option<Instant>,
    parts: Parts,
}

/// What a run's output is at.
#[derive(Debug)]
pub enum Resumed {
    /// It is complete.
    Done(Box<Manifest>),
    /// It goes on here.
    At(Box<Writer>),
}

/// What became of a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushed {
    /// All entries so far are stored.
    Stored,
    /// Another writer was here: this one knows nothing more. Resume.
    Overtaken,
}

impl Writer {
    /// Goes on where the archive says that the run's output is.
    ///
    /// # Errors
    /// The archive is another cluster's or does not answer, or a segment is corrupt.
    pub async fn resume(archive: &Archive, run: &RunKey) -> Result<Resumed> {
        archive.claimed().await?;
        if let Some(manifest) = archive.read_manifest(run).await? {
            return Ok(Resumed::Done(Box::new(manifest)));
        }
        let names = archive.names(run).await?;
        let order = names.in_order();
        remove_merged(archive, run, &names, &order).await?;
        let (tally, position) = match order.last() {
            Some(last) => {
                let head = archive.head(run, *last).await?;
                (head.tally, head.position)
            }
            None => (Tally::default(), None),
        };
        Ok(Resumed::At(Box::new(Self {
            parts: Parts::default(),
            sure: Some(Instant::now()),
            builder: Builder::new(run.clone(), tally.entries),
            archive: archive.clone(),
            run: run.clone(),
            tally,
            position,
            gap: None,
            sealed: None,
        })))
    }

    /// How far the log had been read when the run was taken up.
    #[must_use]
    pub const fn position(&self) -> Option<&Position> {
        self.position.as_ref()
    }

    /// The number of the next entry.
    #[must_use]
    pub const fn entries(&self) -> u64 {
        self.tally.entries
    }

    /// How many bytes of entries wait for [`Writer::close`].
    #[must_use]
    pub const fn waiting(&self) -> usize {
        self.builder.size()
    }

    /// Whether anything waits for [`Writer::flush`].
    #[must_use]
    pub const fn has_waiting(&self) -> bool {
        self.sealed.is_some() || self.gap.is_some() || !self.builder.is_empty()
    }

    /// Whether a segment is closed and not stored.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.sealed.is_some()
    }

    /// The time of the oldest record that is not stored.
    #[must_use]
    pub fn oldest(&self) -> Option<Timestamp> {
        let sealed = self.sealed.as_ref().map(|sealed| sealed.head.summary.from);
        sealed.or_else(|| self.builder.oldest())
    }

    /// Appends a record.
    pub fn record(&mut self, head: LineHead, bytes: &[u8]) {
        if let Some(gap) = self.gap.take() {
            self.put_gap(Gap {
                to: Some(head.time),
                ..gap
            });
        }
        let at = (head.time, head.stream);
        self.tally.add_record(at, bytes, head.ends_line);
        self.builder.push(at, bytes, head.ends_line);
    }

    /// Says that something is missing here. Gaps in a row, of one reason, become one.
    pub fn gap(&mut self, gap: Gap) {
        match &mut self.gap {
            Some(last) if last.reason == gap.reason => {
                last.bytes = last.bytes.zip(gap.bytes).map(|(a, b)| a.saturating_add(b));
            }
            Some(_) | None => {
                if let Some(before) = self.gap.take() {
                    self.put_gap(before);
                }
                self.gap = Some(Gap {
                    from: gap.from.or(self.tally.last_time),
                    ..gap
                });
            }
        }
    }

    fn put_gap(&mut self, gap: Gap) {
        self.tally.add_gap(&gap);
        self.builder.push_gap(&gap);
    }

    /// Says how far the log was read for what was appended so far.
    pub fn reached(&mut self, position: Option<Position>) {
        self.position = position;
    }

    /// Stores what was appended. After an error everything is as before: try again.
    ///
    /// # Errors
    /// The archive does not take it.
    pub async fn flush(&mut self) -> Result<Flushed> {
        // What an earlier try closed goes first, as it was: the answer to it may have been lost.
        while self.has_waiting() {
            self.close()?;
            if self.store().await? == Flushed::Overtaken {
                return Ok(Flushed::Overtaken);
            }
        }
        // Housekeeping: what fails is tried again after the next segment.
        if let Err(error) = self.parts.merge(&self.archive, &self.run).await {
            tracing::debug!(error = %error, "small segments were not merged");
        }
        Ok(Flushed::Stored)
    }

    /// Closes the segment: compresses what was appended. [`Writer::flush`] does so too; this is for
    /// a thread that may take its time. Nothing is done while a closed segment is not stored.
    ///
    /// # Errors
    /// None that another try could help.
    pub fn close(&mut self) -> Result<()> {
        if self.sealed.is_some() {
            return Ok(());
        }
        if let Some(gap) = self.gap.take() {
            self.put_gap(gap);
        }
        if self.builder.is_empty() {
            return Ok(());
        }
        let next = Builder::new(self.run.clone(), self.tally.entries);
        let full = std::mem::replace(&mut self.builder, next);
        self.sealed = Some(full.seal(&self.tally, self.position.as_ref())?);
        Ok(())
    }

    async fn store(&mut self) -> Result<Flushed> {
        let sure = self.sure.take().is_some_and(|since| since.elapsed() < SURE);
        let Some(sealed) = &self.sealed else {
            return Ok(Flushed::Stored);
        };
        if !sure && self.is_overtaken(sealed.head.summary.first).await? {
            return Ok(Flushed::Overtaken);
        }
        if self.archive.put_segment(sealed).await? == Put::Taken {
            return Ok(Flushed::Overtaken);
        }
        self.sure = Some(Instant::now());
        self.parts.stored(&sealed.head);
        self.sealed = None;
        Ok(Flushed::Stored)
    }

    /// Whether the run's output ends elsewhere than before this entry, or than with a segment of the
    /// name that is to be stored, which may be our own.
    async fn is_overtaken(&self, first: u64) -> Result<bool> {
        let names = self.archive.names(&self.run).await?;
        let end = match names.in_order().last() {
            None => 0,
            Some(last) if *last == SegmentName::plain(first) => first,
            Some(last) => self.archive.end_of(&self.run, *last).await?,
        };
        Ok(end != first)
    }

    /// Stores what is left, and then the manifest. After an error: try again.
    ///
    /// # Errors
    /// The archive does not take it.
    pub async fn finish(&mut self) -> Result<Option<Manifest>> {
        if self.flush().await? == Flushed::Overtaken {
            return Ok(None);
        }
        let manifest = self.manifest();
        match self.archive.put_manifest(&manifest).await? {
            Put::Done => Ok(Some(manifest)),
            Put::Taken => Ok(None),
        }
    }

    fn manifest(&self) -> Manifest {
        let tally = &self.tally;
        Manifest {
            version: manifest::VERSION,
            run: self.run.clone(),
            state: if tally.gap_count == 0 {
                Saved::Saved
            } else {
                Saved::Partial
            },
            entries: tally.entries,
            bytes: tally.bytes(),
            sha256: tally.whole.hex(),
            stdout: tally.stdout.totals(),
            stderr: tally.stderr.totals(),
            gaps: tally.gaps.clone(),
            gap_count: tally.gap_count,
        }
    }
}

/// Removes segments that a merged one holds and that a crash left.
async fn remove_merged(
    archive: &Archive,
    run: &RunKey,
    names: &Names,
    order: &[SegmentName],
) -> Result<()> {
    let mut left = Vec::new();
    for name in names.all().filter(|name| !order.contains(name)) {
        let end = archive.end_of(run, name).await?;
        let holds = |kept: &&SegmentName| kept.next.is_some_and(|next| end <= next);
        if order
            .iter()
            .any(|kept| kept.first <= name.first && holds(&kept))
        {
            left.push(name);
        }
    }
    archive.remove_segments(run, &left).await
}
