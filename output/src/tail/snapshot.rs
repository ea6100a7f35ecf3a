//! Opens a log's files as they are at one instant.

use std::collections::BTreeSet;
use std::io;

use super::folder::Folder;
use super::held::Held;
use super::name::LogName;
use super::source::Source;

/// How often a folder is listed again that changed while it was listed.
const LISTS: usize = 8;

/// A file, and whether it is a rotated one.
type Opened = (Source, bool);

/// The rotated files that are there, and all files that were not known before, oldest first. If a
/// file is renamed meanwhile, it begins anew: one that is missed here would never be read.
pub(crate) fn snapshot(
    folder: &Folder,
    known: &BTreeSet<String>,
) -> io::Result<(BTreeSet<String>, Vec<Opened>)> {
    let mut listed = folder.list()?;
    for _ in 0..LISTS {
        let opened = open_all(folder, &listed, known);
        let again = folder.list()?;
        match opened {
            Ok(found) if again == listed => return Ok((suffixes(&listed), found)),
            Err(error) if again == listed => return Err(error),
            Ok(_) | Err(_) => listed = again,
        }
    }
    Err(io::Error::other("the log folder changes all the time"))
}

fn open_all(
    folder: &Folder,
    names: &[LogName],
    known: &BTreeSet<String>,
) -> io::Result<Vec<Opened>> {
    let is_new = |name: &&LogName| name.suffix().is_none_or(|suffix| !known.contains(suffix));
    let open = |name: &LogName| {
        let (file, id) = folder.open(name)?;
        let packed = matches!(name, LogName::Rotated { packed: true, .. });
        Ok((Source::new(file, id, packed), name.suffix().is_some()))
    };
    names.iter().filter(is_new).map(open).collect()
}

fn suffixes(names: &[LogName]) -> BTreeSet<String> {
    let suffixes = names.iter().filter_map(LogName::suffix);
    suffixes.map(str::to_owned).collect()
}

/// Which of the files is known by the mark.
pub(crate) fn find<'a>(
    files: impl Iterator<Item = &'a mut Held>,
    mark: &str,
) -> io::Result<Option<usize>> {
    for (at, file) in files.enumerate() {
        if file.source.mark()? == Some(mark) {
            return Ok(Some(at));
        }
    }
    Ok(None)
}
