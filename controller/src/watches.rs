//! Watches that go on for ever.

use std::pin::pin;

use futures::{Stream, StreamExt};
use kube::runtime::watcher::{self, Event};

use crate::metrics::Metrics;

/// Hands on the events of a watch, for ever. What fails is counted, and the watch is taken up again.
pub(crate) async fn follow<K>(
    metrics: &Metrics,
    events: impl Stream<Item = watcher::Result<Event<K>>>,
    mut news: impl FnMut(&Event<K>),
) {
    let mut events = pin!(events);
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => news(&event),
            Err(error) => {
                metrics.count_error("watch");
                tracing::warn!(error = %error, "a watch failed and is taken up again");
            }
        }
    }
}
