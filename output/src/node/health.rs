//! What probes and scrapers are told of a collector.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::collector::Stats;

/// What the answers depend on.
#[derive(Debug, Default)]
pub(crate) struct Health {
    ready: AtomicBool,
    foreign: AtomicBool,
    stats: OnceLock<Arc<Stats>>,
}

impl Health {
    /// The collector has begun, and counts here.
    pub(crate) fn begin(&self, stats: Arc<Stats>) {
        // It begins once.
        let _ = self.stats.set(stats);
    }

    /// It holds the files of all boxes of its node.
    pub(crate) fn set_ready(&self) {
        self.ready.store(true, Ordering::Relaxed);
    }

    /// Whether the archive is another cluster's.
    pub(crate) fn set_foreign(&self, foreign: bool) {
        self.foreign.store(foreign, Ordering::Relaxed);
    }
}

impl boxes_program::Health for Health {
    /// An archive that does not answer is no reason; one that is not ours is.
    fn problem(&self) -> Option<&'static str> {
        if self.foreign.load(Ordering::Relaxed) {
            Some("the archive belongs to another cluster")
        } else if self.ready.load(Ordering::Relaxed) {
            None
        } else {
            Some("waiting for the first list of pods, and for their files to be opened")
        }
    }
    fn metrics(&self) -> Option<Result<String, std::fmt::Error>> {
        self.stats.get().map(|stats| stats.text())
    }
}
