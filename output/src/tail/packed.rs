//! A compressed log file, read from any place onwards.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use flate2::read::MultiGzDecoder;

/// Unpacks a file as it is read. The last bytes that were given can be had again: a reader comes
/// back for the line that it had only half of.
#[derive(Debug)]
pub(crate) struct Packed {
    file: File,
    decoder: MultiGzDecoder<BufReader<File>>,
    /// What was given last, and where it began.
    given: Vec<u8>,
    given_at: u64,
}

impl Packed {
    pub(crate) fn new(file: File) -> io::Result<Self> {
        Ok(Self {
            decoder: decoder(&file)?,
            file,
            given: Vec::new(),
            given_at: 0,
        })
    }

    /// Fills the buffer from a place; less only at the end.
    pub(crate) fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if offset < self.given_at {
            *self = Self::new(self.file.try_clone()?)?;
        }
        self.skip_to(offset)?;
        let kept = self.given.len().min(buffer.len());
        buffer[..kept].copy_from_slice(&self.given[..kept]);
        let length = kept + fill(&mut self.decoder, &mut buffer[kept..])?;
        if kept == self.given.len() {
            self.given.extend_from_slice(&buffer[kept..length]);
        }
        Ok(length)
    }

    fn skip_to(&mut self, offset: u64) -> io::Result<()> {
        let ahead = offset - self.given_at;
        let kept = usize::try_from(ahead).map_or(self.given.len(), |n| n.min(self.given.len()));
        self.given.drain(..kept);
        let rest = ahead - kept as u64;
        io::copy(&mut self.decoder.by_ref().take(rest), &mut io::sink())?;
        self.given_at = offset;
        Ok(())
    }
}

fn decoder(file: &File) -> io::Result<MultiGzDecoder<BufReader<File>>> {
    let mut file = file.try_clone()?;
    file.seek(SeekFrom::Start(0))?;
    Ok(MultiGzDecoder::new(BufReader::new(file)))
}

fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..])? {
            0 => break,
            more => filled += more,
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn any_place_can_be_read() {
        let content: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
        let mut file = tempfile::tempfile().unwrap();
        let mut encoder = flate2::write::GzEncoder::new(&mut file, flate2::Compression::fast());
        encoder.write_all(&content).unwrap();
        encoder.finish().unwrap();
        let mut packed = Packed::new(file).unwrap();
        let mut buffer = vec![0; 10_000];
        for offset in [
            0, 9_990, 19_000, 500_000, 500_001, 3, 799_990, 800_000, 900_000,
        ] {
            let length = packed.read_at(&mut buffer, offset as u64).unwrap();
            let expected = &content[offset.min(content.len())..];
            let expected = &expected[..expected.len().min(buffer.len())];
            assert_eq!(&buffer[..length], expected, "{offset}");
        }
    }
}
