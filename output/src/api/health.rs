//! What probes and scrapers are told of the log API, without TLS, on a port of their own.

use std::sync::Arc;

use tokio::sync::watch;

use super::context::Context;

/// What the answers depend on.
#[derive(Clone)]
pub(crate) struct Health {
    pub(crate) cx: Arc<Context>,
    pub(crate) stopping: watch::Receiver<bool>,
}

impl boxes_program::Health for Health {
    /// Ready once users can be authenticated, whatever the archive does: an `APIService` without a
    /// ready server blocks the deletion of every namespace.
    fn problem(&self) -> Option<&'static str> {
        if *self.stopping.borrow() {
            Some("stopping")
        } else if self.cx.proxy.borrow().is_none() {
            Some("how users are authenticated is not known yet")
        } else {
            None
        }
    }

    fn metrics(&self) -> Option<Result<String, std::fmt::Error>> {
        Some(self.cx.metrics.text(self.cx.slots.taken()))
    }
}
