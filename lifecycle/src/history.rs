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
