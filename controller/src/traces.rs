//! Exports the traces of runs, beside the work: they are never waited for, and the record does not
//! depend on them.

use std::time::Duration;

use boxes_lifecycle::Trace;
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::trace::SpanExporter as _;
use tokio::sync::{mpsc, oneshot};

use crate::metrics::TraceCounts;
use crate::otlp::Receiver;
use crate::spans::spans_of;

/// How many traces may wait. Past that they are dropped, and counted.
const WAITING: usize = 1024;

/// How many are sent at once, of at most six spans each.
const AT_ONCE: usize = 64;

/// How long the end of the process waits for those that are left.
const GRACE: Duration = Duration::from_secs(5);

/// Takes traces, if they are exported.
pub(crate) struct Traces {
    queue: Option<mpsc::Sender<Item>>,
    counts: TraceCounts,
}

enum Item {
    Trace(Trace),
    /// To be told when everything before it is done.
    Done(oneshot::Sender<()>),
}

impl Traces {
    /// For a receiver, if there is one, with the task that sends to it.
    ///
    /// # Errors
    /// It cannot be sent to as it is named.
    pub(crate) fn start(receiver: Option<&Receiver>, counts: TraceCounts) -> anyhow::Result<Self> {
        let Some(receiver) = receiver else {
            return Ok(Self::none());
        };
        let exporter = receiver.exporter()?;
        let (queue, items) = mpsc::channel(WAITING);
        tokio::spawn(export(exporter, items, counts.clone()));
        tracing::info!(host = receiver.host(), "traces are exported");
        Ok(Self {
            queue: Some(queue),
            counts,
        })
    }

    /// Makes none.
    pub(crate) fn none() -> Self {
        Self {
            queue: None,
            counts: TraceCounts::default(),
        }
    }

    /// Puts a trace, if there is one, in the queue. It is made only if traces are exported.
    pub(crate) fn send(&self, make: impl FnOnce() -> Option<Trace>) {
        let Some(queue) = &self.queue else { return };
        let Some(trace) = make() else { return };
        if queue.try_send(Item::Trace(trace)).is_err() {
            self.counts.dropped.inc();
        }
    }

    /// Waits a moment for what is left, at the end of the process.
    pub(crate) async fn finish(&self) {
        let Some(queue) = &self.queue else { return };
        let (tell, told) = oneshot::channel();
        let left = async {
            // The task ends after this queue only.
            let _ = queue.send(Item::Done(tell)).await;
            let _ = told.await;
        };
        if tokio::time::timeout(GRACE, left).await.is_err() {
            tracing::warn!("traces were left that could not be exported in time");
        }
    }
}

async fn export(exporter: SpanExporter, mut queue: mpsc::Receiver<Item>, counts: TraceCounts) {
    let mut items = Vec::with_capacity(AT_ONCE);
    let mut failing = false;
    while queue.recv_many(&mut items, AT_ONCE).await > 0 {
        let (traces, waiting) = sorted(items.drain(..));
        if !traces.is_empty() {
            failing = !deliver(&exporter, traces, &counts, failing).await;
        }
        for tell in waiting {
            // Whoever does not wait any more needs no answer.
            let _ = tell.send(());
        }
    }
}

fn sorted(items: impl Iterator<Item = Item>) -> (Vec<Trace>, Vec<oneshot::Sender<()>>) {
    let (mut traces, mut waiting) = (Vec::new(), Vec::new());
    for item in items {
        match item {
            Item::Trace(trace) => traces.push(trace),
            Item::Done(tell) => waiting.push(tell),
        }
    }
    (traces, waiting)
}

/// Whether the receiver took them. The first failure after a success is worth a line, and so is the
/// first success after that.
async fn deliver(
    exporter: &SpanExporter,
    traces: Vec<Trace>,
    counts: &TraceCounts,
    failing: bool,
) -> bool {
    let count = u64::try_from(traces.len()).unwrap_or(u64::MAX);
    let spans = traces.into_iter().flat_map(spans_of).collect();
    match exporter.export(spans).await {
        Ok(()) => {
            counts.exported.inc_by(count);
            if failing {
                tracing::info!("traces are exported again");
            }
            true
        }
        Err(error) => {
            counts.dropped.inc_by(count);
            if failing {
                tracing::debug!(count, error = %error, "traces were dropped");
            } else {
                tracing::warn!(count, error = %error, "traces cannot be exported and are dropped");
            }
            false
        }
    }
}
