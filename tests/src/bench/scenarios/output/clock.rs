//! The clock that a box can read without a program of its own: the time since the machine's start.

use std::time::Duration;

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};

/// What the clock says now.
pub(super) fn now() -> Result<Duration> {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).context("no time")?;
    let nanoseconds = u32::try_from(time.tv_nsec).context("no time")?;
    Ok(Duration::new(seconds, nanoseconds))
}

/// The time in `/proc/uptime`: seconds with two digits, cut and not rounded.
pub(super) fn parse(line: &str) -> Result<Duration> {
    let time = line.trim().parse().ok();
    let time = time.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    time.with_context(|| format!("{line:?} is no time"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_clock_of_proc_uptime() {
        let text = std::fs::read_to_string("/proc/uptime").unwrap();
        let read = parse(text.split(' ').next().unwrap()).unwrap();
        let later = now().unwrap();
        assert!(later >= read && later < read + Duration::from_secs(5));
        assert!(parse("soon").is_err());
    }
}
