//! How fast the collector is: from log files to an archive in a folder, with and without waiting for
//! the disk. Prints a table. The writers take a part of the machine: they stand for the runtime.
#![allow(clippy::print_stdout, reason = "it is what this is for")]
#![allow(clippy::unwrap_used, reason = "a failed measurement has no other use")]

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use boxes_output::archive::{Archive, Content, Options, Reader, RunKey, Start, Uid};
use boxes_output::collector::{Assignment, Budget, Collector, Ended, Outcome};
use boxes_output::tail::LogRoot;
use futures::TryStreamExt;
use jiff::Timestamp;
use tokio::sync::mpsc::UnboundedReceiver;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(16)
        .enable_all()
        .build()
        .unwrap();
    println!(
        "{:<44} {:>10} {:>10} {:>9}",
        "", "MB/s", "MB/s CPU", "RSS MiB"
    );
    for (name, line, fsync) in [
        ("lines of 100 bytes", 100, true),
        ("lines of 100 bytes, no fsync", 100, false),
        ("lines of 20 bytes, no fsync", 20, false),
        ("lines of 16 KiB, no fsync", 16_000, false),
    ] {
        runtime.block_on(backlog(name, line, fsync));
    }
    for (name, quiet, noisy, fsync) in [
        ("100 boxes, 10 lines a second each", 100, 0, true),
        ("20 quiet boxes beside one at 50 MB/s", 20, 50, true),
        ("the same, no fsync", 20, 50, false),
    ] {
        runtime.block_on(crowd(name, quiet, noisy, fsync));
    }
}

struct Bench {
    base: tempfile::TempDir,
    archive: Archive,
    collector: Collector,
    outcomes: UnboundedReceiver<Outcome>,
}

impl Bench {
    fn new(fsync: bool) -> Self {
        let base = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        fs::create_dir_all(base.path().join("archive")).unwrap();
        fs::create_dir_all(base.path().join("logs")).unwrap();
        let options = Options {
            no_fsync: !fsync,
            ..Options::default()
        };
        let url = format!("file://{}/archive", base.path().display());
        let archive = Archive::open(&url, &options).unwrap();
        let logs = LogRoot::open(&base.path().join("logs")).unwrap();
        let (collector, outcomes) = Collector::new(logs, archive.clone(), Budget::new(16 << 20));
        Self {
            base,
            archive,
            collector,
            outcomes,
        }
    }

    fn log(&self, number: usize) -> PathBuf {
        let folder = self.base.path().join(format!("logs/pod-{number}/box"));
        fs::create_dir_all(&folder).unwrap();
        folder.join("0.log")
    }

    fn assign(&mut self, number: usize, ended: Ended) {
        let uid = Uid::parse(&format!("uid-{number}")).unwrap();
        self.collector.assign(Assignment {
            run: RunKey::first(uid.clone(), uid),
            namespace: "bench".to_owned(),
            name: format!("box-{number}"),
            folder: format!("pod-{number}/box"),
            wanted: true,
            started: None,
            ended,
        });
    }
}

/// A line of the log with words that compress about as well as text does.
fn line(out: &mut impl Write, length: usize, seed: &mut u64) {
    write!(out, "{:.9} stdout F ", Timestamp::now()).unwrap();
    let mut text = Vec::with_capacity(length);
    while text.len() < length {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let word = format!("{:x} ", (*seed >> 40) & 0xfff);
        text.extend_from_slice(word.as_bytes());
    }
    text.truncate(length);
    out.write_all(&text).unwrap();
    out.write_all(b"\n").unwrap();
}

/// One box that has written 200 MB.
async fn backlog(name: &str, length: usize, fsync: bool) {
    let mut bench = Bench::new(fsync);
    let (mut file, mut seed) = (
        std::io::BufWriter::new(File::create(bench.log(0)).unwrap()),
        1,
    );
    for _ in 0..200_000_000 / length {
        line(&mut file, length, &mut seed);
    }
    file.flush().unwrap();
    let (start, cpu) = (Instant::now(), cpu());
    bench.assign(0, Ended::Ran);
    let outcome = bench.outcomes.recv().await.unwrap();
    assert_eq!(outcome.manifest.gap_count, 0);
    // Two seconds are waited for a last line.
    let wall = start.elapsed().as_secs_f64() - 2.0;
    let bytes = u32::try_from(outcome.manifest.bytes / 1000).unwrap();
    let megabytes = f64::from(bytes) / 1000.0;
    let busy = self::cpu() - cpu;
    println!(
        "{name:<44} {:>10.0} {:>10.0} {:>9}",
        megabytes / wall,
        megabytes / busy,
        rss()
    );
}

