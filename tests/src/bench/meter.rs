//! What something cost: CPU time by program, and requests.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::audit::{self, Requests};
use super::processes;
use super::run::Bench;
use super::stats::{milliseconds, real};

/// The CPU time of all programs together, named here or not.
const ALL: &str = "all of the machine";

/// The programs of the cluster that are measured.
const PROGRAMS: [&str; 6] = [
    "kube-apiserver",
    "etcd",
    "kube-scheduler",
    "kube-controller-manager",
    "kubelet",
    "containerd",
];

/// A measurement that has begun.
#[derive(Debug)]
pub(super) struct Meter {
    began: Instant,
    cpu: BTreeMap<&'static str, Duration>,
    log_at: u64,
}

/// What it found.
#[derive(Debug)]
pub(super) struct Spent {
    pub(super) time: Duration,
    cpu: BTreeMap<&'static str, Duration>,
    pub(super) requests: Requests,
}

impl Meter {
    pub(super) fn start(bench: &Bench) -> Result<Self> {
        Ok(Self {
            began: Instant::now(),
            cpu: cpu_by_program(bench)?,
            log_at: audit::end_of(&bench.audit_log)?,
        })
    }

    pub(super) fn stop(self, bench: &Bench, namespace: &str) -> Result<Spent> {
        let time = self.began.elapsed();
        let mut cpu = cpu_by_program(bench)?;
        for (name, used) in &mut cpu {
            *used = used.saturating_sub(self.cpu.get(name).copied().unwrap_or_default());
        }
        let requests = Requests::read(&bench.audit_log, self.log_at, namespace)?;
        Ok(Spent {
            time,
            cpu,
            requests,
        })
    }
}

impl Spent {
    /// A program's CPU time for each of so many objects, in milliseconds.
    pub(super) fn cpu_each(&self, program: &str, objects: usize) -> f64 {
        let used = self.cpu.get(program).copied().unwrap_or_default();
        milliseconds(used) / real(objects)
    }

    /// The controller's writes for each of so many objects.
    pub(super) fn writes_each(&self, objects: usize) -> f64 {
        let asked: usize = self.requests.writes().map(|(_, count)| count.asked).sum();
        real(asked) / real(objects)
    }

    /// How many CPUs programs that have no part in this kept busy.
    fn others(&self) -> f64 {
        let parts: Duration = self
            .cpu
            .iter()
            .filter(|(name, _)| **name != ALL)
            .map(|(_, used)| *used)
            .sum();
        let all = self.cpu.get(ALL).copied().unwrap_or_default();
        all.saturating_sub(parts).as_secs_f64() / self.time.as_secs_f64()
    }

    /// All of it for each object, for the file.
    pub(super) fn details(&self, objects: usize) -> Value {
        let each = |count: usize| round(real(count) / real(objects));
        let cpu: Map<_, _> = self
            .cpu
            .keys()
            .map(|name| {
                let used = round(self.cpu_each(name, objects));
                ((*name).to_owned(), used.into())
            })
            .collect();
        let mut requests: Map<String, Value> = Map::new();
        for (kind, count) in self.requests.all() {
            let line = format!("{}: {} {}", kind.who, kind.verb, kind.resource);
            let refused = each(count.refused);
            requests.insert(
                line,
                json!({"asked": each(count.asked), "refused": refused}),
            );
        }
        json!({
            "seconds": round(self.time.as_secs_f64()),
            "cpus_busy_for_others": round(self.others()),
            "cpu_ms_each": cpu,
            "requests_each": requests,
        })
    }
}

/// To four digits after the point, so that the file can be read.
pub(super) fn round(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}

fn cpu_by_program(bench: &Bench) -> Result<BTreeMap<&'static str, Duration>> {
    let own = i32::try_from(std::process::id())?;
    let mut pids = vec![("benchmark", own)];
    pids.extend(bench.kwok.as_ref().map(|kwok| ("kwok", kwok.pid())));
    pids.extend(
        bench
            .controller
            .as_ref()
            .map(|controller| ("controller", controller.pid())),
    );
    for name in PROGRAMS {
        pids.extend(bench.programs.get(name).map(|pid| (name, *pid)));
    }
    let mut cpu = BTreeMap::from([(ALL, processes::cpu_of_all()?)]);
    for (name, pid) in pids {
        cpu.insert(name, processes::cpu(pid)?);
    }
    Ok(cpu)
}
