//! What was written so far: totals and digests, in a form that a segment can carry on.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::digest::common::hazmat::{SerializableState, SerializedState};
use sha2::{Digest, Sha256};

use super::entry::{Gap, Stream};
use super::manifest::StreamTotals;

/// How many gaps a manifest tells one by one.
const GAPS_TOLD: usize = 64;

/// Totals of a run up to some entry.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Tally {
    pub(crate) entries: u64,
    pub(crate) whole: Running,
    pub(crate) stdout: Counts,
    pub(crate) stderr: Counts,
    pub(crate) gaps: Vec<Gap>,
    pub(crate) gap_count: u64,
    /// Whether the last record of either stream left a line unfinished.
    open: bool,
    /// The time of the last record.
    pub(crate) last_time: Option<Timestamp>,
}

/// Totals of one stream.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Counts {
    pub(crate) bytes: u64,
    pub(crate) lines: u64,
    /// Whether its last record left a line unfinished.
    open: bool,
    digest: Running,
}

/// A digest under way.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Running(Sha256);

impl Tally {
    pub(crate) fn add_record(
        &mut self,
        (time, stream): (Timestamp, Stream),
        bytes: &[u8],
        ends_line: bool,
    ) {
        self.entries += 1;
        self.last_time = Some(time);
        self.open = leaves_open(self.open, bytes, ends_line);
        self.whole.update(bytes, ends_line);
        self.of_mut(stream).add(bytes, ends_line);
    }

    pub(crate) fn add_gap(&mut self, gap: &Gap) {
        self.entries += 1;
        self.gap_count += 1;
        if self.gaps.len() < GAPS_TOLD {
            self.gaps.push(*gap);
        }
    }

    pub(crate) const fn of(&self, stream: Stream) -> &Counts {
        match stream {
            Stream::Stdout => &self.stdout,
            Stream::Stderr => &self.stderr,
        }
    }

    const fn of_mut(&mut self, stream: Stream) -> &mut Counts {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.stdout.bytes + self.stderr.bytes
    }

    /// Unfinished lines at the end of one stream or, where a line of the one may go on with one of the
    /// other, at the end of both as they were written among each other.
    pub(crate) fn open_lines(&self, stream: Option<Stream>) -> u64 {
        u64::from(stream.map_or(self.open, |stream| self.of(stream).open))
    }
}

/// A record that carries nothing begins no line.
const fn leaves_open(open: bool, bytes: &[u8], ends_line: bool) -> bool {
    !ends_line && (open || !bytes.is_empty())
}

impl Counts {
    fn add(&mut self, bytes: &[u8], ends_line: bool) {
        self.bytes += bytes.len() as u64 + u64::from(ends_line);
        self.lines += u64::from(ends_line);
        self.open = leaves_open(self.open, bytes, ends_line);
        self.digest.update(bytes, ends_line);
    }

    pub(crate) fn totals(&self) -> StreamTotals {
        StreamTotals {
            bytes: self.bytes,
            lines: self.lines,
            sha256: self.digest.hex(),
        }
    }
}

impl Running {
    fn update(&mut self, bytes: &[u8], ends_line: bool) {
        self.0.update(bytes);
        if ends_line {
            self.0.update(b"\n");
        }
    }

    pub(crate) fn hex(&self) -> String {
        hex(&self.0.clone().finalize())
    }
}

impl From<Running> for String {
    fn from(running: Running) -> Self {
        hex(&running.0.serialize())
    }
}

impl TryFrom<String> for Running {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        const BAD: &str = "not the state of a digest";
        let bytes = unhex(&text).ok_or(BAD)?;
        let state = SerializedState::<Sha256>::try_from(bytes.as_slice()).map_err(|_| BAD)?;
        Sha256::deserialize(&state).map(Self).map_err(|_| BAD)
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |half: u8| char::from(DIGITS[usize::from(half)]);
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let pairs = digits?;
    let pairs = pairs.as_chunks::<2>().0.iter();
    pairs
        .map(|[high, low]| u8::try_from(high * 16 + low).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_goes_on_where_it_was_written_down() {
        let mut whole = Tally::default();
        let mut parts = Tally::default();
        for (bytes, ends_line) in [(&b"a\xff"[..], true), (&[0; 100][..], false), (b"", true)] {
            whole.add_record((Timestamp::UNIX_EPOCH, Stream::Stderr), bytes, ends_line);
            parts.add_record((Timestamp::UNIX_EPOCH, Stream::Stderr), bytes, ends_line);
            let text = serde_json::to_string(&parts).unwrap();
            parts = serde_json::from_str(&text).unwrap();
        }
        assert_eq!(parts.stderr.totals(), whole.stderr.totals());
        let expected = hex(&Sha256::digest(
            [&b"a\xff\n"[..], &[0; 100], b"\n"].concat(),
        ));
        assert_eq!(parts.whole.hex(), expected);
        assert_eq!((parts.bytes(), parts.stderr.lines), (104, 2));
    }

    #[test]
    fn a_state_that_is_none_is_refused() {
        for text in ["", "zz", "00", &"f".repeat(400)] {
            let text = serde_json::to_string(text).unwrap();
            assert!(serde_json::from_str::<Running>(&text).is_err());
        }
    }
}
