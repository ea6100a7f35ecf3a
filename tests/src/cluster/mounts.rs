//! Mounts below the cluster's folders.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rustix::mount::{UnmountFlags, unmount};

/// Detaches every mount strictly below one of `folders`, deepest first, and checks that none is left.
///
/// Deleting a folder with a mount in it would delete what is mounted there.
pub(crate) fn detach_below(folders: &[&Path]) -> Result<()> {
    for mount in below(&table()?, folders) {
        unmount(&mount, UnmountFlags::DETACH)
            .with_context(|| format!("cannot unmount {}", mount.display()))?;
    }
    match below(&table()?, folders).first() {
        None => Ok(()),
        Some(left) => bail!(
            "{} is still mounted: nothing beneath it was deleted",
            left.display()
        ),
    }
}

fn table() -> Result<String> {
    fs::read_to_string("/proc/self/mountinfo").context("cannot read /proc/self/mountinfo")
}

/// Mount points below `folders`, last mounted first: a mount on top goes before what it covers.
fn below(mountinfo: &str, folders: &[&Path]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = mountinfo
        .lines()
        .filter_map(|line| Some(PathBuf::from(unescape(line.split(' ').nth(4)?))))
        .filter(|point| {
            folders
                .iter()
                .any(|folder| point != folder && point.starts_with(folder))
        })
        .collect();
    found.reverse();
    found.sort_by_key(|point| std::cmp::Reverse(point.components().count()));
    found
}

/// The kernel writes space, tab, newline and backslash as a backslash and three octal digits.
fn unescape(field: &str) -> String {
    let mut text = String::with_capacity(field.len());
    let mut rest = field;
    while let Some((before, after)) = rest.split_once('\\') {
        text.push_str(before);
        let digits = after
            .get(..3)
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        text.push(digits.map_or('\\', char::from));
        rest = if digits.is_some() { &after[3..] } else { after };
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
20 1 8:1 / / rw - ext4 /dev/vda rw
30 20 0:5 / /s/kubelet/pods/a rw - tmpfs tmpfs rw
31 30 0:6 / /s/kubelet/pods/a/deep\\040er rw - tmpfs tmpfs rw
32 20 0:7 / /s rw - tmpfs tmpfs rw
33 20 0:8 / /state rw - tmpfs tmpfs rw
34 20 0:9 / /r/rootfs rw - overlay overlay rw
";

    #[test]
    fn only_what_is_below_and_deepest_first() {
        let found = below(TABLE, &[Path::new("/s"), Path::new("/r")]);
        let expected = [
            "/s/kubelet/pods/a/deep er",
            "/s/kubelet/pods/a",
            "/r/rootfs",
        ];
        assert_eq!(found, expected.map(PathBuf::from));
    }

    #[test]
    fn octal_escapes_are_read() {
        assert_eq!(unescape(r"a\040b\134c\x"), r"a b\c\x");
    }
}
