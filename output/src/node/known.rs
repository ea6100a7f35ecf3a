//! What is known of one pod that is held.

use std::sync::Arc;
use std::time::Duration;

use boxes_crds::OutputStatus;
use k8s_openapi::api::core::v1::Pod;
use tokio::time::Instant;

use crate::collector::{Assignment, Ended};

/// Between two calls about a pod: at first, and at last.
const SOON: Duration = Duration::from_secs(2);
const LATER: Duration = Duration::from_secs(30);
/// Between two looks whether a Box is still there whose pod is not being deleted: it may have been
/// deleted without its pod.
const SELDOM: Duration = Duration::from_mins(10);

/// A pod that is held.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) pod: Arc<Pod>,
    pub(crate) assignment: Assignment,
    /// Whether the pod is gone from the API server.
    pub(crate) vanished: bool,
    pub(crate) stage: Stage,
    /// Whether the API server is being asked about it.
    pub(crate) out: bool,
    due: Instant,
    tries: u32,
}

/// How far a pod is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stage {
    Collecting,
    /// Nothing more comes of it, and this is to be said.
    Releasing(Option<OutputStatus>),
}

impl Known {
    pub(crate) fn new(pod: Pod, assignment: Assignment) -> Self {
        Self {
            pod: Arc::new(pod),
            assignment,
            vanished: false,
            stage: Stage::Collecting,
            out: false,
            due: Instant::now(),
            tries: 0,
        }
    }

    /// The pod as it is now. Whose it is was confirmed once; a pod that says otherwise since then was
    /// tampered with.
    pub(crate) fn update(&mut self, pod: Pod, assignment: Assignment) {
        let was_leaving = self.is_leaving();
        self.pod = Arc::new(pod);
        self.vanished = false;
        if self.assignment.wanted {
            let name = std::mem::take(&mut self.assignment.name);
            self.assignment = Assignment {
                name,
                wanted: true,
                ..assignment
            };
        } else {
            self.assignment = assignment;
        }
        if self.is_leaving() && !was_leaving {
            self.now();
        }
    }

    pub(crate) fn is_collected(&self) -> bool {
        self.stage == Stage::Collecting
    }

    pub(crate) fn vanish(&mut self) {
        self.vanished = true;
        if self.assignment.ended == Ended::No {
            self.assignment.ended = Ended::Unknown;
        }
        self.now();
    }

    pub(crate) fn enter(&mut self, stage: Stage) {
        if self.stage != stage {
            self.stage = stage;
            self.now();
        }
    }

    /// Somebody wants its output.
    pub(crate) fn confirm(&mut self) {
        self.assignment.wanted = true;
        if self.is_leaving() {
            self.again();
        } else {
            self.due = Instant::now() + SELDOM;
        }
    }

    pub(crate) fn is_due(&self, now: Instant) -> bool {
        !self.out && self.due <= now
    }

    /// Asks again, later each time.
    pub(crate) fn again(&mut self) {
        self.due = Instant::now() + LATER.min(SOON * (1 << self.tries.min(8)));
        self.tries += 1;
    }

    fn now(&mut self) {
        self.due = Instant::now();
        self.tries = 0;
    }

    /// Whether the pod is gone or is being deleted.
    pub(crate) fn is_leaving(&self) -> bool {
        self.vanished || self.pod.metadata.deletion_timestamp.is_some()
    }
}
