//! Opens a log's files as they are at one instant.

use std::collections::BTreeSet;
use std::io;

use super::folder::Folder;
use super::held::Held;
use super::limit::is_ours;
use super::name::LogName;
use super::source::Source;

/// How often a folder is listed again that changed while it was listed.
const LISTS: usize = 8;

/// A file that was not known before.
pub(crate) struct Opened {
    pub(crate) source: Source,
    /// Whether it is a rotated one.
    pub(crate) rotated: bool,
    /// Whether there are files before it that cannot be opened.
    pub(crate) after_bad: bool,
}

/// What is in a folder.
#[derive(Default)]
pub(crate) struct Snapshot {
    /// The files that nobody writes to any more, by [`LogName::id`]. One that cannot be opened is among
    /// them if a later file can be.
    pub(crate) known: BTreeSet<String>,
    /// All names, oldest first.
    pub(crate) names: Vec<LogName>,
    /// The files that were not known before, oldest first.
    pub(crate) opened: Vec<Opened>,
    /// Why a file cannot be opened.
    pub(crate) error: Option<io::Error>,
}

/// Opens what was not known before. If a file is renamed meanwhile, it begins anew: one that is missed
/// here would never be read.
pub(crate) fn snapshot(folder: &Folder, known: &BTreeSet<String>) -> io::Result<Snapshot> {
    let mut listed = folder.list()?;
    for _ in 0..LISTS {
        let opened = open_all(folder, &listed, known)?;
        let again = folder.list()?;
        if again == listed {
            return Ok(opened);
        }
        listed = again;
    }
    Err(io::Error::other("the log folder changes all the time"))
}

fn open_all(folder: &Folder, names: &[LogName], known: &BTreeSet<String>) -> io::Result<Snapshot> {
    let (mut all, mut bad) = (Snapshot::default(), Vec::new());
    all.names = names.to_vec();
    for (at, name) in names.iter().enumerate() {
        // The last one is looked at anew if it is not the one that was.
        let is_current = at + 1 == names.len() && !name.is_rotated();
        if is_current || !known.contains(&name.id()) {
            match open(folder, name) {
                Ok(source) => {
                    let after_bad = !bad.is_empty();
                    all.known.extend(bad.drain(..));
                    all.opened.push(Opened {
                        source,
                        rotated: name.is_rotated(),
                        after_bad,
                    });
                }
                // That is not the file's fault, and soon over.
                Err(error) if is_ours(&error) => return Err(error),
                Err(error) => {
                    all.error = Some(error);
                    bad.push(name.id());
                    continue;
                }
            }
        }
        if !is_current {
            all.known.insert(name.id());
        }
    }
    Ok(all)
}

fn open(folder: &Folder, name: &LogName) -> io::Result<Source> {
    let (file, id) = folder.open(name)?;
    Ok(Source::new(file, id, name))
}

/// What is known about which file has a mark.
pub(crate) enum Found {
    At(usize),
    /// This is the last file of which the mark cannot be read; no other one has it.
    Unsure(usize, io::Error),
    Nowhere,
}

/// Which of the files is known by the mark.
pub(crate) fn find<'a>(files: impl Iterator<Item = &'a mut Held>, mark: &str) -> Found {
    let mut found = Found::Nowhere;
    for (at, file) in files.enumerate() {
        match file.source.mark() {
            Ok(other) if other == Some(mark) => return Found::At(at),
            Ok(_) => {}
            Err(error) => found = Found::Unsure(at, error),
        }
    }
    found
}
