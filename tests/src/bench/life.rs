//! The moments of one Box or bare pod, as the benchmark's watches showed them.

use std::time::{Duration, Instant};

/// When each thing was first seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Life {
    /// Just before the request that made it.
    pub(super) created: Instant,
    /// The pod reports that the command's container terminated.
    pub(super) pod_ended: Option<Instant>,
    /// The Box has its reason.
    pub(super) box_ended: Option<Instant>,
    /// The Box says that it is cleaned up.
    pub(super) cleaned_up: Option<Instant>,
    /// The pod is gone.
    pub(super) pod_gone: Option<Instant>,
    /// The Box ended in another way than the task did.
    pub(super) wrong: bool,
}

impl Life {
    pub(super) fn new(created: Instant) -> Self {
        Self {
            created,
            pod_ended: None,
            box_ended: None,
            cleaned_up: None,
            pod_gone: None,
            wrong: false,
        }
    }

    /// When the Box was recorded, cleaned up, and its pod gone.
    pub(super) fn done(&self) -> Option<Instant> {
        self.box_ended?;
        Some(self.cleaned_up?.max(self.pod_gone?))
    }

    /// From the pod's end to the Box's. Watches are two, so the second may be seen first.
    pub(super) fn lag(&self) -> Option<Duration> {
        Some(self.box_ended?.saturating_duration_since(self.pod_ended?))
    }

    /// From its making to all done.
    pub(super) fn whole(&self) -> Option<Duration> {
        Some(self.done()?.saturating_duration_since(self.created))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_is_done_when_all_of_it_is() {
        let start = Instant::now();
        let at = |ms| Some(start + Duration::from_millis(ms));
        let mut life = Life::new(start);
        (life.pod_ended, life.box_ended, life.cleaned_up) = (at(10), at(14), at(20));
        assert_eq!(life.done(), None);
        life.pod_gone = at(30);
        assert_eq!(life.whole(), Some(Duration::from_millis(30)));
        assert_eq!(life.lag(), Some(Duration::from_millis(4)));
    }
}
