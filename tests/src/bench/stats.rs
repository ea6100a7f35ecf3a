//! Quantiles.

use std::time::Duration;

use serde::Serialize;

/// Times in milliseconds, sorted.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Times(Vec<f64>);

/// Some quantiles of them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Quantiles {
    pub(super) p50: f64,
    pub(super) p90: f64,
    pub(super) p99: f64,
    pub(super) max: f64,
}

impl Times {
    pub(super) fn new(times: impl IntoIterator<Item = Duration>) -> Self {
        let mut sorted: Vec<_> = times.into_iter().map(milliseconds).collect();
        sorted.sort_by(f64::total_cmp);
        Self(sorted)
    }

    /// The nearest rank: the smallest time that at least so many percent do not exceed.
    pub(super) fn percent(&self, percent: usize) -> f64 {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0.get(rank - 1).copied().unwrap_or(f64::NAN)
    }

    pub(super) fn quantiles(&self) -> Quantiles {
        Quantiles {
            p50: self.percent(50),
            p90: self.percent(90),
            p99: self.percent(99),
            max: self.percent(100),
        }
    }
}

pub(super) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// A count, to calculate with.
pub(super) fn real(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}

/// The middle one of an odd number of values, else the upper of the two in the middle.
pub(super) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<_> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_times_that_were_seen() {
        let times = Times::new((1..=150).rev().map(Duration::from_millis));
        let seen = [50, 99, 100].map(|percent| format!("{:.0}", times.percent(percent)));
        assert_eq!(seen, ["75", "149", "150"]);
        assert!(Times::new([]).percent(50).is_nan());
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(format!("{:.0}", median([3.0, 1.0, 2.0])), "2");
    }
}