/// Many boxes that write ten lines a second, and maybe one that writes much.
async fn crowd(name: &str, quiet: usize, noisy: usize, fsync: bool) {
    const TIME: Duration = Duration::from_secs(10);
    let mut bench = Bench::new(fsync);
    let logs: Vec<_> = (0..=quiet).map(|number| bench.log(number)).collect();
    for log in &logs {
        File::create(log).unwrap();
    }
    for number in 0..=quiet {
        bench.assign(number, Ended::No);
    }
    let follower = |number| tokio::spawn(follow(bench.archive.clone(), number));
    let followers: Vec<_> = (1..=quiet).map(follower).collect();
    let start = cpu();
    let loud = logs[0].clone();
    let writer = std::thread::spawn(move || shout(&loud, noisy, TIME));
    let whispers = std::thread::spawn(move || whisper(&logs[1..], TIME));
    tokio::task::spawn_blocking(move || (writer.join(), whispers.join()))
        .await
        .unwrap()
        .0
        .unwrap();
    let resident = rss();
    let writers = cpu() - start;
    for number in 0..=quiet {
        bench.assign(number, Ended::Ran);
    }
    let (behind, mut bytes) = (Instant::now(), 0);
    for _ in 0..=quiet {
        bytes += bench.outcomes.recv().await.unwrap().manifest.bytes;
    }
    let behind = behind.elapsed().as_secs_f64();
    println!("{name:<44} {:>10} {:>10} {resident:>9}", "", "");
    println!(
        "  {} MB; CPU of all in {} s: {writers:.1} s; all saved {behind:.1} s after the end",
        bytes / 1_000_000,
        TIME.as_secs()
    );
    let mut delays = Vec::new();
    for follower in followers {
        delays.append(&mut follower.await.unwrap());
    }
    delays.sort_unstable();
    let at = |percent: usize| delays[(delays.len() - 1) * percent / 100];
    println!(
        "  quiet boxes, from logged to seen by a follower: p50 {} ms, p99 {} ms, longest {} ms",
        at(50),
        at(99),
        at(100)
    );
}

/// How long after it was logged each line of a box is seen, in milliseconds.
async fn follow(archive: Archive, number: usize) -> Vec<i64> {
    let uid = Uid::parse(&format!("uid-{number}")).unwrap();
    let run = RunKey::first(uid.clone(), uid);
    let mut entries = archive.follow(&run, Start::Beginning);
    let mut delays = Vec::new();
    while let Some(batch) = entries.try_next().await.unwrap() {
        let now = Timestamp::now().as_millisecond();
        delays.extend(batch.iter().map(|entry| match &entry.content {
            Content::Record(record) => now - record.time.as_millisecond(),
            Content::Gap(_) => 0,
        }));
    }
    delays
}

fn whisper(logs: &[PathBuf], time: Duration) {
    let mut files: Vec<_> = logs.iter().map(|log| append(log)).collect();
    let (start, mut seed) = (Instant::now(), 1);
    while start.elapsed() < time {
        for file in &mut files {
            let mut bytes = Vec::new();
            line(&mut bytes, 80, &mut seed);
            file.write_all(&bytes).unwrap();
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// So many megabytes a second, and rotations every two seconds.
fn shout(log: &Path, rate: usize, time: Duration) {
    let (mut block, mut seed, start) = (Vec::new(), 1, Instant::now());
    while block.len() < 100_000 {
        line(&mut block, 100, &mut seed);
    }
    let (mut file, mut sent, mut rotated) = (append(log), 0, 0);
    while rate > 0 && start.elapsed() < time {
        file.write_all(&block).unwrap();
        sent += block.len();
        if start.elapsed().as_secs() / 5 > rotated {
            rotated = start.elapsed().as_secs() / 5;
            let suffix = format!("0.log.20261130-{:06}", 190_000 + rotated);
            fs::rename(log, log.with_file_name(suffix)).unwrap();
            file = append(log);
        }
        let due = Duration::from_micros(u64::try_from(sent / rate).unwrap());
        std::thread::sleep(due.saturating_sub(start.elapsed()));
    }
}

fn append(log: &Path) -> File {
    OpenOptions::new()
        .append(true)
        .create(true)
        .open(log)
        .unwrap()
}

/// Seconds of processor time of this process.
fn cpu() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<_> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
    (ticks(11) + ticks(12)) / 100.0
}

/// Resident memory in MiB.
fn rss() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .unwrap();
    let kilobytes = line
        .split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<u64>()
        .unwrap();
    kilobytes / 1024
}
