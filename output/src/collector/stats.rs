//! What the collector counts.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// Classes of failed calls; the last is for what the node's files answer.
const CLASSES: [&str; 6] = [
    "not_found",
    "unavailable",
    "full",
    "refused",
    "corrupt",
    "log",
];
/// Upper bounds of the delays that are counted, in milliseconds.
pub(crate) const DELAYS: [u64; 9] = [100, 250, 500, 1_000, 2_000, 5_000, 15_000, 60_000, 300_000];

/// Counters of one collector.
#[derive(Debug, Default)]
pub struct Stats {
    pub(crate) boxes: AtomicI64,
    pub(crate) held: AtomicI64,
    pub(crate) log_bytes: AtomicU64,
    pub(crate) segments: AtomicU64,
    pub(crate) gaps: AtomicU64,
    pub(crate) saved: AtomicU64,
    pub(crate) partial: AtomicU64,
    delays: [AtomicU64; DELAYS.len() + 1],
    delay_sum: AtomicU64,
    errors: [AtomicU64; CLASSES.len()],
}

/// The counters at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Boxes that are being collected.
    pub boxes: i64,
    /// Log files that are held open.
    pub held: i64,
    /// Bytes of log that were read.
    pub log_bytes: u64,
    /// Segments that were stored.
    pub segments: u64,
    /// Gaps that were found.
    pub gaps: u64,
    /// Runs saved whole.
    pub saved: u64,
    /// Runs saved with gaps.
    pub partial: u64,
    /// From the oldest record of a segment to its being stored, by upper bound in milliseconds; the
    /// last is without a bound.
    pub delays: Vec<u64>,
    /// The sum of these delays, in milliseconds.
    pub delay_sum: u64,
    /// Failed calls by class.
    pub errors: Vec<(&'static str, u64)>,
}

impl Stats {
    pub(crate) fn count_error(&self, class: &str) {
        if let Some(at) = CLASSES.iter().position(|known| *known == class) {
            self.errors[at].fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn count_delay(&self, delay: Duration) {
        let delay = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        let at = DELAYS.partition_point(|bound| *bound < delay);
        self.delays[at].fetch_add(1, Ordering::Relaxed);
        self.delay_sum.fetch_add(delay, Ordering::Relaxed);
    }

    /// The counters now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let errors = CLASSES.iter().zip(&self.errors);
        Snapshot {
            boxes: self.boxes.load(Ordering::Relaxed),
            held: self.held.load(Ordering::Relaxed),
            log_bytes: read(&self.log_bytes),
            segments: read(&self.segments),
            gaps: read(&self.gaps),
            saved: read(&self.saved),
            partial: read(&self.partial),
            delays: self.delays.iter().map(read).collect(),
            delay_sum: read(&self.delay_sum),
            errors: errors.map(|(class, count)| (*class, read(count))).collect(),
        }
    }
}
