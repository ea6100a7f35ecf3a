//! From entries to the bytes of an answer.

use std::fmt::Write as _;

use bytes::BytesMut;
use jiff::Timestamp;
use serde::Serialize;

use super::options::{Gaps, Options};
use crate::archive::{Content, Entry, Gap, Record, Stream};

/// Writes entries as they were asked for. Pure: the same entries give the same bytes, which is what
/// makes `skipBytes` a way to go on after an answer that was cut off.
#[derive(Clone, Debug)]
pub(crate) struct Renderer {
    stream: Option<Stream>,
    timestamps: bool,
    gaps: Gaps,
    /// Still waiting for the first record of this time.
    since: Option<Timestamp>,
    /// Bytes still to be left out.
    skip: u64,
    /// Bytes that may still be written.
    left: Option<u64>,
    at_line_start: bool,
    /// Whether the limit has cut an entry.
    cut: bool,
    gap_count: u64,
}

/// A gap as `gaps=only` shows it.
#[derive(Serialize)]
struct Shown<'a> {
    entry: u64,
    #[serde(flatten)]
    gap: &'a Gap,
}

impl Renderer {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            stream: options.stream,
            timestamps: options.timestamps,
            gaps: options.gaps,
            since: options.since,
            skip: options.skip_bytes,
            left: options.limit_bytes,
            at_line_start: true,
            cut: false,
            gap_count: 0,
        }
    }

    /// Appends what this entry gives.
    pub(crate) fn write(&mut self, entry: &Entry, out: &mut BytesMut) {
        match &entry.content {
            Content::Record(record) => self.record(record, out),
            Content::Gap(gap) => self.gap(entry.number, gap, out),
        }
    }

    /// Whether the limit is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.left == Some(0)
    }

    /// Whether an answer that begins with the next entry goes on where this one ends. It begins a line:
    /// with timestamps it must not be in the middle of one.
    pub(crate) const fn ends_well(&self) -> bool {
        !self.cut && (self.at_line_start || !self.timestamps)
    }

    /// How many gaps there were.
    pub(crate) const fn gap_count(&self) -> u64 {
        self.gap_count
    }

    fn record(&mut self, record: &Record, out: &mut BytesMut) {
        if self.since.is_some_and(|since| record.time < since) {
            return;
        }
        self.since = None;
        let wanted = self.stream.is_none_or(|stream| stream == record.stream);
        if !wanted || self.gaps == Gaps::Only || is_empty(record) {
            return;
        }
        if self.timestamps && self.at_line_start {
            self.emit(format!("{:.9} ", record.time).as_bytes(), out);
        }
        self.emit(&record.bytes, out);
        if record.ends_line {
            self.emit(b"\n", out);
        }
        self.at_line_start = record.ends_line;
    }

    fn gap(&mut self, entry: u64, gap: &Gap, out: &mut BytesMut) {
        if self.since.is_some() {
            return;
        }
        self.gap_count += 1;
        match self.gaps {
            Gaps::Aside => {}
            Gaps::Inline => self.mark(gap, out),
            Gaps::Only => {
                let shown = serde_json::to_string(&Shown { entry, gap }).unwrap_or_default();
                self.emit(shown.as_bytes(), out);
                self.emit(b"\n", out);
            }
        }
    }

    /// Writes a gap as a line of its own.
    fn mark(&mut self, gap: &Gap, out: &mut BytesMut) {
        if !self.at_line_start {
            self.emit(b"\n", out);
        }
        self.emit(sentence(gap).as_bytes(), out);
        self.at_line_start = true;
    }

    fn emit(&mut self, bytes: &[u8], out: &mut BytesMut) {
        let skipped = bytes.len().min(saturate(self.skip));
        self.skip -= skipped as u64;
        let bytes = &bytes[skipped..];
        let taken = self
            .left
            .map_or(bytes.len(), |left| bytes.len().min(saturate(left)));
        self.left = self.left.map(|left| left - taken as u64);
        self.cut |= taken < bytes.len();
        out.extend_from_slice(&bytes[..taken]);
    }
}

/// A record of an unfinished line may carry nothing at all.
fn is_empty(record: &Record) -> bool {
    record.bytes.is_empty() && !record.ends_line
}

