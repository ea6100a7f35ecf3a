//! Small segments become larger ones: a box that writes on and on leaves few objects.
//!
//! Only segments that were written one after the other, and merged equally often, are merged with each
//! other: each byte is written a few times at most, however long a box writes.

use std::ops::Range;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::entry::Content;
use super::error::{Error, Result};
use super::key::RunKey;
use super::layout::SegmentName;
use super::segment::{Builder, Head, Sealed};
use super::store::Archive;

/// So many segments in a row become one; fewer, if they are [`ENOUGH`] together.
const MOST: usize = 32;
/// A segment with so many bytes of entries is merged no more.
const ENOUGH: u64 = 2 << 20;
/// A segment that has so many when it is first written is not worth being read again.
const SMALL: u64 = 512 << 10;
/// How many objects a writer reads at once.
pub const CALLS: usize = 8;

/// Memory that all merges may take, in KiB.
const MEMORY: usize = 16 << 10;
/// What a merge takes: the entries as they were, as they will be, and both compressed.
const COPIES: u64 = 4;

/// A segment that may be merged.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    name: SegmentName,
    raw: u64,
    /// How often it was merged.
    level: u32,
}

/// The last segments of a run, as far as they may be merged.
#[derive(Debug, Default)]
pub(crate) struct Parts(Vec<Part>);

/// Bounds what merges take at once, over all runs.
#[derive(Clone, Debug)]
pub(crate) struct Room(Arc<Semaphore>);

impl Default for Room {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MEMORY)))
    }
}

impl Room {
    fn take(&self, raw: u64) -> Option<OwnedSemaphorePermit> {
        let needed = u32::try_from((raw * COPIES).div_ceil(1024)).ok()?;
        self.0.clone().try_acquire_many_owned(needed).ok()
    }
}

impl Part {
    const fn is_small(&self) -> bool {
        self.raw < if self.level == 0 { SMALL } else { ENOUGH }
    }
}

impl Parts {
    /// Takes the segment that was just stored.
    pub(crate) fn stored(&mut self, head: &Head) {
        self.push(Part {
            name: SegmentName::plain(head.summary.first),
            raw: head.raw,
            level: 0,
        });
    }

    fn push(&mut self, part: Part) {
        if part.is_small() {
            self.0.push(part);
        } else {
            // What lies before it has nothing to be merged with any more.
            self.0.clear();
        }
    }

    /// Which of them are to become one. Never the newest: as long as it has its name, a follower finds
    /// it without a list of all.
    fn due(&self) -> Option<Range<usize>> {
        let (_, old) = self.0.split_last()?;
        let level = old.last()?.level;
        let before = old.iter().rposition(|part| part.level != level);
        let start = before.map_or(0, |before| before + 1);
        let mut raw = 0;
        for (count, part) in (1..).zip(&old[start..]) {
            raw += part.raw;
            if count == MOST || (raw >= ENOUGH && count > 1) {
                return Some(start..start + count);
            }
        }
        None
    }

    /// Merges what is due, if there is room for it. What cannot be read is left as it is, for good.
    pub(crate) async fn merge(&mut self, archive: &Archive, run: &RunKey) -> Result<()> {
        let merged = self.merge_due(archive, run).await;
        if let Err(Error::Corrupt { .. } | Error::NotFound { .. }) = merged {
            self.0.clear();
        }
        merged
    }

    async fn merge_due(&mut self, archive: &Archive, run: &RunKey) -> Result<()> {
        while let Some(range) = self.due() {
            let old = &self.0[range.clone()];
            let raw = old.iter().map(|part| part.raw).sum();
            let Some(_room) = archive.room.take(raw) else {
                return Ok(());
            };
            let names: Vec<_> = old.iter().map(|part| part.name).collect();
            let level = old[0].level + 1;
            let merged = read_as_one(archive, run, &names).await?;
            archive.put_merged(&merged).await?;
            let summary = &merged.head.summary;
            let part = Part {
                name: SegmentName::merged(summary.first, summary.next),
                raw: merged.head.raw,
                level,
            };
            let after = self.0.split_off(range.end);
            self.0.truncate(range.start);
            for part in std::iter::once(part).chain(after) {
                self.push(part);
            }
            archive.remove_segments(run, &names).await?;
        }
        Ok(())
    }
}

