//! What a run found: a table for people, a file for machines.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::figures::{Figure, Goal};
use super::meter::round;
use super::processes;
use super::run::Options;
use super::table::table;

/// So many CPUs may be busy with what has no part in the benchmark.
pub(super) const QUIET: f64 = 0.2;

/// What was found so far.
#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    machine: Value,
    figures: Vec<Figure>,
    details: Map<String, Value>,
}

#[derive(Deserialize, Default)]
struct Committed {
    figures: Vec<Figure>,
}

impl Report {
    /// Adds a figure without a goal.
    pub(super) fn figure(&mut self, name: impl Into<String>, unit: &str, value: f64) {
        self.add(name.into(), unit, value, None);
    }

    /// Adds a figure that is to be so much or less.
    pub(super) fn at_most(&mut self, name: impl Into<String>, unit: &str, value: f64, bound: f64) {
        self.add(name.into(), unit, value, Some(Goal::AtMost(bound)));
    }

    /// Adds a figure that is to be so much or more.
    pub(super) fn at_least(&mut self, name: impl Into<String>, unit: &str, value: f64, bound: f64) {
        self.add(name.into(), unit, value, Some(Goal::AtLeast(bound)));
    }

    fn add(&mut self, name: String, unit: &str, value: f64, goal: Option<Goal>) {
        self.figures.push(Figure {
            name,
            unit: unit.to_owned(),
            value: round(value),
            goal,
        });
    }

    /// Adds what is too much for the table.
    pub(super) fn detail(&mut self, scenario: impl Into<String>, detail: Value) {
        self.details.insert(scenario.into(), detail);
    }

    pub(super) fn note_machine(&mut self, busy: f64, other_boxes: usize) {
        let cpus = std::thread::available_parallelism().map_or(0, usize::from);
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        self.machine = json!({
            "cpus": cpus,
            "kernel": kernel.trim().split('-').next(),
            "cpus_busy_before": round(busy),
            "other_boxes": other_boxes,
        });
    }

    /// The scenarios during which, or directly before which, other programs were at work, and how many
    /// CPUs those used.
    fn disturbed(&self) -> impl Iterator<Item = (&String, f64)> {
        let all = self.details.iter();
        let known = all.filter_map(|(name, detail)| {
            let during = detail.get("cpus_busy_for_others");
            let cpus = during
                .or_else(|| detail.get("cpus_busy_before"))?
                .as_f64()?;
            Some((name, cpus))
        });
        known.filter(|(_, cpus)| *cpus > QUIET)
    }

    /// Prints the table and writes the file.
    pub(super) fn finish(&self, options: &Options) -> Result<()> {
        let last = committed(&options.last)?;
        let mut file = json!({
            "taken": jiff::Timestamp::now().strftime("%FT%TZ").to_string(),
            "revision": options.revision,
        });
        merge(&mut file, serde_json::to_value(self)?);
        let text = format!("{file:#}\n");
        fs::write(&options.output, text)
            .with_context(|| format!("cannot write {}", options.output.display()))?;
        let mut out = std::io::stdout().lock();
        writeln!(out, "\n{}", table(&self.figures, &last.figures))?;
        for (scenario, cpus) in self.disturbed() {
            let line = "so its figures are no good: others kept";
            writeln!(out, "{scenario} was disturbed, {line} {cpus:.1} CPUs busy")?;
        }
        writeln!(out, "All of it: {}", options.output.display())?;
        let (from, to) = (options.output.display(), options.last.display());
        writeln!(
            out,
            "To make these the committed figures, after a whole run on an idle machine:"
        )?;
        writeln!(out, "  cp {from} {to} && git add {to}")?;
        Ok(())
    }
}

fn merge(into: &mut Value, from: Value) {
    if let (Some(into), Value::Object(from)) = (into.as_object_mut(), from) {
        into.extend(from);
    }
}

/// The committed figures; none when there is no such file.
fn committed(path: &Path) -> Result<Committed> {
    match fs::read_to_string(path) {
        Ok(text) => serde_json::from_str(&text)
            .with_context(|| format!("cannot understand {}", path.display())),
        Err(_) => Ok(Committed::default()),
    }
}

/// How many CPUs are busy while the benchmark does nothing.
pub(super) async fn busy_before() -> Result<f64> {
    let window = Duration::from_secs(2);
    let before = processes::cpu_of_all()?;
    tokio::time::sleep(window).await;
    let used = processes::cpu_of_all()?.saturating_sub(before);
    Ok(used.as_secs_f64() / window.as_secs_f64())
}
