//! One object of entries: a short readable head, then the entries as one zstd frame.
//!
//! ```text
//! "boxseg1\n"  length of the head (u32)  CRC-32 of the head (u32)  head (JSON)  entries (zstd)
//! ```
//! The head has all that a restarted collector needs to go on, so that it needs no other state.

use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::codec;
use super::entry::{Entry, Gap, Stream};
use super::error::{Error, Result};
use super::key::RunKey;
use super::position::Position;
use super::tally::Tally;

const MAGIC: &[u8; 8] = b"boxseg1\n";
/// Before the head.
const FIXED: usize = 16;
/// What a reader takes at first to have the whole head.
pub(crate) const HEAD_GUESS: u64 = 4096;
/// More than any segment holds: a guard against a head that lies.
const LARGEST: usize = 64 << 20;
const LEVEL: i32 = 1;

/// What is known about a segment without reading its entries.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) run: RunKey,
    #[serde(flatten)]
    pub(crate) summary: Summary,
    /// Length of the entries before compression.
    pub(crate) raw: u64,
    /// The totals after its last entry.
    pub(crate) tally: Tally,
    /// How far the log was read at its last entry; absent before the first file was read.
    pub(crate) position: Option<Position>,
}

/// What is in a segment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Summary {
    /// The number of its first entry.
    pub(crate) first: u64,
    /// The number after its last entry.
    pub(crate) next: u64,
    /// The earliest time in it.
    pub(crate) from: Timestamp,
    /// The latest time in it.
    pub(crate) to: Timestamp,
    /// Newlines in stdout.
    pub(crate) stdout_lines: u64,
    /// Newlines in stderr.
    pub(crate) stderr_lines: u64,
}

impl Summary {
    /// Newlines in one stream, or in both.
    pub(crate) const fn lines(&self, stream: Option<Stream>) -> u64 {
        match stream {
            Some(Stream::Stdout) => self.stdout_lines,
            Some(Stream::Stderr) => self.stderr_lines,
            None => self.stdout_lines + self.stderr_lines,
        }
    }
}

/// A segment as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct Sealed {
    pub(crate) head: Head,
    pub(crate) bytes: Bytes,
}

/// Collects entries for one segment.
#[derive(Debug)]
pub(crate) struct Builder {
    run: RunKey,
    first: u64,
    body: Vec<u8>,
    last: i128,
    times: Option<(Timestamp, Timestamp)>,
    lines: [u64; 2],
}

impl Builder {
    pub(crate) const fn new(run: RunKey, first: u64) -> Self {
        Self {
            run,
            first,
            body: Vec::new(),
            last: 0,
            times: None,
            lines: [0; 2],
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.body.is_empty()
    }

    pub(crate) const fn size(&self) -> usize {
        self.body.len()
    }

    pub(crate) fn oldest(&self) -> Option<Timestamp> {
        self.times.map(|(from, _)| from)
    }

    pub(crate) fn push(&mut self, at: (Timestamp, Stream), bytes: &[u8], ends_line: bool) {
        codec::put_record(&mut self.body, &mut self.last, at, bytes, ends_line);
        let (from, to) = self.times.unwrap_or((at.0, at.0));
        self.times = Some((from.min(at.0), to.max(at.0)));
        self.lines[usize::from(at.1 == Stream::Stderr)] += u64::from(ends_line);
    }

    pub(crate) fn push_gap(&mut self, gap: &Gap) {
        codec::put_gap(&mut self.body, gap);
    }

    /// Closes the segment. `tally` is the run's up to and with the last entry.
    pub(crate) fn seal(self, tally: &Tally, position: Option<&Position>) -> Result<Sealed> {
        // A segment of gaps alone has no time of its own.
        let last = tally.last_time.unwrap_or_default();
        let (from, to) = self.times.unwrap_or((last, last));
        let head = Head {
            run: self.run,
            summary: Summary {
                first: self.first,
                next: tally.entries,
                from,
                to,
                stdout_lines: self.lines[0],
                stderr_lines: self.lines[1],
            },
            raw: self.body.len() as u64,
            tally: tally.clone(),
            position: position.cloned(),
        };
        let bytes = encode(&head, &self.body)?;
        Ok(Sealed { head, bytes })
    }
}

fn encode(head: &Head, body: &[u8]) -> Result<Bytes> {
    let corrupt = |message: String| corrupt("a new segment", message);
    let text = serde_json::to_vec(head).map_err(|error| corrupt(error.to_string()))?;
    let length = u32::try_from(text.len()).map_err(|error| corrupt(error.to_string()))?;
    let mut out = Vec::with_capacity(FIXED + text.len() + body.len() / 4);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&crc32fast::hash(&text).to_le_bytes());
    out.extend_from_slice(&text);
    let frame = compress(body).map_err(|error| corrupt(error.to_string()))?;
    out.extend_from_slice(&frame);
    Ok(out.into())
}