async fn read_as_one(archive: &Archive, run: &RunKey, names: &[SegmentName]) -> Result<Sealed> {
    let mut segments = futures::stream::iter(names.iter().copied())
        .map(|name| archive.segment(run, name))
        .buffered(CALLS);
    let first = names.first().map_or(0, |name| name.first);
    let mut builder = Builder::new(run.clone(), first);
    let mut last: Option<Head> = None;
    while let Some((head, entries)) = segments.try_next().await? {
        let expected = last.as_ref().map_or(first, |last| last.summary.next);
        if head.summary.first != expected {
            return Err(Error::missing(run, expected));
        }
        for entry in entries {
            match entry?.content {
                Content::Record(record) => {
                    let at = (record.time, record.stream);
                    builder.push(at, &record.bytes, record.ends_line);
                }
                Content::Gap(gap) => builder.push_gap(&gap),
            }
        }
        last = Some(head);
    }
    let last = last.ok_or_else(|| Error::missing(run, first))?;
    builder.seal(&last.tally, last.position.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;

    /// What is left of segments of these sizes, when all that is due is merged.
    fn left(sizes: impl IntoIterator<Item = u64>) -> (usize, Vec<(u64, u32)>) {
        let (mut parts, mut large) = (Parts::default(), 0);
        for raw in sizes {
            let (name, level) = (SegmentName::plain(0), 0);
            parts.push(Part { name, raw, level });
            large += usize::from(parts.0.is_empty());
            while let Some(range) = parts.due() {
                let newest = parts.0.split_off(range.end);
                assert_eq!(newest.len(), 1);
                let merged = parts.0.split_off(range.start);
                let raw = merged.iter().map(|part| part.raw).sum();
                assert!(raw < 2 * ENOUGH, "{raw}");
                let (name, level) = (merged[0].name, merged[0].level + 1);
                parts.push(Part { name, raw, level });
                large += usize::from(parts.0.is_empty());
                parts.0.extend(newest);
            }
            assert!(parts.0.len() < 4 * MOST);
        }
        (
            large,
            parts.0.iter().map(|part| (part.raw, part.level)).collect(),
        )
    }

    #[test]
    fn a_day_of_small_segments_becomes_few() {
        let day = 4 * 60 * 60 * 24;
        let (large, rest) = left((0..day).map(|_| 32 * KIB));
        assert!(
            large <= day / 64 && rest.len() < 3 * MOST,
            "{large} {rest:?}"
        );
        let (large, rest) = left((0..day).map(|_| 10));
        assert_eq!(large, 1);
        assert!(rest.len() < 3 * MOST, "{rest:?}");
    }

    #[test]
    fn large_segments_are_left_alone() {
        assert_eq!(left([SMALL; 100]), (100, vec![]));
        assert_eq!(left([KIB, SMALL, KIB]), (1, vec![(KIB, 0)]));
    }

    #[test]
    fn what_could_not_be_merged_is_merged_later_in_parts_of_bounded_size() {
        let part = |raw, level| Part {
            name: SegmentName::plain(0),
            raw,
            level,
        };
        let mut late = Parts(vec![part(KIB, 1)]);
        late.0.extend(vec![part(KIB, 0); 100]);
        assert_eq!(late.due(), Some(1..1 + MOST));
        late.0.truncate(1);
        late.0.extend(vec![part(SMALL - 1, 0); 100]);
        assert_eq!(late.due(), Some(1..1 + 5));
    }

    #[test]
    fn merges_share_their_memory() {
        let room = Room::default();
        let large = room.take(2 * ENOUGH).unwrap();
        assert!(room.take(KIB).is_none());
        drop(large);
        let many: Vec<_> = (0..100).map(|_| room.take(32 * KIB)).collect();
        assert!(many.iter().all(Option::is_some));
    }
}