fn saturate(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn sentence(gap: &Gap) -> String {
    let mut text = format!("[boxes: output is missing here: {}", gap.reason);
    // Writing to a string cannot fail.
    let _ = match (gap.from, gap.to) {
        (Some(from), Some(to)) => write!(text, "; between {from} and {to}"),
        (Some(from), None) => write!(text, "; after {from}"),
        (None, Some(to)) => write!(text, "; before {to}"),
        (None, None) => Ok(()),
    };
    let _ = match gap.bytes {
        Some(bytes) => writeln!(text, "; {bytes} bytes of log]"),
        None => writeln!(text, "]"),
    };
    text
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::archive::GapReason;

    fn record(second: i64, stream: Stream, bytes: &[u8], ends_line: bool) -> Content {
        Content::Record(Record {
            time: Timestamp::from_second(second).unwrap(),
            stream,
            bytes: Bytes::copy_from_slice(bytes),
            ends_line,
        })
    }

    fn gap() -> Content {
        Content::Gap(Gap {
            from: Some(Timestamp::from_second(1).unwrap()),
            to: Some(Timestamp::from_second(2).unwrap()),
            bytes: Some(9),
            reason: GapReason::RotatedAway,
        })
    }

    /// Both streams, a line in two parts, every byte value, a gap in a line, no newline at the end.
    fn sample() -> Vec<Content> {
        let every: Vec<u8> = (0..=u8::MAX).filter(|byte| *byte != b'\n').collect();
        vec![
            record(1, Stream::Stdout, b"one ", false),
            record(2, Stream::Stdout, b"line", true),
            record(3, Stream::Stderr, &every, true),
            record(4, Stream::Stdout, b"", true),
            record(5, Stream::Stdout, b"cut", false),
            gap(),
            record(6, Stream::Stdout, b"", false),
            record(7, Stream::Stdout, b"end", false),
        ]
    }

    fn render(query: &str) -> Vec<u8> {
        let options = Options::parse(query, Timestamp::UNIX_EPOCH).unwrap();
        let mut renderer = Renderer::new(&options);
        let mut out = BytesMut::new();
        for (number, content) in (0..).zip(sample()) {
            renderer.write(&Entry { number, content }, &mut out);
        }
        out.to_vec()
    }

    #[test]
    fn bytes_are_those_that_were_written() {
        let mut whole = b"one line\n".to_vec();
        whole.extend((0..=u8::MAX).filter(|byte| *byte != b'\n'));
        whole.extend(b"\n\ncutend");
        assert_eq!(render(""), whole);
        assert_eq!(render("stream=stdout"), b"one line\n\ncutend");
        assert_eq!(render("stream=stderr").len(), 256);
    }

    #[test]
    fn every_limit_is_exact_and_every_skip_goes_on_there() {
        for view in [
            "",
            "timestamps=true",
            "gaps=inline",
            "stream=stdout&timestamps=true",
        ] {
            let whole = render(view);
            for cut in 1..=whole.len() {
                let head = render(&format!("{view}&limitBytes={cut}"));
                let tail = render(&format!("{view}&skipBytes={cut}"));
                assert_eq!(head, whole[..cut]);
                assert_eq!([head, tail].concat(), whole);
            }
            assert_eq!(render(&format!("{view}&limitBytes=99999")), whole);
        }
    }

    #[test]
    fn each_line_has_the_time_of_its_beginning() {
        let text = String::from_utf8_lossy(&render("stream=stdout&timestamps=true")).into_owned();
        let expected = "1970-01-01T00:00:01.000000000Z one line\n\
                        1970-01-01T00:00:04.000000000Z \n\
                        1970-01-01T00:00:05.000000000Z cutend";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_gap_is_shown_as_asked() {
        let text = String::from_utf8(render("stream=stdout&gaps=inline")).unwrap();
        let mark = "[boxes: output is missing here: a log file was rotated away before it was read; \
                    between 1970-01-01T00:00:01Z and 1970-01-01T00:00:02Z; 9 bytes of log]\n";
        assert_eq!(text, format!("one line\n\ncut\n{mark}end"));
        let shown: serde_json::Value = serde_json::from_slice(&render("gaps=only")).unwrap();
        assert_eq!(shown["entry"], 5);
        assert_eq!(shown["reason"], "RotatedAway");
    }

    #[test]
    fn from_a_time_on_everything_is_given() {
        let from = |time| render(&format!("stream=stdout&sinceTime=1970-01-01T00:00:{time}Z"));
        assert_eq!(from("02"), b"line\n\ncutend");
        assert_eq!(from("06.5"), b"end");
        assert_eq!(from("08"), b"");
    }
}
