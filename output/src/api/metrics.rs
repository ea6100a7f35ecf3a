//! What the log API measures. Labels come from fixed sets, never from names.

use std::sync::atomic::AtomicI64;

use http::StatusCode;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CodeLabel {
    code: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClassLabel {
    class: &'static str,
}

/// The log API's metrics.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<CodeLabel, Counter>,
    streams: Gauge<i64, AtomicI64>,
    bytes: Counter,
    cuts: Family<ClassLabel, Counter>,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("boxes_log_api");
        let metrics = Self {
            registry: Registry::default(),
            requests: Family::default(),
            streams: Gauge::default(),
            bytes: Counter::default(),
            cuts: Family::default(),
        };
        registry.register(
            "requests",
            "Requests, by the code of the answer",
            metrics.requests.clone(),
        );
        registry.register(
            "streams",
            "Logs that are being read now",
            metrics.streams.clone(),
        );
        registry.register(
            "sent_bytes",
            "Bytes of output given to clients",
            metrics.bytes.clone(),
        );
        registry.register(
            "cut_off",
            "Answers cut off after they began, by class",
            metrics.cuts.clone(),
        );
        Self {
            registry,
            ..metrics
        }
    }

    pub(crate) fn count_request(&self, code: StatusCode) {
        let code = code.as_u16();
        self.requests.get_or_create(&CodeLabel { code }).inc();
    }

    pub(crate) fn count_bytes(&self, bytes: usize) {
        self.bytes.inc_by(bytes as u64);
    }

    pub(crate) fn count_cut(&self, class: &'static str) {
        self.cuts.get_or_create(&ClassLabel { class }).inc();
    }

    /// The text that a scraper reads.
    pub(crate) fn text(&self, streams: usize) -> Result<String, std::fmt::Error> {
        self.streams.set(i64::try_from(streams).unwrap_or(i64::MAX));
        boxes_program::text(&self.registry)
    }
}
