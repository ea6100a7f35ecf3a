//! What probes and scrapers are told of the controller.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::context::Context;

/// What the answers depend on.
pub(crate) struct Health(pub(crate) Arc<Context>);

impl boxes_program::Health for Health {
    fn problem(&self) -> Option<&'static str> {
        let ready = self.0.ready.load(Ordering::Relaxed);
        (!ready).then_some("waiting for the lease or the first lists")
    }

    fn metrics(&self) -> Option<Result<String, std::fmt::Error>> {
        Some(self.0.metrics.text(&self.0.boxes))
    }
}
