//! The life of one box's output, from the first file to the manifest.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinError;
use tokio::time::{Instant, sleep, timeout};

use super::assignment::{Assignment, Ended};
use super::budget::{Budget, Share};
use super::retry::{Failures, delay};
use super::stats::Stats;
use super::turn::Pair;
use crate::archive::{Archive, Error, Flushed, Manifest, Result, Resumed, Writer};
use crate::tail::{LogRoot, Progress, Tail, is_ours};

/// How often a log is looked at that had nothing new.
const POLL: Duration = Duration::from_millis(100);
/// How long output waits for more before it is stored.
const FLUSH: Duration = Duration::from_millis(250);
/// A segment is closed when it has so many bytes.
const SEGMENT: usize = 1 << 20;
/// How often files are looked at while the archive does not answer.
const LOOK: Duration = Duration::from_secs(1);
/// How long a container is read whose pod went before its end was known: it may still be dying.
const VANISHED: Duration = Duration::from_secs(30);
/// How many bytes of log may be held, over all boxes, that the kubelet has removed: they take the node's
/// disk, and removing more of them frees nothing.
const REMOVED: i64 = 2 << 30;
/// After so many failures in a row to read a log that has ended, the rest is a gap.
const TRIES: u32 = 15;

/// What all tasks share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) archive: Archive,
    pub(crate) logs: Arc<LogRoot>,
    pub(crate) budget: Budget,
    /// Turns that read logs.
    pub(crate) reading: Semaphore,
    /// Calls on the archive, which may hang: they are not to take the threads that read.
    pub(crate) storing: Semaphore,
    /// How many files all tasks together may hold open.
    pub(crate) files: i64,
    pub(crate) stats: Arc<Stats>,
}

impl Shared {
    /// Whether files are to be let go rather than held.
    pub(crate) fn is_crowded(&self) -> bool {
        self.stats.held.get() >= self.files || self.stats.removed_bytes.get() >= REMOVED
    }
}

/// Collects until the manifest is durable. Dropping it stops it anywhere.
pub(crate) async fn collect(
    shared: Arc<Shared>,
    mut assignment: watch::Receiver<Assignment>,
    looked: &AtomicBool,
) -> Manifest {
    let mut failures = Failures::default();
    loop {
        match Task::new(&shared, &mut assignment, looked).run().await {
            Ok(Some(manifest)) => return manifest,
            // Another writer was here: what it stored is where this one goes on.
            Ok(None) => tracing::info!("another collector was here; going on from what it stored"),
            Err(error) => sleep(failures.count(&shared.stats, &error)).await,
        }
    }
}

/// One try.
struct Task<'a> {
    shared: &'a Arc<Shared>,
    assignment: &'a mut watch::Receiver<Assignment>,
    /// Set once it has looked for files.
    looked: &'a AtomicBool,
    failures: Failures,
    /// Since when the container is known to have ended.
    ended: Option<Instant>,
    /// Since when output waits.
    waiting: Option<Instant>,
    share: Share,
    /// For the next turn, after a wait in line.
    reserved: Option<Share>,
    /// How often in a row a log could not be read, and how often for a reason that is the log's.
    log_errors: u32,
    log_failures: u32,
    held: Counted<'a>,
    removed: Counted<'a>,
}

impl<'a> Task<'a> {
    fn new(
        shared: &'a Arc<Shared>,
        assignment: &'a mut watch::Receiver<Assignment>,
        looked: &'a AtomicBool,
    ) -> Self {
        Self {
            assignment,
            looked,
            failures: Failures::default(),
            ended: None,
            waiting: None,
            share: Share::default(),
            reserved: None,
            log_errors: 0,
            log_failures: 0,
            held: Counted(&shared.stats.held, 0),
            removed: Counted(&shared.stats.removed_bytes, 0),
            shared,
        }
    }

    async fn run(mut self) -> Result<Option<Manifest>> {
        let folder = self.assignment.borrow().folder.clone();
        let mut tail = Tail::new(self.shared.logs.clone(), &folder);
        let writer = match self.resume(&mut tail).await {
            Resumed::Done(manifest) => return Ok(Some(*manifest)),
            Resumed::At(writer) => writer,
        };
        let started = self.assignment.borrow().started;
        tail.resume(writer.position().cloned(), started);
        self.follow(Pair { tail, writer }).await
    }

