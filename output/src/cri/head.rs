//! The head of a line of the log.

use jiff::fmt::temporal::DateTimeParser;

use crate::archive::{LineHead, Stream};

static TIMES: DateTimeParser = DateTimeParser::new();

/// The head of a line and its length, of which the rest is content. `None` if it has none.
#[must_use]
pub fn head(line: &[u8]) -> Option<(LineHead, usize)> {
    let time_end = space(line, 0)?;
    let stream_end = space(line, time_end + 1)?;
    // A line without content may lack the last space.
    let tags_end = space(line, stream_end + 1).unwrap_or(line.len());
    let head = LineHead {
        time: TIMES.parse_timestamp(&line[..time_end]).ok()?,
        stream: stream(&line[time_end + 1..stream_end])?,
        ends_line: ends_line(&line[stream_end + 1..tags_end])?,
    };
    Some((head, line.len().min(tags_end + 1)))
}

/// More than a head has before each of its spaces: a line of junk is not searched to its end.
const WITHIN: usize = 64;

fn space(line: &[u8], from: usize) -> Option<usize> {
    let part = &line[from.min(line.len())..line.len().min(from + WITHIN)];
    memchr::memchr(b' ', part).map(|at| from + at)
}

fn stream(word: &[u8]) -> Option<Stream> {
    match word {
        b"stdout" => Some(Stream::Stdout),
        b"stderr" => Some(Stream::Stderr),
        _ => None,
    }
}

/// Tags stand between colons, and the first one tells whether the line is whole.
fn ends_line(tags: &[u8]) -> Option<bool> {
    match tags {
        b"F" | [b'F', b':', ..] => Some(true),
        b"P" | [b'P', b':', ..] => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case(
        b"2026-11-30T19:00:00.123456789Z stdout F text",
        Stream::Stdout,
        true,
        b"text"
    )]
    #[case(
        b"2026-11-30T21:00:00.123456789+02:00 stderr P  a ",
        Stream::Stderr,
        false,
        b" a "
    )]
    #[case(b"2026-11-30T19:00:00.123456789Z stdout F ", Stream::Stdout, true, b"")]
    #[case(b"2026-11-30T19:00:00.123456789Z stdout F", Stream::Stdout, true, b"")]
    #[case(
        b"2026-11-30T19:00:00.123456789Z stdout F:x:y \xff\0",
        Stream::Stdout,
        true,
        b"\xff\0"
    )]
    fn heads_are_read(
        #[case] line: &[u8],
        #[case] stream: Stream,
        #[case] ends_line: bool,
        #[case] content: &[u8],
    ) {
        let (head, length) = head(line).unwrap();
        let time = "2026-11-30T19:00:00.123456789Z".parse().unwrap();
        let expected = LineHead {
            time,
            stream,
            ends_line,
        };
        assert_eq!((head, &line[length..]), (expected, content));
    }

    #[rstest::rstest]
    #[case(b"")]
    #[case(b"text")]
    #[case(b" stdout F text")]
    #[case(b"2026-11-30T19:00:00Z stdin F text")]
    #[case(b"2026-11-30T19:00:00Z stdout X text")]
    #[case(b"2026-11-30T19:00:00Z stdout FP text")]
    #[case(b"2026-11-30T19:00:00Z stdout  text")]
    #[case(b"2026-11-30T19:00:00 stdout F no zone")]
    #[case(b"yesterday stdout F text")]
    #[case(b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0")]
    fn other_lines_have_none(#[case] line: &[u8]) {
        assert_eq!(head(line), None);
    }
}
