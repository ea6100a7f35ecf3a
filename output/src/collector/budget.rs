//! How much output may wait in memory, over all boxes.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes that a permit stands for.
const UNIT: usize = 4096;

/// A bound on the bytes that were read and are not stored.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Semaphore>);

/// A part of the budget; given back when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Share(Option<OwnedSemaphorePermit>);

impl Budget {
    /// A budget of so many bytes.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(units(bytes) as usize)))
    }

    /// Takes so many bytes if they are free.
    pub(crate) fn try_take(&self, bytes: usize) -> Option<Share> {
        let permit = self.0.clone().try_acquire_many_owned(units(bytes));
        permit.ok().map(|permit| Share(Some(permit)))
    }

    /// Waits in line for so many bytes.
    pub(crate) async fn take(&self, bytes: usize) -> Share {
        // The semaphore is never closed.
        Share(self.0.clone().acquire_many_owned(units(bytes)).await.ok())
    }
}

impl Share {
    /// How many bytes it is.
    pub(crate) fn bytes(&self) -> usize {
        self.0
            .as_ref()
            .map_or(0, |permit| permit.num_permits() * UNIT)
    }

    /// Adds another part.
    pub(crate) fn merge(&mut self, other: Self) {
        match (&mut self.0, other.0) {
            (Some(mine), Some(other)) => mine.merge(other),
            (mine @ None, other) => *mine = other,
            (Some(_), None) => {}
        }
    }

    /// Gives back all but so many bytes.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        if let Some(permit) = &mut self.0 {
            let spare = permit.num_permits().saturating_sub(units(bytes) as usize);
            drop(permit.split(spare));
        }
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_given_back() {
        let budget = Budget::new(10 * UNIT);
        let mut share = budget.try_take(8 * UNIT).unwrap();
        assert!(budget.try_take(3 * UNIT).is_none());
        share.shrink_to(1);
        share.merge(budget.try_take(9 * UNIT).unwrap());
        assert!(budget.try_take(1).is_none());
        drop(share);
        assert!(budget.try_take(10 * UNIT).is_some());
    }
}
