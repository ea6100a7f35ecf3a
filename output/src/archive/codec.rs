//! Entries as bytes: a tag, the time since the entry before, a length, the bytes.

use std::ops::Range;

use bytes::Bytes;
use jiff::Timestamp;

use super::entry::{Content, Entry, Gap, Record, Stream};

const STDERR: u8 = 1;
const ENDS_LINE: u8 = 2;
const GAP: u8 = 4;

/// Appends a record. `last` is the time, in nanoseconds, of the record before.
pub(crate) fn put_record(
    out: &mut Vec<u8>,
    last: &mut i128,
    (time, stream): (Timestamp, Stream),
    bytes: &[u8],
    ends_line: bool,
) {
    let stream = if stream == Stream::Stderr { STDERR } else { 0 };
    out.push(stream | if ends_line { ENDS_LINE } else { 0 });
    let time = time.as_nanosecond();
    put_number(out, zigzag(time - *last));
    *last = time;
    put_bytes(out, bytes);
}

/// Appends a gap.
pub(crate) fn put_gap(out: &mut Vec<u8>, gap: &Gap) {
    out.push(GAP);
    // A gap is a plain structure: it can always be written.
    put_bytes(out, &serde_json::to_vec(gap).unwrap_or_default());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u128);
    out.extend_from_slice(bytes);
}

fn put_number(out: &mut Vec<u8>, mut number: u128) {
    while number > 0x7f {
        out.push(low_seven(number) | 0x80);
        number >>= 7;
    }
    out.push(low_seven(number));
}

const fn low_seven(number: u128) -> u8 {
    (number & 0x7f).to_le_bytes()[0]
}

const fn zigzag(number: i128) -> u128 {
    ((number << 1) ^ (number >> 127)).cast_unsigned()
}

const fn unzigzag(number: u128) -> i128 {
    (number >> 1).cast_signed() ^ -((number & 1).cast_signed())
}

/// Entries that are taken from bytes one by one: what shares the memory of the bytes is small there,
/// and large as an [`Entry`].
#[derive(Debug)]
pub(crate) struct Entries {
    rest: Bytes,
    numbers: Range<u64>,
    last: i128,
}

/// Bytes that are not the entries that they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

impl Entries {
    pub(crate) const fn new(bytes: Bytes, numbers: Range<u64>) -> Self {
        Self {
            rest: bytes,
            numbers,
            last: 0,
        }
    }

    fn take(&mut self) -> Result<Entry, Malformed> {
        let number = self.numbers.next().ok_or(Malformed)?;
        let content = take_content(&mut self.rest, &mut self.last).ok_or(Malformed)?;
        Ok(Entry { number, content })
    }
}

impl Iterator for Entries {
    type Item = Result<Entry, Malformed>;

    /// After an error there is nothing more.
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() && self.numbers.is_empty() {
            return None;
        }
        let entry = self.take();
        if entry.is_err() {
            *self = Self::new(Bytes::new(), 0..0);
        }
        Some(entry)
    }
}

fn take_content(rest: &mut Bytes, last: &mut i128) -> Option<Content> {
    let tag = *rest.first()?;
    let _ = rest.split_to(1);
    if tag == GAP {
        let gap = take_bytes(rest)?;
        return serde_json::from_slice(&gap).ok().map(Content::Gap);
    }
    if tag > STDERR | ENDS_LINE {
        return None;
    }
    *last = last.checked_add(unzigzag(take_number(rest)?))?;
    let stream = if tag & STDERR == 0 {
        Stream::Stdout
    } else {
        Stream::Stderr
    };
    Some(Content::Record(Record {
        time: Timestamp::from_nanosecond(*last).ok()?,
        stream,
        bytes: take_bytes(rest)?,
        ends_line: tag & ENDS_LINE != 0,
    }))
}

fn take_bytes(rest: &mut Bytes) -> Option<Bytes> {
    let length = usize::try_from(take_number(rest)?).ok()?;
    (length <= rest.len()).then(|| rest.split_to(length))
}

fn take_number(rest: &mut Bytes) -> Option<u128> {
    let mut number = 0;
    for shift in (0..126).step_by(7) {
        let byte = *rest.first()?;
        let _ = rest.split_to(1);
        number |= u128::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            entries in prop::collection::vec((any::<i64>(), any::<bool>(), any::<bool>(), any::<Vec<u8>>()), 0..20),
        ) {
            let (mut out, mut last) = (Vec::new(), 0);
            let mut expected = Vec::new();
            for (number, (time, stderr, ends_line, bytes)) in entries.into_iter().enumerate() {
                let time = Timestamp::from_nanosecond(time.into()).unwrap();
                let stream = if stderr { Stream::Stderr } else { Stream::Stdout };
                put_record(&mut out, &mut last, (time, stream), &bytes, ends_line);
                let record = Record { time, stream, bytes: bytes.into(), ends_line };
                expected.push(Entry { number: 7 + number as u64, content: Content::Record(record) });
            }
            let end = 7 + expected.len() as u64;
            let read = |numbers| Entries::new(out.clone().into(), numbers).collect::<Result<Vec<_>, _>>();
            prop_assert_eq!(read(7..end), Ok(expected));
            prop_assert_eq!(read(7..end + 1), Err(Malformed));
            prop_assert_eq!(read(8..end), if end == 7 { Ok(vec![]) } else { Err(Malformed) });
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let most = bytes.len() as u64;
            prop_assert!(Entries::new(bytes.into(), 0..most).count() as u64 <= most);
        }
    }
}
