//! What the controller measures. Labels come from fixed sets, never from names.

use std::sync::atomic::AtomicI64;

use boxes_crds::{BoxStatus, Reason, State};
use jiff::Timestamp;
use kube::runtime::reflector::Store;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::cache::{CachedBox, UNREADABLE};
use crate::error::CLASSES;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabel {
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClassLabel {
    class: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WriteLabel {
    write: &'static str,
}

/// Seconds: from one hop to what an outage makes of it.
const LAG_BUCKETS: [f64; 10] = [0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 15.0, 60.0, 300.0];

/// What became of the traces of runs. Its clones count together.
#[derive(Clone, Default)]
pub(crate) struct TraceCounts {
    pub exported: Counter,
    pub dropped: Counter,
}

impl TraceCounts {
    fn register(&self, registry: &mut Registry) {
        registry.register(
            "traces_exported",
            "Traces of runs that their receiver took",
            self.exported.clone(),
        );
        registry.register(
            "traces_dropped",
            "Traces of runs that were not exported: too many waited, or all attempts failed",
            self.dropped.clone(),
        );
    }
}

/// What became of Events. Its clones count together.
#[derive(Clone, Default)]
pub(crate) struct EventCounts {
    pub sent: Counter,
    pub refused: Counter,
    pub dropped: Counter,
}

impl EventCounts {
    fn register(&self, registry: &mut Registry) {
        registry.register(
            "events_sent",
            "Events that the API server took",
            self.sent.clone(),
        );
        registry.register(
            "events_refused",
            "Events that it did not take, one that it had already among them",
            self.refused.clone(),
        );
        registry.register(
            "events_dropped",
            "Events that were not sent: too many waited",
            self.dropped.clone(),
        );
    }
}

/// The controller's metrics.
pub(crate) struct Metrics {
    registry: Registry,
    boxes: Family<StateLabel, Gauge<i64, AtomicI64>>,
    endings: Family<ReasonLabel, Counter>,
    lag: Histogram,
    passes: Counter,
    writes: Family<WriteLabel, Counter>,
    errors: Family<ClassLabel, Counter>,
    pub traces: TraceCounts,
    pub events: EventCounts,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("boxes");
        let metrics = Self {
            boxes: Family::default(),
            endings: Family::default(),
            lag: Histogram::new(LAG_BUCKETS),
            passes: Counter::default(),
            writes: Family::default(),
            errors: Family::default(),
            traces: TraceCounts::default(),
            events: EventCounts::default(),
            registry: Registry::default(),
        };
        registry.register("by_state", "Boxes by state", metrics.boxes.clone());
        registry.register(
            "endings",
            "Endings recorded, by reason",
            metrics.endings.clone(),
        );
        registry.register(
            "end_to_recorded_seconds",
            "From the command's end, which the kubelet gives in whole seconds, to the acknowledged record",
            metrics.lag.clone(),
        );
        registry.register("reconciles", "Passes over a Box", metrics.passes.clone());
        registry.register(
            "writes",
            "Writes to the API server, by kind",
            metrics.writes.clone(),
        );
        // A counter that is not there before its first error hides that error from `increase()`.
        for class in CLASSES {
            drop(metrics.errors.get_or_create(&ClassLabel { class }));
        }
        registry.register(
            "reconcile_errors",
            "Failed passes, by class",
            metrics.errors.clone(),
        );
        metrics.traces.register(&mut registry);
        metrics.events.register(&mut registry);
        Self {
            registry,
            ..metrics
        }
    }

    pub(crate) fn count_pass(&self) {
        self.passes.inc();
    }

    pub(crate) fn count_write(&self, write: &'static str) {
        self.writes.get_or_create(&WriteLabel { write }).inc();
    }

    pub(crate) fn count_error(&self, class: &'static str) {
        self.errors.get_or_create(&ClassLabel { class }).inc();
    }

    /// Counts a recorded ending and how long it took to record it.
    pub(crate) fn count_ending(&self, status: &BoxStatus, now: Timestamp) {
        let Some(reason) = status.reason.as_deref().and_then(Reason::parse) else {
            return;
        };
        self.endings
            .get_or_create(&ReasonLabel {
                reason: reason.as_str(),
            })
            .inc();
        let ended = status.run.as_ref().and_then(|run| run.ended_at.as_ref());
        if let Some(ended) = ended {
            self.lag
                .observe(now.duration_since(ended.0).as_secs_f64().max(0.0));
        }
    }

    /// The text that a scraper reads. Boxes are counted when it asks.
    pub(crate) fn text(&self, boxes: &Store<CachedBox>) -> Result<String, std::fmt::Error> {
        self.count_boxes(boxes);
        boxes_program::text(&self.registry)
    }

    fn count_boxes(&self, boxes: &Store<CachedBox>) {
        let words = State::ALL
            .iter()
            .map(|state| state.as_str())
            .chain([UNREADABLE]);
        let mut counts: Vec<(&'static str, i64)> = words.map(|word| (word, 0)).collect();
        for object in boxes.state() {
            let word = object.state_word();
            if let Some((_, count)) = counts.iter_mut().find(|(known, _)| *known == word) {
                *count += 1;
            }
        }
        for (state, count) in counts {
            self.boxes.get_or_create(&StateLabel { state }).set(count);
        }
    }
}
