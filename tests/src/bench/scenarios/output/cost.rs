//! What output costs: the collector's memory, and the CPU time of those who take part.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use super::super::super::meter::round;
use super::super::super::processes;
use super::super::super::run::Bench;
use crate::harness::{COLLECTOR, LOG_API, NAMESPACE, OUTPUT_READER};

/// The cluster's programs that output goes through.
const PROGRAMS: [&str; 3] = ["containerd", "kubelet", "kube-apiserver"];

/// A measurement that has begun.
#[derive(Debug)]
pub(super) struct Cost {
    began: Instant,
    collector: i32,
    pids: Vec<(&'static str, i32)>,
    /// The collector's memory in RAM, in MiB.
    resident: f64,
    cpu: BTreeMap<&'static str, Duration>,
    all: Duration,
}

/// What it found.
#[derive(Debug)]
pub(super) struct Spent {
    pub(super) time: Duration,
    /// The collector's CPU time.
    pub(super) collector: Duration,
    /// The most memory that the collector had in RAM, in MiB.
    pub(super) peak: f64,
    /// What it had before.
    pub(super) resident: f64,
    cpu: BTreeMap<&'static str, Duration>,
    all: Duration,
}

impl Cost {
    pub(super) async fn start(bench: &Bench) -> Result<Self> {
        let collectors = pids_of(&bench.client, COLLECTOR, "boxes-collector").await?;
        let [collector] = collectors[..] else {
            bail!("{} collectors run on this machine", collectors.len());
        };
        let servers = pids_of(&bench.client, LOG_API, "boxes-log-api").await?;
        let known = |name| Some((name, *bench.programs.get(name)?));
        let mut pids: Vec<_> = PROGRAMS.into_iter().filter_map(known).collect();
        pids.push(("collector", collector));
        pids.extend(servers.into_iter().map(|pid| ("log API", pid)));
        let readers = pids_of(&bench.client, OUTPUT_READER, "boxes-log-api").await?;
        pids.extend(readers.into_iter().map(|pid| ("output reader", pid)));
        forget_the_peak(collector)?;
        Ok(Self {
            began: Instant::now(),
            collector,
            resident: processes::memory(collector)?.resident,
            cpu: cpu_of(&pids)?,
            pids,
            all: processes::cpu_of_all()?,
        })
    }

    /// Ends it. Fails when one of the programs has ended meanwhile.
    pub(super) fn stop(self) -> Result<Spent> {
        let time = self.began.elapsed();
        let mut cpu = cpu_of(&self.pids)?;
        for (name, used) in &mut cpu {
            *used = used.saturating_sub(self.cpu.get(name).copied().unwrap_or_default());
        }
        Ok(Spent {
            time,
            collector: cpu.get("collector").copied().unwrap_or_default(),
            peak: processes::memory(self.collector)?.peak,
            resident: self.resident,
            cpu,
            all: processes::cpu_of_all()?.saturating_sub(self.all),
        })
    }
}

impl Spent {
    /// How many CPUs the collector kept busy.
    pub(super) fn cores(&self) -> f64 {
        self.collector.as_secs_f64() / self.time.as_secs_f64()
    }

    pub(super) fn details(&self) -> Value {
        let seconds = |time: &Duration| round(time.as_secs_f64());
        let cpu: BTreeMap<_, _> = self
            .cpu
            .iter()
            .map(|(it, used)| (it, seconds(used)))
            .collect();
        json!({
            "seconds": seconds(&self.time),
            "cpu_seconds": cpu,
            "cpu_seconds_of_all": seconds(&self.all),
            "collector_mib": {"before": round(self.resident), "peak": round(self.peak)},
        })
    }
}

/// The processes of a program in the installed pods with these labels.
async fn pids_of(client: &Client, labels: &str, program: &str) -> Result<Vec<i32>> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let list = pods.list(&ListParams::default().labels(labels)).await?;
    let uids = list.into_iter().filter_map(|pod| pod.uid());
    let found: Vec<_> = uids
        .flat_map(|uid| crate::harness::processes(&uid, program))
        .map(|pid| pid.as_raw_nonzero().get())
        .collect();
    ensure!(!found.is_empty(), "no {program} runs on this machine");
    Ok(found)
}

fn cpu_of(pids: &[(&'static str, i32)]) -> Result<BTreeMap<&'static str, Duration>> {
    let mut cpu = BTreeMap::new();
    for (name, pid) in pids {
        let used = processes::cpu(*pid).with_context(|| format!("the {name} has ended"))?;
        *cpu.entry(*name).or_default() += used;
    }
    Ok(cpu)
}

/// Lets the kernel's record of a process's most memory begin at what it has now.
fn forget_the_peak(pid: i32) -> Result<()> {
    fs::write(format!("/proc/{pid}/clear_refs"), "5").context("cannot reset the collector's peak")
}