    /// Finds out how far the archive is. Files are opened meanwhile, however long that takes.
    async fn resume(&mut self, tail: &mut Tail) -> Resumed {
        while !self.assignment.borrow().wanted {
            self.look(tail);
            self.pause(LOOK).await;
        }
        loop {
            let (run, label) = {
                let assignment = self.assignment.borrow();
                (assignment.run.clone(), assignment.label())
            };
            let shared = self.shared;
            let archive = &shared.archive;
            let resuming = async {
                let _turn = shared.storing.acquire().await;
                let resumed = Writer::resume(archive, &run).await?;
                if let Resumed::At(_) = resumed {
                    archive.put_label(&label).await?;
                }
                Ok::<_, Error>(resumed)
            };
            let error = match self.looking(tail, resuming).await {
                Ok(resumed) => return resumed,
                Err(error) => error,
            };
            let pause = self.failures.count(&self.shared.stats, &error);
            self.looking(tail, sleep(pause)).await;
        }
    }

    /// Does something that takes time, and opens files meanwhile.
    async fn looking<T>(&mut self, tail: &mut Tail, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            self.look(tail);
            if let Ok(done) = timeout(LOOK, &mut work).await {
                return done;
            }
        }
    }

    fn look(&mut self, tail: &mut Tail) {
        tail.crowd(self.shared.is_crowded());
        if let Err(error) = tail.look(Instant::now().into_std()) {
            self.note_log_error(&error);
        }
        self.count(tail);
        self.looked.store(true, Ordering::Relaxed);
    }

    fn count(&mut self, tail: &Tail) {
        self.held.set(tail.held() as u64);
        self.removed.set(tail.removed());
    }

    async fn follow(mut self, mut pair: Pair) -> Result<Option<Manifest>> {
        loop {
            let progress;
            (pair, progress) = self.turn(pair).await?;
            self.note_end(&pair.tail);
            let drained = matches!(progress, Ok(Progress::Waiting)) && self.is_drained(&mut pair);
            if drained && !pair.writer.has_waiting() {
                return self.finish(pair, true).await;
            }
            if drained || self.is_due(&pair) {
                match self.flush(&mut pair).await {
                    Flushed::Stored => {}
                    Flushed::Overtaken => return Ok(None),
                }
            }
            match progress {
                Ok(Progress::Read(_)) => self.forget_log_errors(),
                // Storing took time, in which more may have come.
                Ok(Progress::Waiting) if drained => {}
                Ok(Progress::Waiting) => {
                    self.forget_log_errors();
                    self.pause(POLL).await;
                }
                Err(error) => {
                    self.note_log_error(&error);
                    if self.ended.is_some() && self.log_failures >= TRIES {
                        return self.finish(pair, false).await;
                    }
                    self.pause(delay(self.log_errors)).await;
                }
            }
        }
    }

    /// Reads on, on a thread for that, when the budget allows it.
    async fn turn(&mut self, mut pair: Pair) -> Result<(Pair, io::Result<Progress>)> {
        let turn = self.shared.reading.acquire().await;
        let reserved = self.reserved.take();
        let Some(mut share) = reserved.or_else(|| self.shared.budget.try_take(pair.wants())) else {
            drop(turn);
            return self.wait_for_budget(pair).await;
        };
        let (before, most) = (pair.writer.waiting(), share.bytes());
        let (now, shared) = (Instant::now().into_std(), self.shared.clone());
        pair.tail.crowd(shared.is_crowded());
        let reading = tokio::task::spawn_blocking(move || {
            let progress = pair.read(now, most, &shared.stats);
            let waiting = pair.writer.waiting();
            let closed = if waiting < SEGMENT {
                Ok(())
            } else {
                pair.writer.close()
            };
            closed.map(|()| (pair, progress, waiting - before))
        });
        let (pair, progress, read) = reading.await.map_err(|error| broken(&error))??;
        drop(turn);
        share.shrink_to(read);
        self.share.merge(share);
        self.count(&pair.tail);
        if pair.writer.has_waiting() {
            self.waiting.get_or_insert_with(Instant::now);
        }
        Ok((pair, progress))
    }

    /// What waits is stored first, which frees a part of the budget; else others are to free some.
    async fn wait_for_budget(&mut self, mut pair: Pair) -> Result<(Pair, io::Result<Progress>)> {
        if pair.writer.has_waiting() {
            self.waiting = Some(Instant::now() - FLUSH);
            return Ok((pair, Ok(Progress::Read(0))));
        }
        let (budget, wants) = (self.shared.budget.clone(), pair.wants());
        let share = self.looking(&mut pair.tail, budget.take(wants)).await;
        self.reserved = Some(share);
        Ok((pair, Ok(Progress::Read(0))))
    }

    fn is_due(&self, pair: &Pair) -> bool {
        let old = |since: Instant| since.elapsed() >= FLUSH;
        pair.writer.is_closed() || self.waiting.is_some_and(old)
    }

    /// Stores what waits, however long that takes.
    async fn flush(&mut self, pair: &mut Pair) -> Flushed {
        let oldest = pair.writer.oldest();
        loop {
            let (shared, Pair { tail, writer }) = (self.shared, &mut *pair);
            let flushing = async {
                let _turn = shared.storing.acquire().await;
                writer.flush().await
            };
            match self.looking(tail, flushing).await {
                Ok(flushed) => {
                    self.stored(oldest);
                    return flushed;
                }
                Err(error) => {
                    let pause = self.failures.count(&self.shared.stats, &error);
                    self.looking(&mut pair.tail, sleep(pause)).await;
                }
            }
        }
    }

    fn stored(&mut self, oldest: Option<Timestamp>) {
        self.failures.reset();
        self.waiting = None;
        self.share = Share::default();
        self.shared.stats.segments.inc();
        let age = oldest.and_then(|time| SystemTime::now().duration_since(time.into()).ok());
        if let Some(age) = age {
            self.shared.stats.count_lag(age);
        }
    }

    /// Notes when the container is first known to have ended: tries to read count from then.
    fn note_end(&mut self, tail: &Tail) {
        if self.end(tail) == Ended::No {
            self.ended = None;
        } else if self.ended.is_none() {
            self.ended = Some(Instant::now());
            self.forget_log_errors();
        }
    }

    fn is_drained(&self, pair: &mut Pair) -> bool {
        let wait = match self.end(&pair.tail) {
            Ended::Unknown => VANISHED,
            Ended::No | Ended::Ran | Ended::NeverRan => Duration::ZERO,
        };
        self.ended
            .is_some_and(|ended| pair.tail.is_drained((ended + wait).into_std()))
    }

    fn end(&self, tail: &Tail) -> Ended {
        self.assignment.borrow().end(tail.was_there())
    }

    /// Writes the manifest, however long that takes.
    async fn finish(mut self, mut pair: Pair, readable: bool) -> Result<Option<Manifest>> {
        let (ended, now) = (self.end(&pair.tail), Instant::now().into_std());
        if let Err(error) = pair.end(ended, readable, now, &self.shared.stats) {
            self.note_log_error(&error);
            // The rest of a last line: what is not readable is told.
            let _ = pair.end(ended, false, now, &self.shared.stats);
        }
        loop {
            let turn = self.shared.storing.acquire().await;
            let finished = pair.writer.finish().await;
            drop(turn);
            match finished {
                Ok(manifest) => return Ok(manifest),
                Err(error) => sleep(self.failures.count(&self.shared.stats, &error)).await,
            }
        }
    }

    /// Waits, but not on when the container ends.
    async fn pause(&mut self, time: Duration) {
        let changed = self.assignment.changed();
        if let Ok(Err(_)) = timeout(time, changed).await {
            // Nobody will say more: what is known holds.
            sleep(time).await;
        }
    }

    /// What was before does not count any more.
    fn forget_log_errors(&mut self) {
        (self.log_errors, self.log_failures) = (0, 0);
    }

    fn note_log_error(&mut self, error: &io::Error) {
        self.shared.stats.count_error("log");
        if self.log_errors == 0 {
            tracing::warn!(error = %error, "a log cannot be read; trying again");
        }
        self.log_errors = self.log_errors.saturating_add(1);
        // It does not count against a log that others hold too many files, or that none may be read.
        if !is_ours(error) {
            self.log_failures = self.log_failures.saturating_add(1);
        }
    }
}

/// The thread that reads has panicked: the task begins anew from what is stored.
fn broken(error: &JoinError) -> Error {
    Error::Unavailable {
        message: format!("reading a log failed: {error}"),
    }
}

/// What one task adds to a figure of all.
struct Counted<'a>(&'a Gauge<i64, AtomicI64>, i64);

impl Counted<'_> {
    fn set(&mut self, count: u64) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.0.inc_by(count - self.1);
        self.1 = count;
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.set(0);
    }
}
