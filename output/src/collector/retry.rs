//! Calls on the archive are repeated until they succeed: nothing is dropped.

use std::time::Duration;

use super::stats::Stats;
use crate::archive::Error;

/// How long to wait after so many failures in a row: a fifth of a second, doubling to five seconds.
pub(crate) fn delay(failures: u32) -> Duration {
    const FIRST: u64 = 200;
    const LONGEST: u64 = 5_000;
    let millis = FIRST.saturating_mul(1 << failures.min(16)).min(LONGEST);
    Duration::from_millis(millis)
}

/// Failures in a row of one task.
#[derive(Debug, Default)]
pub(crate) struct Failures(u32);

impl Failures {
    /// Counts and logs a failure; gives how long to wait.
    pub(crate) fn count(&mut self, stats: &Stats, error: &Error) -> Duration {
        stats.count_error(error.class());
        // The first, and then now and then: an archive that is away has every box say so.
        if self.0.is_power_of_two() || self.0 == 0 {
            tracing::warn!(class = error.class(), error = %error, failures = self.0 + 1, "the archive did not take output; trying again");
        }
        let delay = delay(self.0);
        self.0 = self.0.saturating_add(1);
        delay
    }

    pub(crate) const fn reset(&mut self) {
        self.0 = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_a_bound() {
        let delays = [0, 1, 2, 4, 5, 100].map(|failures| delay(failures).as_millis());
        assert_eq!(delays, [200, 400, 800, 3_200, 5_000, 5_000]);
    }
}
