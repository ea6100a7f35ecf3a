//! Where things are.

use object_store::path::Path;

use super::key::{RunKey, Uid};

const CLUSTER: &str = "cluster.json";
pub(crate) const RUNS: &str = "runs";
pub(crate) const LABEL: &str = "box.json";
pub(crate) const MANIFEST: &str = "manifest.json";
const SUFFIX: &str = ".seg";

/// The name of a segment. One that was merged from several says where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SegmentName {
    pub(crate) first: u64,
    pub(crate) next: Option<u64>,
}

impl SegmentName {
    /// One as it is first written.
    pub(crate) const fn plain(first: u64) -> Self {
        Self { first, next: None }
    }

    pub(crate) const fn merged(first: u64, next: u64) -> Self {
        Self {
            first,
            next: Some(next),
        }
    }

    pub(crate) fn file_name(self) -> String {
        match self.next {
            None => format!("{:020}{SUFFIX}", self.first),
            Some(next) => format!("{:020}-{next:020}{SUFFIX}", self.first),
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        let stem = name.strip_suffix(SUFFIX)?;
        let (first, next) = match stem.split_once('-') {
            None => (stem, None),
            Some((first, next)) => (first, Some(number(next)?)),
        };
        let first = number(first)?;
        (next.is_none_or(|next| next > first)).then_some(Self { first, next })
    }
}

fn number(digits: &str) -> Option<u64> {
    let plain = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| plain)
}

pub(crate) fn cluster(root: &Path) -> Path {
    root.clone().join(CLUSTER)
}

pub(crate) fn box_folder(root: &Path, box_uid: &Uid) -> Path {
    root.clone().join(RUNS).join(box_uid.as_str())
}

pub(crate) fn label(root: &Path, box_uid: &Uid) -> Path {
    box_folder(root, box_uid).join(LABEL)
}

pub(crate) fn run_folder(root: &Path, run: &RunKey) -> Path {
    box_folder(root, &run.box_uid)
        .join(run.pod_uid.as_str())
        .join(run.restart.to_string())
}

pub(crate) fn segment(root: &Path, run: &RunKey, name: SegmentName) -> Path {
    run_folder(root, run).join(name.file_name())
}

/// What comes, in order, before all segments that begin at this entry or later.
pub(crate) fn before_segment(root: &Path, run: &RunKey, entry: u64) -> Path {
    run_folder(root, run).join(format!("{entry:020}"))
}

pub(crate) fn manifest(root: &Path, run: &RunKey) -> Path {
    run_folder(root, run).join(MANIFEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case(SegmentName::plain(0))]
    #[case(SegmentName::plain(u64::MAX))]
    #[case(SegmentName::merged(3, 90))]
    fn a_name_is_read_as_written(#[case] name: SegmentName) {
        assert_eq!(SegmentName::parse(&name.file_name()), Some(name));
    }

    #[rstest::rstest]
    #[case("manifest.json")]
    #[case("1.seg")]
    #[case("0000000000000000000a.seg")]
    #[case("+0000000000000000001.seg")]
    #[case("00000000000000000009-00000000000000000009.seg")]
    #[case("00000000000000000001.seg#1")]
    fn other_files_are_no_segments(#[case] name: &str) {
        assert_eq!(SegmentName::parse(name), None);
    }
}
