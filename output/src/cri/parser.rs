//! From bytes of a log to what they say, in bounded memory however long a line is.

use super::head::head;
use crate::archive::LineHead;

/// Takes what a log says.
pub trait Sink {
    /// Bytes that the command wrote.
    fn record(&mut self, head: LineHead, bytes: &[u8]);
    /// So many bytes of the log say nothing.
    fn malformed(&mut self, bytes: u64);
}

/// Reads a log from its beginning, or from a place inside a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parser {
    inside: Option<Inside>,
}

/// The line that is too long for the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inside {
    Line(LineHead),
    Junk,
}

impl Parser {
    /// A parser that begins inside this line, or else at the beginning of one.
    #[must_use]
    pub fn at(inside: Option<LineHead>) -> Self {
        Self {
            inside: inside.map(Inside::Line),
        }
    }

    /// The line that it is inside of.
    #[must_use]
    pub const fn inside(&self) -> Option<LineHead> {
        match self.inside {
            Some(Inside::Line(head)) => Some(head),
            Some(Inside::Junk) | None => None,
        }
    }

    /// Takes the whole lines at the beginning of `bytes` and gives how many bytes they are. If there
    /// is none and the buffer is `full`, takes all of it as a part of a line.
    pub fn take(&mut self, bytes: &[u8], full: bool, sink: &mut impl Sink) -> usize {
        let mut taken = 0;
        while let Some(length) = memchr::memchr(b'\n', &bytes[taken..]) {
            self.line(&bytes[taken..taken + length], sink);
            taken += length + 1;
        }
        if taken == 0 && full {
            self.part(bytes, sink);
            taken = bytes.len();
        }
        taken
    }

    fn line(&mut self, line: &[u8], sink: &mut impl Sink) {
        let whole = line.len() as u64 + 1;
        match self.inside.take() {
            Some(Inside::Line(head)) => sink.record(head, line),
            Some(Inside::Junk) => sink.malformed(whole),
            None => match head(line) {
                Some((head, length)) => sink.record(head, &line[length..]),
                None => sink.malformed(whole),
            },
        }
    }

    fn part(&mut self, part: &[u8], sink: &mut impl Sink) {
        let (inside, content) = match self.inside {
            Some(inside) => (inside, part),
            None => match head(part) {
                Some((head, length)) => (Inside::Line(head), &part[length..]),
                None => (Inside::Junk, part),
            },
        };
        self.inside = Some(inside);
        match inside {
            Inside::Line(head) => sink.record(open(head), content),
            Inside::Junk => sink.malformed(part.len() as u64),
        }
    }

    /// Takes what is left at the end of a file: a line without its end, cut off by a fault. Gives
    /// whether there was one; what it still says is a record.
    pub fn tear(&mut self, rest: &[u8], sink: &mut impl Sink) -> bool {
        let torn = !rest.is_empty() || self.inside.is_some();
        match (self.inside.take(), head(rest)) {
            (Some(Inside::Line(head)), _) if !rest.is_empty() => sink.record(open(head), rest),
            (None, Some((head, length))) if length < rest.len() => {
                sink.record(open(head), &rest[length..]);
            }
            (Some(_) | None, _) => {}
        }
        torn
    }
}

const fn open(head: LineHead) -> LineHead {
    LineHead {
        ends_line: false,
        ..head
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::archive::Stream;

    #[derive(Default)]
    struct Seen {
        streams: [Vec<u8>; 2],
        malformed: u64,
    }

    impl Sink for Seen {
        fn record(&mut self, head: LineHead, bytes: &[u8]) {
            let out = &mut self.streams[usize::from(head.stream == Stream::Stderr)];
            out.extend_from_slice(bytes);
            if head.ends_line {
                out.push(b'\n');
            }
        }

        fn malformed(&mut self, bytes: u64) {
            self.malformed += bytes;
        }
    }

    /// As a tailer does it: a buffer that is filled from where the last take ended.
    fn read(log: &[u8], buffer: usize) -> (Seen, bool) {
        let (mut parser, mut seen, mut at) = (Parser::default(), Seen::default(), 0);
        loop {
            let chunk = &log[at..log.len().min(at + buffer)];
            let taken = parser.take(chunk, chunk.len() == buffer, &mut seen);
            // A place between two takes is enough to go on from.
            if parser.inside != Some(Inside::Junk) {
                parser = Parser::at(parser.inside());
            }
            if taken == 0 {
                let torn = parser.tear(chunk, &mut seen);
                return (seen, torn);
            }
            at += taken;
        }
    }

    /// What containerd does with the bytes that a command writes in these pieces.
    fn log(pieces: &[(bool, Vec<u8>)], longest: usize) -> (Vec<u8>, [Vec<u8>; 2]) {
        let (mut log, mut written) = (Vec::new(), [Vec::new(), Vec::new()]);
        for (stderr, piece) in pieces {
            written[usize::from(*stderr)].extend_from_slice(piece);
        }
        for (stream, bytes) in ["stdout", "stderr"].iter().zip(&written) {
            for line in bytes.split_inclusive(|byte| *byte == b'\n') {
                let content = line.strip_suffix(b"\n");
                let mut rest = content.unwrap_or(line);
                while rest.len() > longest {
                    put(&mut log, stream, "P", &rest[..longest]);
                    rest = &rest[longest..];
                }
                put(
                    &mut log,
                    stream,
                    if content.is_some() { "F" } else { "P" },
                    rest,
                );
            }
        }
        (log, written)
    }

    fn put(log: &mut Vec<u8>, stream: &str, tag: &str, content: &[u8]) {
        log.extend_from_slice(format!("2026-11-30T19:00:00.1Z {stream} {tag} ").as_bytes());
        log.extend_from_slice(content);
        log.push(b'\n');
    }

    proptest! {
        #[test]
        fn what_was_written_comes_back(
            pieces in prop::collection::vec((any::<bool>(), prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..200)), 0..12),
            longest in 1..100_usize,
            buffer in 40..300_usize,
        ) {
            let (log, written) = log(&pieces, longest);
            let (seen, torn) = read(&log, buffer);
            prop_assert_eq!(seen.streams, written);
            prop_assert_eq!((seen.malformed, torn), (0, false));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic_and_counted(log: Vec<u8>, buffer in 1..300_usize) {
            let (seen, torn) = read(&log, buffer);
            let said = seen.malformed + seen.streams.concat().len() as u64;
            prop_assert!(torn || said == log.len() as u64);
        }

        #[test]
        fn a_log_cut_anywhere_loses_its_last_line_alone(
            lines in prop::collection::vec("[a-c]{0,40}", 1..10),
            cut in any::<prop::sample::Index>(),
        ) {
            let pieces: Vec<_> = lines.iter().map(|line| (false, format!("{line}\n").into_bytes())).collect();
            let (log, written) = log(&pieces, 1000);
            let cut = cut.index(log.len());
            let (seen, torn) = read(&log[..cut], 4096);
            prop_assert!(written[0].starts_with(&seen.streams[0]));
            let count = |bytes: &[u8]| memchr::memchr_iter(b'\n', bytes).count();
            prop_assert_eq!(count(&seen.streams[0]), count(&log[..cut]));
            prop_assert_eq!(torn, cut > 0 && log[cut - 1] != b'\n');
        }
    }
}
