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
        if is_told(self.0) {
            tell(error, self.0 + 1);
        }
        let delay = delay(self.0);
        self.0 = self.0.saturating_add(1);
        delay
    }

    pub(crate) const fn reset(&mut self) {
        self.0 = 0;
    }
}

/// How many failures five minutes have.
const FIVE_MINUTES: u32 = 60;

/// The first failures, and then one now and then: an archive that is away has every box say so.
fn is_told(before: u32) -> bool {
    before < 2 || before.is_power_of_two() || before.is_multiple_of(FIVE_MINUTES)
}

fn tell(error: &Error, failures: u32) {
    match error {
        Error::Corrupt { what, message } => {
            tracing::error!(
                object = what,
                reason = message,
                failures,
                "the archive is corrupt; this output waits until somebody repairs or removes the object"
            );
        }
        error => {
            tracing::warn!(class = error.class(), error = %error, failures, "the archive did not take output; trying again");
        }
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
    #[test]
    fn failures_are_told_less_and_less_and_never_not_at_all() {
        let told: Vec<u32> = (0..200).filter(|before| is_told(*before)).collect();
        assert_eq!(told, [0, 1, 2, 4, 8, 16, 32, 60, 64, 120, 128, 180]);
    }
}
