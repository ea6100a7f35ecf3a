//! Which segments there are, and which of them holds an entry.

use std::collections::BTreeSet;

use super::layout::SegmentName;

/// The segments of a run, as listed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(BTreeSet<SegmentName>);

impl Names {
    /// The segment that holds the entry, if one of these does. Merged ones come first: what they
    /// were merged from may be gone already.
    pub(crate) fn holding(&self, entry: u64) -> Option<SegmentName> {
        let before = || {
            self.0
                .range(..=SegmentName::merged(entry, u64::MAX))
                .rev()
                .copied()
        };
        let merged = before().find(|name| name.next.is_some_and(|next| next > entry));
        merged.or_else(|| before().find(|name| name.next.is_none()))
    }

    /// Forgets all that lies wholly before the entry, if the segments were read in order up to it.
    pub(crate) fn forget_before(&mut self, entry: u64) {
        self.0
            .retain(|name| name.first >= entry || name.next.is_some_and(|next| next > entry));
    }

    /// Whether it was there.
    pub(crate) fn remove(&mut self, name: SegmentName) -> bool {
        self.0.remove(&name)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = SegmentName> {
        self.0.iter().copied()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The segments in order, without those that a merged one holds.
    pub(crate) fn in_order(&self) -> Vec<SegmentName> {
        let mut out: Vec<SegmentName> = Vec::new();
        for name in &self.0 {
            // Where a plain one ends is not in its name; two merged ones may overlap.
            let held = |known: &SegmentName| {
                let within = |next| name.first < next && name.next.is_none_or(|end| end <= next);
                known.next.is_some_and(within)
            };
            match out.last() {
                Some(last) if last.first == name.first && last.next < name.next => {
                    out.pop();
                    out.push(*name);
                }
                Some(last) if held(last) => {}
                Some(_) | None => out.push(*name),
            }
        }
        out
    }
}

impl FromIterator<SegmentName> for Names {
    fn from_iter<T: IntoIterator<Item = SegmentName>>(names: T) -> Self {
        Self(names.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let plain = [0, 10, 20, 30, 40].map(SegmentName::plain);
        plain
            .into_iter()
            .chain([SegmentName::merged(10, 30)])
            .collect()
    }

    #[rstest::rstest]
    #[case(0, SegmentName::plain(0))]
    #[case(9, SegmentName::plain(0))]
    #[case(10, SegmentName::merged(10, 30))]
    #[case(29, SegmentName::merged(10, 30))]
    #[case(30, SegmentName::plain(30))]
    #[case(99, SegmentName::plain(40))]
    fn an_entry_is_in_one_segment(#[case] entry: u64, #[case] name: SegmentName) {
        assert_eq!(names().holding(entry), Some(name));
    }

    #[test]
    fn merged_segments_that_overlap_are_both_needed() {
        let both = [SegmentName::merged(0, 32), SegmentName::merged(16, 48)];
        let all = both.into_iter().chain([SegmentName::plain(31)]);
        assert_eq!(all.collect::<Names>().in_order(), both);
    }

    #[test]
    fn merged_segments_hide_what_they_hold() {
        let order = [
            SegmentName::plain(0),
            SegmentName::merged(10, 30),
            SegmentName::plain(30),
            SegmentName::plain(40),
        ];
        assert_eq!(names().in_order(), order);
        let mut rest = names();
        rest.forget_before(15);
        assert_eq!(rest.in_order(), order[1..]);
    }
}
