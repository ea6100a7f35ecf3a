//! Files that were read to their end and let go: whether the runtime was done with them.

use std::time::{Duration, Instant};

use super::held::{Sink, missing};
use super::source::Source;
use super::writers::Ask;
use crate::archive::GapReason;

/// How long a file is watched after there was a later one, where nobody can tell whether the runtime has
/// closed it. It logs what it had in hand when a file was renamed, and a node whose disk is busy makes it
/// wait for that.
const WATCHED: Duration = Duration::from_secs(10);
/// How many files are watched: a backlog has more, of which the older ones are long done.
const MOST: usize = 2;

/// What was let go last.
#[derive(Debug, Default)]
pub(crate) struct Late(Vec<(Source, Instant)>);

impl Late {
    /// Watches a file that there was a later one of since then, if it may grow.
    pub(crate) fn watch(
        &mut self,
        mut source: Source,
        since: Instant,
        ask: Ask,
        sink: &mut impl Sink,
    ) {
        if source.is_written(ask) == Some(false) {
            // It may have grown after it was read and before it was closed.
            return tell(&mut source, sink);
        }
        self.0.push((source, since));
        if self.0.len() > MOST {
            self.0.remove(0);
        }
    }

    /// Tells what came too late: its place is before what was read since.
    pub(crate) fn check(&mut self, now: Instant, ask: Ask, sink: &mut impl Sink) {
        self.0.retain_mut(|(source, since)| {
            let may_grow = source
                .is_written(ask)
                .unwrap_or_else(|| now.saturating_duration_since(*since) < WATCHED);
            tell(source, sink);
            may_grow
        });
    }

    /// Whether somebody writes to one of them.
    pub(crate) fn is_any_written(&self, ask: Ask) -> bool {
        let mut all = self.0.iter();
        all.any(|(source, _)| source.is_written(ask) == Some(true))
    }
}

/// Tells what came to a file after it was read.
fn tell(source: &mut Source, sink: &mut impl Sink) {
    if let Some(bytes) = source.pass() {
        sink.gap(missing(GapReason::RotatedAway, Some(bytes)));
    }
}
