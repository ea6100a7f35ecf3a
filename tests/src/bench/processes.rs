//! What `/proc` says about processes.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

/// The CPU time that a process has used, in user mode and for it in the kernel.
pub(super) fn cpu(pid: i32) -> Result<Duration> {
    let stat = read(&format!("/proc/{pid}/stat"))?;
    ticks(&stat)
        .map(duration)
        .with_context(|| format!("cannot understand /proc/{pid}/stat"))
}

/// `utime` and `stime`: the 14th and the 15th field. The 2nd may hold anything, in parentheses.
fn ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(") ")?.1.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

/// The time that the machine's CPUs were busy for anybody.
pub(super) fn cpu_of_all() -> Result<Duration> {
    let stat = read("/proc/stat")?;
    let fields: Vec<u64> = stat
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .skip(1)
        .filter_map(|field| field.parse().ok())
        .collect();
    // user, nice, system; idle and iowait are not; irq and softirq.
    let busy = fields.iter().take(3).chain(fields.iter().skip(5).take(2));
    Ok(duration(busy.sum()))
}

fn duration(ticks: u64) -> Duration {
    let per_second = rustix::param::clock_ticks_per_second();
    Duration::from_millis(ticks * 1000 / per_second.max(1))
}

/// A process's memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Memory {
    /// In RAM now, in MiB.
    pub(super) resident: f64,
    /// In RAM at most so far, in MiB.
    pub(super) peak: f64,
}

pub(super) fn memory(pid: i32) -> Result<Memory> {
    let status = read(&format!("/proc/{pid}/status"))?;
    let field = |name: &str| mebibytes(&status, name).with_context(|| format!("no {name}"));
    Ok(Memory {
        resident: field("VmRSS:")?,
        peak: field("VmHWM:")?,
    })
}

fn mebibytes(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: f64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kibibytes / 1024.0)
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let stat = "7 (a ) b) S 1 2 3 4 5 6 7 8 9 10 30 12 0 0 20";
        assert_eq!(ticks(stat), Some(42));
    }

    #[test]
    fn memory_is_in_mebibytes() {
        let status = "VmHWM:\t    4096 kB\nVmRSS:\t    2048 kB\n";
        assert_eq!(mebibytes(status, "VmRSS:").map(f64::round), Some(2.0));
    }

    #[test]
    fn this_process_can_be_read() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(cpu(own).is_ok() && memory(own).unwrap().resident > 0.0);
        assert!(cpu_of_all().unwrap() >= cpu(own).unwrap());
    }
}
