//! A compressed log file, read from any place onwards.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use flate2::read::MultiGzDecoder;

/// Unpacks a file as it is read. The last bytes that were given can be had again: a reader comes
/// back for the line that it had only half of.
#[derive(Debug)]
pub(crate) struct Packed<F = File> {
    file: Arc<F>,
    decoder: MultiGzDecoder<BufReader<FromStart<F>>>,
    /// What was given last, and where it began.
    given: Vec<u8>,
    given_at: u64,
}

impl<F: FileExt> Packed<F> {
    pub(crate) fn new(file: F) -> Self {
        Self::over(Arc::new(file))
    }

    /// The file as it is on the disk.
    pub(crate) fn file(&self) -> &F {
        &self.file
    }

    fn over(file: Arc<F>) -> Self {
        let start = FromStart {
            file: file.clone(),
            at: 0,
        };
        Self {
            decoder: MultiGzDecoder::new(BufReader::new(start)),
            file,
            given: Vec::new(),
            given_at: 0,
        }
    }

    /// Fills the buffer from a place; less only at the end.
    pub(crate) fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if offset < self.given_at {
            *self = Self::over(self.file.clone());
        }
        let read = self.read_on(buffer, offset);
        if read.is_err() {
            // How far it came is not known.
            *self = Self::over(self.file.clone());
        }
        read
    }

    fn read_on(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
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

/// Reads a file without a place of its own that others could move.
#[derive(Debug)]
struct FromStart<F> {
    file: Arc<F>,
    at: u64,
}

impl<F: FileExt> Read for FromStart<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read_at(buffer, self.at)?;
        self.at += length as u64;
        Ok(length)
    }
}

fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use std::cell::Cell;

    use super::*;

    fn packed_content() -> (Vec<u8>, File) {
        let content: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
        let mut file = tempfile::tempfile().unwrap();
        let mut encoder = flate2::write::GzEncoder::new(&mut file, flate2::Compression::fast());
        encoder.write_all(&content).unwrap();
        encoder.finish().unwrap();
        (content, file)
    }

    /// A file of which the second read fails.
    struct Failing(File, Cell<u32>, io::ErrorKind);

    impl FileExt for Failing {
        fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
            self.1.set(self.1.get() + 1);
            if self.1.get() == 2 {
                return Err(self.2.into());
            }
            let most = buffer.len().min(4096);
            self.0.read_at(&mut buffer[..most], offset)
        }

        fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    #[test]
    fn a_read_that_is_interrupted_goes_on() {
        let (content, file) = packed_content();
        let kind = io::ErrorKind::Interrupted;
        let mut packed = Packed::new(Failing(file, Cell::default(), kind));
        let mut buffer = vec![0; content.len()];
        assert_eq!(packed.read_at(&mut buffer, 0).unwrap(), content.len());
        assert_eq!(buffer, content);
    }

    #[test]
    fn what_was_unpacked_before_a_read_failed_comes_again() {
        let (content, file) = packed_content();
        let mut packed = Packed::new(Failing(file, Cell::default(), io::ErrorKind::Other));
        let mut buffer = vec![0; content.len()];
        assert!(packed.read_at(&mut buffer, 0).is_err());
        assert_eq!(packed.read_at(&mut buffer, 0).unwrap(), content.len());
        assert_eq!(buffer, content);
    }

    #[test]
    fn any_place_can_be_read() {
        let (content, file) = packed_content();
        let mut packed = Packed::new(file);
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
