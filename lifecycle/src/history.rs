//! The box's own event list: append-only and bounded.

use boxes_crds::{BoxStatus, HistoryEntry, HistoryType};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Map, Value};

/// How many entries a history holds.
const BOUND: usize = 50;

/// Appends an entry, once per type: each of these things happens to a box at most once.
pub(crate) fn note(
    status: &mut BoxStatus,
    type_: HistoryType,
    at: Timestamp,
    data: Map<String, Value>,
) {
    if has(status, type_) {
        return;
    }
    status.history.push(HistoryEntry {
        type_: type_.as_str().to_owned(),
        time: Time(at),
        data,
    });
    let over = status.history.len().saturating_sub(BOUND);
    if over > 0 {
        status.history.drain(..over);
        let dropped = i64::try_from(over).unwrap_or(i64::MAX);
        status.history_dropped = Some(status.history_dropped.unwrap_or(0).saturating_add(dropped));
    }
}

fn has(status: &BoxStatus, type_: HistoryType) -> bool {
    status
        .history
        .iter()
        .any(|entry| entry.type_ == type_.as_str())
}

/// Data of an entry from pairs; absent values are left out.
pub(crate) fn data<const N: usize>(pairs: [(&str, Option<Value>); N]) -> Map<String, Value> {
    pairs
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As full as only a newer build, with more to tell, could make it.
    fn a_full_history() -> BoxStatus {
        let entry = HistoryEntry {
            type_: HistoryType::Created.to_string(),
            time: Time(Timestamp::UNIX_EPOCH),
            data: Map::new(),
        };
        BoxStatus {
            history: vec![entry; BOUND],
            ..BoxStatus::default()
        }
    }

    #[test]
    fn the_newest_fifty_are_kept_and_the_others_counted() {
        let mut status = a_full_history();
        for type_ in [HistoryType::Exited, HistoryType::CleanedUp] {
            note(&mut status, type_, Timestamp::UNIX_EPOCH, Map::new());
        }
        assert_eq!(status.history.len(), BOUND);
        assert_eq!(status.history_dropped, Some(2));
        let last = status.history.last().map(|entry| entry.type_.as_str());
        assert_eq!(last, Some("CleanedUp"));
    }

    #[test]
    fn what_happened_once_is_noted_once() {
        let mut status = BoxStatus::default();
        for _ in 0..2 {
            note(
                &mut status,
                HistoryType::Exited,
                Timestamp::UNIX_EPOCH,
                Map::new(),
            );
        }
        assert_eq!(status.history.len(), 1);
    }
}
