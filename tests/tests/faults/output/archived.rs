//! What is in an archive, read as the log API reads it.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use boxes_crds::OutputStatus;
use boxes_output::archive::{
    Archive, Content, Entry, Gap, GapReason, Manifest, Options, Reader, RunKey, Saved, Start,
    Stream,
};
use boxes_tests::cluster::hex;
use boxes_tests::harness::{PATIENCE, Written};
use futures::TryStreamExt;
use sha2::{Digest, Sha256};

/// Where an archive is, and how it is reached.
#[derive(Clone, Default)]
pub(crate) struct Address {
    pub(crate) url: String,
    pub(crate) settings: Vec<(String, String)>,
}

impl Address {
    /// A folder.
    pub(crate) fn folder(path: &Path) -> Self {
        Self {
            url: format!("file://{}", path.display()),
            settings: Vec::new(),
        }
    }

    pub(crate) fn open(&self) -> Result<Archive> {
        let options = Options {
            settings: self.settings.clone(),
            ..Options::default()
        };
        Ok(Archive::open(&self.url, &options)?)
    }
}

/// What is there of one run.
pub(crate) struct Archived {
    pub(crate) written: Written,
    pub(crate) gaps: Vec<Gap>,
    entries: u64,
    manifest: Option<Manifest>,
}

impl Archived {
    /// Reads it to the end that it has now.
    pub(crate) async fn read(archive: &Archive, run: &RunKey) -> Result<Self> {
        let mut it = Self {
            written: Written::default(),
            gaps: Vec::new(),
            entries: 0,
            manifest: archive.manifest(run).await?,
        };
        let mut entries = archive.read(run, Start::Beginning);
        while let Some(batch) = entries.try_next().await? {
            for entry in batch {
                it.add(entry)?;
            }
        }
        Ok(it)
    }

    fn add(&mut self, entry: Entry) -> Result<()> {
        ensure!(entry.number == self.entries, "{entry:?} is out of order");
        self.entries += 1;
        match entry.content {
            Content::Gap(gap) => self.gaps.push(gap),
            Content::Record(it) => {
                let is_stderr = it.stream == Stream::Stderr;
                self.written.add(is_stderr, &it.bytes, it.ends_line);
            }
        }
        Ok(())
    }

    /// Waits until so many bytes are there.
    pub(crate) async fn reaches(archive: &Archive, run: &RunKey, length: usize) -> Result<()> {
        let mut there = 0;
        let following = async {
            let mut entries = archive.follow(run, Start::Beginning);
            while there < length {
                let batch = entries.try_next().await?;
                there += batch.context("it ended")?.iter().map(size).sum::<usize>();
            }
            anyhow::Ok(())
        };
        let reached = tokio::time::timeout(PATIENCE, following).await;
        reached
            .unwrap_or_else(|_| Err(anyhow::anyhow!("the rest does not come")))
            .with_context(|| format!("{there} of {length} bytes came to the archive"))
    }

    /// Exactly this is there, once and in this order.
    pub(crate) fn holds(&self, expected: &Written) -> Result<()> {
        let pairs = [
            ("stdout", &self.written.stdout, &expected.stdout),
            ("stderr", &self.written.stderr, &expected.stderr),
            ("both", &self.written.both, &expected.both),
        ];
        for (what, found, expected) in pairs {
            same(found, expected).with_context(|| format!("of {what}"))?;
        }
        Ok(())
    }

    /// The gaps have these reasons, in this order.
    pub(crate) fn lacks(&self, expected: &[GapReason]) -> Result<()> {
        let reasons: Vec<_> = self.gaps.iter().map(|gap| gap.reason).collect();
        ensure!(reasons == expected, "{:?}", self.gaps);
        Ok(())
    }

    /// The manifest is of these entries, and the Box's record is of the manifest.
    pub(crate) fn is_of(&self, said: &OutputStatus) -> Result<()> {
        let manifest = self.manifest.as_ref().context("there is no manifest")?;
        ensure!(manifest.entries == self.entries, "{manifest:?}");
        ensure!(manifest.gaps == self.gaps, "{manifest:?}");
        ensure!((manifest.state == Saved::Saved) == self.gaps.is_empty());
        ensure!(
            manifest.sha256 == sha256(&self.written.both),
            "another digest"
        );
        ensure!(manifest.stdout.sha256 == sha256(&self.written.stdout));
        ensure!(manifest.stderr.sha256 == sha256(&self.written.stderr));
        let bytes = self.written.both.len();
        ensure!(usize::try_from(manifest.bytes)? == bytes, "{manifest:?}");
        ensure!(usize::try_from(said.bytes)? == bytes, "{said:?}");
        ensure!(said.state == manifest.state.as_str(), "{said:?}");
        Ok(())
    }
}

fn size(entry: &Entry) -> usize {
    match &entry.content {
        Content::Record(it) => it.bytes.len() + usize::from(it.ends_line),
        Content::Gap(_) => 0,
    }
}

fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Says where two differ: they may be long.
fn same(found: &[u8], expected: &[u8]) -> Result<()> {
    let pairs = found.iter().zip(expected);
    let same = pairs.take_while(|(a, b)| a == b).count();
    let around = |bytes: &[u8]| {
        let end = bytes.len().min(same + 60);
        String::from_utf8_lossy(&bytes[same.saturating_sub(60)..end]).into_owned()
    };
    ensure!(
        found == expected,
        "{} bytes, not {}; they differ after {same}: {:?}, not {:?}",
        found.len(),
        expected.len(),
        around(found),
        around(expected)
    );
    Ok(())
}
