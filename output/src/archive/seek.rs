//! From a [`Start`] to the number of an entry, without reading everything.

use jiff::Timestamp;

use super::entry::{Content, Entry, Stream};
use super::error::Result;
use super::key::RunKey;
use super::layout::SegmentName;
use super::names::Names;
use super::reader::Start;
use super::segment::Entries;
use super::store::Archive;

/// Finds where to begin among these segments.
pub(crate) async fn seek(
    archive: &Archive,
    run: &RunKey,
    names: &Names,
    start: Start,
) -> Result<u64> {
    match start {
        Start::Beginning => Ok(0),
        Start::Entry(number) => Ok(number),
        Start::Time(time) => since(archive, run, &names.in_order(), time).await,
        Start::TailLines { lines, stream } => {
            tail(archive, run, &names.in_order(), lines, stream).await
        }
    }
}

/// The first record of the time or later, by halving.
async fn since(
    archive: &Archive,
    run: &RunKey,
    names: &[SegmentName],
    time: Timestamp,
) -> Result<u64> {
    let (mut low, mut high) = (0, names.len());
    while low < high {
        let middle = low.midpoint(high);
        if archive.head(run, names[middle]).await?.summary.to < time {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    let Some(name) = names.get(low) else {
        return end(archive, run, names).await;
    };
    let (head, entries) = archive.segment(run, *name).await?;
    for entry in entries {
        let entry = entry?;
        if matches!(&entry.content, Content::Record(record) if record.time >= time) {
            return Ok(entry.number);
        }
    }
    Ok(head.summary.next)
}

async fn end(archive: &Archive, run: &RunKey, names: &[SegmentName]) -> Result<u64> {
    match names.last() {
        Some(last) => Ok(archive.head(run, *last).await?.summary.next),
        None => Ok(0),
    }
}

/// The entry after the last line end that is not wanted, from behind.
async fn tail(
    archive: &Archive,
    run: &RunKey,
    names: &[SegmentName],
    lines: u64,
    stream: Option<Stream>,
) -> Result<u64> {
    let mut seen = match names.last() {
        Some(last) => archive.head(run, *last).await?.tally.open_lines(stream),
        None => return Ok(0),
    };
    if lines == 0 {
        return end(archive, run, names).await;
    }
    for name in names.iter().rev() {
        seen += archive.head(run, *name).await?.summary.lines(stream);
        if seen > lines {
            let (head, entries) = archive.segment(run, *name).await?;
            let after = after_line_end(entries, seen - lines, stream)?;
            return Ok(after.unwrap_or(head.summary.first));
        }
    }
    Ok(0)
}

/// The number after the n-th line end.
fn after_line_end(entries: Entries, n: u64, stream: Option<Stream>) -> Result<Option<u64>> {
    let mut left = n;
    for entry in entries {
        let entry = entry?;
        left -= u64::from(ends_line(&entry, stream));
        if left == 0 {
            return Ok(Some(entry.number + 1));
        }
    }
    Ok(None)
}

fn ends_line(entry: &Entry, stream: Option<Stream>) -> bool {
    match &entry.content {
        Content::Record(record) => {
            record.ends_line && stream.is_none_or(|stream| record.stream == stream)
        }
        Content::Gap(_) => false,
    }
}