fn compress(body: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut compressor = zstd::bulk::Compressor::new(LEVEL)?;
    compressor.set_parameter(zstd::zstd_safe::CParameter::ChecksumFlag(true))?;
    compressor.compress(body)
}

/// The version, if it is another one.
fn unknown_version(fixed: &[u8; FIXED]) -> Option<u32> {
    let version = char::from(*fixed.strip_prefix(b"boxseg")?.first()?).to_digit(10)?;
    (!fixed.starts_with(MAGIC) && fixed[7] == b'\n').then_some(version)
}

/// Reads a head from the beginning of a segment. `Err(length)` says how much is needed.
pub(crate) fn decode_head(what: &str, bytes: &[u8]) -> Result<Result<Head, u64>> {
    let fixed = bytes.first_chunk::<FIXED>();
    if let Some(version) = fixed.and_then(unknown_version) {
        let what = what.to_owned();
        return Err(Error::UnknownVersion { what, version });
    }
    let Some(fixed) = fixed.filter(|fixed| fixed.starts_with(MAGIC)) else {
        return Err(corrupt(what, "it does not begin like a segment".to_owned()));
    };
    let [.., l0, l1, l2, l3, c0, c1, c2, c3] = *fixed;
    let end = FIXED + u32::from_le_bytes([l0, l1, l2, l3]) as usize;
    let Some(text) = bytes.get(FIXED..end) else {
        return Ok(Err(end as u64));
    };
    if crc32fast::hash(text) != u32::from_le_bytes([c0, c1, c2, c3]) {
        return Err(corrupt(what, "the sum of its head is wrong".to_owned()));
    }
    serde_json::from_slice(text)
        .map(Ok)
        .map_err(|error| corrupt(what, error.to_string()))
}

/// The entries of a segment, as they are taken.
#[derive(Debug)]
pub(crate) struct Entries {
    what: String,
    inner: codec::Entries,
}

impl Iterator for Entries {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Result<Entry>> {
        let entry = self.inner.next()?;
        Some(entry.map_err(|_| corrupt(&self.what, "its entries are malformed".to_owned())))
    }
}

/// Reads a whole segment.
pub(crate) fn decode(what: &str, bytes: &Bytes) -> Result<(Head, Entries)> {
    let short = || corrupt(what, "it is cut off".to_owned());
    let head = decode_head(what, bytes)?.map_err(|_| short())?;
    let [.., l0, l1, l2, l3, _, _, _, _] = *bytes.first_chunk::<FIXED>().ok_or_else(short)?;
    let start = FIXED + u32::from_le_bytes([l0, l1, l2, l3]) as usize;
    let body = decompress(&bytes[start..], head.raw)
        .ok_or_else(|| corrupt(what, "its entries cannot be decompressed".to_owned()))?;
    let entries = Entries {
        what: what.to_owned(),
        inner: codec::Entries::new(body.into(), head.summary.first..head.summary.next),
    };
    Ok((head, entries))
}

fn decompress(frame: &[u8], raw: u64) -> Option<Vec<u8>> {
    let raw = usize::try_from(raw).ok().filter(|raw| *raw <= LARGEST)?;
    let body = zstd::bulk::decompress(frame, raw).ok()?;
    (body.len() == raw).then_some(body)
}

fn corrupt(what: &str, message: String) -> Error {
    Error::Corrupt {
        what: what.to_owned(),
        message,
    }
}
