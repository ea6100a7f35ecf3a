//! All boxes of a node: one task each.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};

use super::assignment::{Assignment, Outcome};
use super::budget::Budget;
use super::collect::{Shared, collect};
use super::stats::Stats;
use crate::archive::{Archive, RunKey};
use crate::tail::{LogRoot, share_of_limit};

/// How many boxes read their logs at once, on a thread each.
pub const READING: usize = 16;
/// How many boxes wait for the archive at once. Each has up to
/// [`crate::archive::CALLS`] calls under way.
pub const STORING: usize = 16;

/// Collects the output of boxes.
#[derive(Debug)]
pub struct Collector {
    shared: Arc<Shared>,
    tasks: HashMap<RunKey, Task>,
    running: JoinSet<()>,
    outcomes: mpsc::UnboundedSender<Outcome>,
}

#[derive(Debug)]
struct Task {
    assignment: watch::Sender<Assignment>,
    /// Whether it looked for files.
    looked: Arc<AtomicBool>,
    abort: AbortHandle,
}

impl Collector {
    /// A collector from these logs to this archive. Outcomes come out of the receiver.
    #[must_use]
    pub fn new(
        logs: LogRoot,
        archive: Archive,
        budget: Budget,
    ) -> (Self, mpsc::UnboundedReceiver<Outcome>) {
        let (outcomes, receiver) = mpsc::unbounded_channel();
        let shared = Shared {
            archive,
            logs: Arc::new(logs),
            budget,
            reading: Semaphore::new(READING),
            storing: Semaphore::new(STORING),
            files: i64::try_from(share_of_limit()).unwrap_or(i64::MAX),
            stats: Arc::default(),
        };
        let collector = Self {
            shared: Arc::new(shared),
            tasks: HashMap::new(),
            running: JoinSet::new(),
            outcomes,
        };
        (collector, receiver)
    }

    /// What it counts.
    #[must_use]
    pub fn stats(&self) -> Arc<Stats> {
        self.shared.stats.clone()
    }

    /// Takes a box, or news of one. For one that is saved already, its outcome comes again.
    pub fn assign(&mut self, assignment: Assignment) {
        self.reap();
        if let Some(task) = self.tasks.get(&assignment.run) {
            task.assignment
                .send_if_modified(|known| known.update(assignment));
            return;
        }
        let run = assignment.run.clone();
        let (sender, receiver) = watch::channel(assignment);
        let (shared, outcomes) = (self.shared.clone(), self.outcomes.clone());
        let looked = Arc::<AtomicBool>::default();
        let task = one(shared, receiver, looked.clone(), outcomes);
        let abort = self.running.spawn(task);
        let task = Task {
            assignment: sender,
            looked,
            abort,
        };
        self.tasks.insert(run, task);
    }

    /// Lets a box go, at once.
    pub fn forget(&mut self, run: &RunKey) {
        if let Some(task) = self.tasks.remove(run) {
            task.abort.abort();
        }
        self.reap();
    }

    /// The runs that it works on, or worked on since they were assigned.
    pub fn runs(&self) -> impl Iterator<Item = &RunKey> {
        self.tasks.keys()
    }

    /// Whether it holds the files of all boxes that it was assigned, as far as there were any.
    #[must_use]
    pub fn holds_all(&self) -> bool {
        let looked = |task: &Task| task.looked.load(Ordering::Relaxed) || task.abort.is_finished();
        self.tasks.values().all(looked)
    }

    fn reap(&mut self) {
        while self.running.try_join_next().is_some() {}
        self.tasks.retain(|_, task| !task.abort.is_finished());
    }
}

async fn one(
    shared: Arc<Shared>,
    assignment: watch::Receiver<Assignment>,
    looked: Arc<AtomicBool>,
    outcomes: mpsc::UnboundedSender<Outcome>,
) {
    let present = Counted::new(&shared);
    let manifest = collect(shared.clone(), assignment.clone(), &looked).await;
    drop(present);
    shared.stats.count_outcome(&manifest);
    let assignment = assignment.borrow().clone();
    // Whoever takes outcomes may be gone: then the process ends.
    let _ = outcomes.send(Outcome {
        assignment,
        manifest,
    });
}

/// A box that is being collected.
struct Counted<'a>(&'a Shared);

impl<'a> Counted<'a> {
    fn new(shared: &'a Shared) -> Self {
        shared.stats.boxes.inc();
        Self(shared)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.stats.boxes.dec();
    }
}
