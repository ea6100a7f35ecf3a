//! The supervisor, which is in every box: its size, its memory, and what it adds before the command
//! starts. Without a cluster: as the first process of a PID namespace of this machine.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::super::run::Bench;
use super::super::stats::Times;

/// The program, as `make image` leaves it.
const PROGRAM: &str = "target/image/boxes-supervisor";

const PAIRS: usize = 200;
const MIB: f64 = 1024.0 * 1024.0;

/// Memory is read once the command runs, for at most so long.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn run(bench: &mut Bench) -> Result<()> {
    let program = fs::canonicalize(PROGRAM)
        .with_context(|| format!("there is no supervisor at {PROGRAM}: `make image` builds it"))?;
    let size = fs::metadata(&program)?.len();
    let resident = resident(&program)?;
    let (mut plain, mut supervised) = (Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        plain.push(time_to_first_word(in_a_namespace(&[]))?);
        supervised.push(time_to_first_word(in_a_namespace(&before(&program)))?);
    }
    let (plain, supervised) = (Times::new(plain), Times::new(supervised));
    let added = supervised.percent(50) - plain.percent(50);
    let report = &mut bench.report;
    let size = f64::from(u32::try_from(size)?) / MIB;
    report.at_most("supervisor: size", "MiB", size, 1.0);
    report.at_most("supervisor: RSS", "MiB", resident, 1.5);
    report.at_most(
        "supervisor: added before the command, p50",
        "ms",
        added,
        5.0,
    );
    let detail = json!({"plain_ms": plain.quantiles(), "supervised_ms": supervised.quantiles()});
    report.detail("supervisor", detail);
    Ok(())
}

fn before(program: &Path) -> Vec<String> {
    let program = program.display().to_string();
    [&program, "run", "--grace=1", "--report=/dev/null", "--"]
        .map(ToOwned::to_owned)
        .to_vec()
}

/// A command in a PID namespace of its own, after what is to run before it.
fn in_a_namespace(before: &[String]) -> Command {
    let mut command = Command::new("unshare");
    command
        .args(["--pid", "--fork", "--mount-proc", "--kill-child", "--"])
        .args(before)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    command
}

/// From the start of the process until its command has written a byte.
fn time_to_first_word(mut command: Command) -> Result<Duration> {
    command.args(["busybox", "echo", "x"]);
    let began = Instant::now();
    let mut child = command.spawn().context("cannot run unshare")?;
    await_a_word(&mut child)?;
    let took = began.elapsed();
    ensure!(child.wait()?.success(), "the command failed");
    Ok(took)
}

fn await_a_word(child: &mut Child) -> Result<()> {
    let output = child.stdout.as_mut().context("no standard output")?;
    let read = output.read_exact(&mut [0]);
    read.context("the command wrote nothing")
}

/// The resident memory of the supervisor while its command runs, in MiB.
fn resident(program: &Path) -> Result<f64> {
    let mut command = in_a_namespace(&before(program));
    command.args(["busybox", "sh", "-c", "echo x; sleep 60"]);
    let mut child = command.spawn().context("cannot run unshare")?;
    let found = await_a_word(&mut child).and_then(|()| resident_of_the_child(child.id()));
    // Its children die with it.
    child.kill()?;
    child.wait()?;
    found
}

fn resident_of_the_child(parent: u32) -> Result<f64> {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"))?;
        if let Some(child) = children.split_whitespace().next() {
            return memory_of(child);
        }
    }
    anyhow::bail!("unshare has no child")
}

fn memory_of(process: &str) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    let kib: f64 = kib.context("no VmRSS")?.parse()?;
    Ok(kib / 1024.0)
}
