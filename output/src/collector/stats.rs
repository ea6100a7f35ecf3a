//! What the collector measures. Labels come from fixed sets, never from names.

use std::sync::atomic::AtomicI64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::archive::{GapReason, Manifest, Saved};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClassLabel {
    class: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabel {
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
}

/// Seconds: from one flush to what an outage makes of it.
const LAG_BUCKETS: [f64; 9] = [0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 15.0, 60.0, 300.0];

/// Counters of one collector.
#[derive(Debug)]
pub struct Stats {
    registry: Registry,
    /// Boxes that are being collected.
    pub boxes: Gauge<i64, AtomicI64>,
    /// Log files that are held open.
    pub held: Gauge<i64, AtomicI64>,
    /// Bytes of log that are held and that the kubelet has removed: they take the node's disk.
    pub removed_bytes: Gauge<i64, AtomicI64>,
    /// Bytes of log that were read.
    pub log_bytes: Counter,
    /// Segments that were stored.
    pub segments: Counter,
    /// From when the oldest record of a segment was logged until it was stored.
    pub lag: Histogram,
    gaps: Family<ReasonLabel, Counter>,
    saved: Family<StateLabel, Counter>,
    errors: Family<ClassLabel, Counter>,
}

impl Default for Stats {
    fn default() -> Self {
        let mut stats = Self {
            registry: Registry::default(),
            boxes: Gauge::default(),
            held: Gauge::default(),
            removed_bytes: Gauge::default(),
            log_bytes: Counter::default(),
            segments: Counter::default(),
            lag: Histogram::new(LAG_BUCKETS),
            gaps: Family::default(),
            saved: Family::default(),
            errors: Family::default(),
        };
        stats.registry = stats.registry();
        stats
    }
}

impl Stats {
    fn registry(&self) -> Registry {
        let mut registry = Registry::with_prefix("boxes_collector");
        registry.register(
            "boxes",
            "Boxes that are being collected",
            self.boxes.clone(),
        );
        registry.register(
            "held_files",
            "Log files that are held open",
            self.held.clone(),
        );
        registry.register(
            "held_removed_bytes",
            "Bytes of log that are held and that the kubelet has removed",
            self.removed_bytes.clone(),
        );
        registry.register(
            "log_bytes",
            "Bytes of log that were read",
            self.log_bytes.clone(),
        );
        registry.register(
            "segments",
            "Segments that were stored",
            self.segments.clone(),
        );
        registry.register(
            "lag_seconds",
            "From when the oldest record of a segment was logged until it was stored",
            self.lag.clone(),
        );
        registry.register("gaps", "Gaps that were found, by reason", self.gaps.clone());
        registry.register(
            "outputs",
            "Outputs that are complete, by state",
            self.saved.clone(),
        );
        registry.register("errors", "Failed calls, by class", self.errors.clone());
        registry
    }

    pub(crate) fn count_error(&self, class: &'static str) {
        self.errors.get_or_create(&ClassLabel { class }).inc();
    }

    pub(crate) fn count_gap(&self, reason: GapReason) {
        let reason = reason.as_str();
        self.gaps.get_or_create(&ReasonLabel { reason }).inc();
    }

    pub(crate) fn count_lag(&self, lag: Duration) {
        self.lag.observe(lag.as_secs_f64());
    }

    pub(crate) fn count_outcome(&self, manifest: &Manifest) {
        let state = manifest.state.as_str();
        self.saved.get_or_create(&StateLabel { state }).inc();
    }

    /// How many outputs are complete.
    #[must_use]
    pub fn saved(&self, state: Saved) -> u64 {
        let state = state.as_str();
        self.saved.get_or_create(&StateLabel { state }).get()
    }

    /// The text that a scraper reads.
    ///
    /// # Errors
    /// None that are known.
    pub fn text(&self) -> Result<String, std::fmt::Error> {
        boxes_program::text(&self.registry)
    }
}
