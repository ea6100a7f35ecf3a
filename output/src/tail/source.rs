//! One open log file.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::folder::FileId;
use super::name::LogName;
use super::packed::Packed;
use super::writers::Ask;
use crate::archive::Position;
use crate::cri::{Parser, Sink, head};

/// So much of a file's beginning tells it from others: its first line has a time in nanoseconds.
const MARKED: usize = 256;

#[derive(Debug)]
pub(crate) struct Source {
    bytes: Bytes,
    pub(crate) id: FileId,
    /// Of which attempt of the container it is.
    pub(crate) attempt: u32,
    mark: Option<String>,
    offset: u64,
    parser: Parser,
}

#[derive(Debug)]
enum Bytes {
    Plain(File),
    Packed(Box<Packed>),
}

impl Source {
    pub(crate) fn new(file: File, id: FileId, name: &LogName) -> Self {
        let bytes = if name.is_packed() {
            Bytes::Packed(Box::new(Packed::new(file)))
        } else {
            Bytes::Plain(file)
        };
        Self {
            bytes,
            id,
            attempt: name.attempt,
            mark: None,
            offset: 0,
            parser: Parser::default(),
        }
    }

    pub(crate) const fn is_packed(&self) -> bool {
        matches!(self.bytes, Bytes::Packed(_))
    }

    /// Whether somebody may still add to it, if that can be told. Nobody adds to what is compressed.
    pub(crate) fn is_written(&self, ask: Ask) -> Option<bool> {
        match &self.bytes {
            Bytes::Plain(file) => ask(file),
            Bytes::Packed(_) => Some(false),
        }
    }

    /// What the file is known by; `None` while its first line is not whole.
    pub(crate) fn mark(&mut self) -> io::Result<Option<&str>> {
        if self.mark.is_none() {
            let mut beginning = [0; MARKED];
            let length = self.read_at(&mut beginning, 0)?;
            self.mark = mark_of(&beginning[..length]);
        }
        Ok(self.mark.as_deref())
    }

    /// When its first line was logged; `None` if it has none.
    pub(crate) fn begins(&mut self) -> io::Result<Option<Timestamp>> {
        let mut beginning = [0; MARKED];
        let length = self.read_at(&mut beginning, 0)?;
        Ok(head(&beginning[..length]).map(|(head, _)| head.time))
    }

    /// Goes on where it was left.
    pub(crate) fn seek(&mut self, position: &Position) {
        self.mark = Some(position.file.clone());
        self.offset = position.offset;
        self.parser = Parser::at(position.inside);
    }

    /// Where it is; `None` before the first line.
    pub(crate) fn position(&self) -> Option<Position> {
        let file = self.mark.clone().filter(|_| self.offset > 0)?;
        Some(Position {
            file,
            attempt: self.attempt,
            offset: self.offset,
            inside: self.parser.inside(),
            gap_told: false,
        })
    }

    /// Reads what fits in the buffer. Gives how many bytes it took: none at the end, or before a
    /// line that is not whole.
    pub(crate) fn read(&mut self, buffer: &mut [u8], sink: &mut impl Sink) -> io::Result<usize> {
        let length = self.fill(buffer)?;
        let full = length == buffer.len();
        let taken = self.parser.take(&buffer[..length], full, sink);
        self.offset += taken as u64;
        Ok(taken)
    }

    /// Takes what is left at the end, of which no more will come. Gives how many bytes are a line
    /// that was cut off.
    pub(crate) fn tear(
        &mut self,
        buffer: &mut [u8],
        sink: &mut impl Sink,
    ) -> io::Result<Option<u64>> {
        let length = self.fill(buffer)?;
        let torn = self.parser.tear(&buffer[..length], sink);
        self.offset += length as u64;
        Ok(torn.then_some(length as u64))
    }

    /// Whether the file became shorter than what was read of it. If it begins as it did, its end was
    /// not on the disk when the node crashed, and what is left was read; else it begins anew.
    pub(crate) fn truncated(&mut self) -> io::Result<bool> {
        let Bytes::Plain(file) = &self.bytes else {
            return Ok(false);
        };
        let length = file.metadata()?.len();
        if length >= self.offset {
            return Ok(false);
        }
        let known = self.mark.take();
        let is_same = match self.mark() {
            Ok(Some(mark)) => Some(mark) == known.as_deref(),
            // Of its first line a part is left.
            Ok(None) => length > 0,
            Err(error) => {
                self.mark = known;
                return Err(error);
            }
        };
        if is_same {
            self.mark = known;
        }
        self.offset = if is_same { length } else { 0 };
        self.parser = Parser::default();
        Ok(true)
    }

    /// Goes to the end without reading. Gives how many bytes that leaves out, if there are any.
    pub(crate) fn pass(&mut self) -> Option<u64> {
        let unread = self.unread().filter(|unread| *unread > 0)?;
        self.offset += unread;
        Some(unread)
    }

    /// How many bytes of disk it takes that nobody else can free, since its name is gone.
    pub(crate) fn removed(&self) -> u64 {
        let file = match &self.bytes {
            Bytes::Plain(file) => file,
            Bytes::Packed(packed) => packed.file(),
        };
        let known = file.metadata().ok();
        known
            .filter(|known| known.nlink() == 0)
            .map_or(0, |known| known.len())
    }

    /// How many bytes were not read, if that can be told.
    pub(crate) fn unread(&self) -> Option<u64> {
        match &self.bytes {
            Bytes::Plain(file) => {
                let length = file.metadata().ok()?.len();
                Some(length.saturating_sub(self.offset))
            }
            Bytes::Packed(_) => None,
        }
    }

    /// Fills the buffer from where it is. A mark is taken from the beginning.
    fn fill(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.read_at(buffer, self.offset)?;
        if self.offset == 0 && self.mark.is_none() {
            self.mark = mark_of(&buffer[..length.min(MARKED)]);
        }
        Ok(length)
    }

    fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        match &mut self.bytes {
            Bytes::Plain(file) => fill_at(file, buffer, offset),
            Bytes::Packed(packed) => packed.read_at(buffer, offset),
        }
    }
}

fn fill_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn mark_of(beginning: &[u8]) -> Option<String> {
    let end = match memchr::memchr(b'\n', beginning) {
        Some(end) => end,
        None if beginning.len() >= MARKED => MARKED,
        None => return None,
    };
    let digest = Sha256::digest(&beginning[..end]);
    Some(crate::archive::hex(&digest[..16]))
}
