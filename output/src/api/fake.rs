//! A cluster and an archive in memory, which fail on request.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt};
use jiff::Timestamp;
use tokio::sync::watch;

use super::cluster::{Cluster, FoundBox, NoAnswer, Verdict};
use super::endpoints::Service;
use super::names::Target;
use super::user::User;
use crate::archive::{
    Content, Entry, Error, Gap, GapReason, Manifest, Reader, Record, Result, RunKey, Saved, Start,
    Stream, StreamTotals, Uid,
};

pub(crate) fn uid(text: &str) -> Uid {
    Uid::parse(text).unwrap()
}

/// A Box with a pod; both UIDs are made from the text.
pub(crate) fn a_box(text: &str) -> FoundBox {
    FoundBox {
        uid: uid(text),
        pod_uid: Some(uid(&format!("{text}-pod"))),
        state: "Running".to_owned(),
        ended: false,
        cleaned_up: false,
        unsaved: false,
    }
}

/// Its run.
pub(crate) fn run_of(text: &str) -> RunKey {
    RunKey::first(uid(text), uid(&format!("{text}-pod")))
}

#[derive(Default)]
pub(crate) struct FakeCluster {
    boxes: Mutex<HashMap<Target, FoundBox>>,
    allowed: Mutex<HashSet<(String, String)>>,
    asked_for: Mutex<Vec<User>>,
    silent: AtomicBool,
    /// Where every Service is served.
    pub(crate) addresses: Mutex<Vec<SocketAddr>>,
}

impl FakeCluster {
    pub(crate) fn allow(&self, user: &str, namespace: &str) {
        let pair = (user.to_owned(), namespace.to_owned());
        self.allowed.lock().unwrap().insert(pair);
    }

    pub(crate) fn put(&self, namespace: &str, name: &str, found: FoundBox) {
        let target = Target::new(namespace, name).unwrap();
        self.boxes.lock().unwrap().insert(target, found);
    }

    pub(crate) fn delete(&self, namespace: &str, name: &str) {
        let target = Target::new(namespace, name).unwrap();
        self.boxes.lock().unwrap().remove(&target);
    }

    pub(crate) fn fall_silent(&self) {
        self.silent.store(true, Ordering::Relaxed);
    }

    pub(crate) fn reviews(&self) -> usize {
        self.asked_for.lock().unwrap().len()
    }

    /// Whom the reviews were about.
    pub(crate) fn asked_for(&self) -> Vec<User> {
        self.asked_for.lock().unwrap().clone()
    }

    fn answer<T>(&self, answer: T) -> std::result::Result<T, NoAnswer> {
        if self.silent.load(Ordering::Relaxed) {
            return Err(NoAnswer("silence".to_owned()));
        }
        Ok(answer)
    }
}

impl Cluster for FakeCluster {
    fn find_box<'a>(
        &'a self,
        target: &'a Target,
    ) -> BoxFuture<'a, std::result::Result<Option<FoundBox>, NoAnswer>> {
        let found = self.boxes.lock().unwrap().get(target).cloned();
        Box::pin(async move { self.answer(found) })
    }

    fn addresses<'a>(
        &'a self,
        _: &'a Service,
    ) -> BoxFuture<'a, std::result::Result<Vec<SocketAddr>, NoAnswer>> {
        Box::pin(async move { self.answer(self.addresses.lock().unwrap().clone()) })
    }

    fn review<'a>(
        &'a self,
        user: &'a User,
        target: &'a Target,
    ) -> BoxFuture<'a, std::result::Result<Verdict, NoAnswer>> {
        self.asked_for.lock().unwrap().push(user.clone());
        let pair = (user.name.clone(), target.namespace.clone());
        let verdict = if self.allowed.lock().unwrap().contains(&pair) {
            Verdict::Allowed
        } else {
            Verdict::Denied(None)
        };
        Box::pin(async move { self.answer(verdict) })
    }
}

#[derive(Clone, Default)]
struct FakeRun {
    entries: Vec<Entry>,
    ended: bool,
}

/// Runs in memory. A clone is the same archive.
#[derive(Clone)]
pub(crate) struct FakeArchive {
    runs: Arc<watch::Sender<HashMap<RunKey, FakeRun>>>,
    broken: Arc<Mutex<Option<Error>>>,
    hangs: Arc<AtomicBool>,
    reads: Arc<AtomicUsize>,
    batches: Arc<AtomicUsize>,
}

/// How many entries a batch has.
const BATCH: usize = 3;

impl FakeArchive {
    pub(crate) fn new() -> Self {
        Self {
            runs: Arc::new(watch::Sender::default()),
            broken: Arc::default(),
            hangs: Arc::default(),
            reads: Arc::default(),
            batches: Arc::default(),
        }
    }

    /// Adds a record; its time is its number in seconds.
    pub(crate) fn write(&self, run: &RunKey, stream: Stream, bytes: &[u8], ends_line: bool) {
        self.push(run, |number| {
            Content::Record(Record {
                time: Timestamp::from_second(i64::try_from(number).unwrap()).unwrap(),
                stream,
                bytes: Bytes::copy_from_slice(bytes),
                ends_line,
            })
        });
    }

    /// Adds a line of stdout.
    pub(crate) fn line(&self, run: &RunKey, text: &str) {
        self.write(run, Stream::Stdout, text.as_bytes(), true);
    }

    pub(crate) fn gap(&self, run: &RunKey) {
        let (from, to, bytes) = (None, None, None);
        let reason = GapReason::RotatedAway;
        self.push(run, |_| {
            Content::Gap(Gap {
                from,
                to,
                bytes,
                reason,
            })
        });
    }

    pub(crate) fn end(&self, run: &RunKey) {
        self.runs
            .send_modify(|runs| runs.entry(run.clone()).or_default().ended = true);
    }

    /// Fails from now on, or no more.
    pub(crate) fn fail(&self, error: Option<Error>) {
        *self.broken.lock().unwrap() = error;
        self.runs.send_modify(|_| ());
    }

    pub(crate) fn hang(&self) {
        self.hangs.store(true, Ordering::Relaxed);
    }

    /// How many streams of entries are open.
    pub(crate) fn reads(&self) -> usize {
        self.reads.load(Ordering::Relaxed)
    }

    /// How many batches were given.
    pub(crate) fn batches(&self) -> usize {
        self.batches.load(Ordering::Relaxed)
    }

    fn push(&self, run: &RunKey, content: impl FnOnce(u64) -> Content) {
        self.runs.send_modify(|runs| {
            let entries = &mut runs.entry(run.clone()).or_default().entries;
            let number = entries.len() as u64;
            let content = content(number);
            entries.push(Entry { number, content });
        });
    }

    fn run(&self, run: &RunKey) -> FakeRun {
        self.runs.borrow().get(run).cloned().unwrap_or_default()
    }

    fn check(&self) -> Result<()> {
        self.broken.lock().unwrap().clone().map_or(Ok(()), Err)
    }

    fn stream(
        &self,
        run: &RunKey,
        start: Start,
        follow: bool,
    ) -> BoxStream<'static, Result<Vec<Entry>>> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let cursor = Cursor {
            next: place(&self.run(run).entries, start),
            news: self.runs.subscribe(),
            archive: self.clone(),
            run: run.clone(),
            follow,
        };
        stream::try_unfold(cursor, Cursor::step).boxed()
    }
}

struct Cursor {
    archive: FakeArchive,
    run: RunKey,
    next: usize,
    follow: bool,
    news: watch::Receiver<HashMap<RunKey, FakeRun>>,
}

impl Cursor {
    async fn step(mut self) -> Result<Option<(Vec<Entry>, Self)>> {
        loop {
            self.archive.check()?;
            if self.archive.hangs.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
            let run = self
                .news
                .borrow_and_update()
                .get(&self.run)
                .cloned()
                .unwrap_or_default();
            let batch: Vec<Entry> = run
                .entries
                .iter()
                .skip(self.next)
                .take(BATCH)
                .cloned()
                .collect();
            if !batch.is_empty() {
                self.next += batch.len();
                self.archive.batches.fetch_add(1, Ordering::Relaxed);
                return Ok(Some((batch, self)));
            }
            if !self.follow || run.ended {
                return Ok(None);
            }
            self.news.changed().await.unwrap();
        }
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        self.archive.reads.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Where to begin.
fn place(entries: &[Entry], start: Start) -> usize {
    match start {
        Start::Beginning => 0,
        Start::Entry(number) => usize::try_from(number).unwrap(),
        Start::Time(time) => {
            let late = |entry: &Entry| matches!(&entry.content, Content::Record(record) if record.time >= time);
            entries.iter().position(late).unwrap_or(entries.len())
        }
        Start::TailLines { lines, stream } => tail(entries, lines, stream),
    }
}

fn tail(entries: &[Entry], lines: u64, stream: Option<Stream>) -> usize {
    let counts = |entry: &&Entry| matches!(&entry.content, Content::Record(record) if stream.is_none_or(|stream| stream == record.stream));
    let ends =
        |entry: &&Entry| matches!(&entry.content, Content::Record(record) if record.ends_line);
    let mut left = lines;
    let mut at = entries.len();
    let mut last = true;
    for entry in entries.iter().rev().filter(counts) {
        if ends(&entry) || last {
            if left == 0 {
                break;
            }
            left -= 1;
        }
        last = false;
        at = usize::try_from(entry.number).unwrap();
    }
    at
}

impl Reader for FakeArchive {
    fn runs<'a>(&'a self, box_uid: &'a Uid) -> BoxFuture<'a, Result<Vec<RunKey>>> {
        let runs = self.runs.borrow();
        let runs = runs
            .keys()
            .filter(|run| run.box_uid == *box_uid)
            .cloned()
            .collect();
        Box::pin(async { Ok(runs) })
    }

    fn manifest<'a>(&'a self, run: &'a RunKey) -> BoxFuture<'a, Result<Option<Manifest>>> {
        Box::pin(async move {
            self.check()?;
            let known = self.run(run);
            Ok(known.ended.then(|| manifest(run, &known.entries)))
        })
    }

    fn read(&self, run: &RunKey, start: Start) -> BoxStream<'static, Result<Vec<Entry>>> {
        self.stream(run, start, false)
    }

    fn follow(&self, run: &RunKey, start: Start) -> BoxStream<'static, Result<Vec<Entry>>> {
        self.stream(run, start, true)
    }
}

fn manifest(run: &RunKey, entries: &[Entry]) -> Manifest {
    let gaps: Vec<Gap> = entries
        .iter()
        .filter_map(|entry| match &entry.content {
            Content::Gap(gap) => Some(*gap),
            Content::Record(_) => None,
        })
        .collect();
    Manifest {
        version: 1,
        run: run.clone(),
        state: if gaps.is_empty() {
            Saved::Saved
        } else {
            Saved::Partial
        },
        entries: entries.len() as u64,
        bytes: 0,
        sha256: String::new(),
        stdout: StreamTotals::default(),
        stderr: StreamTotals::default(),
        gap_count: gaps.len() as u64,
        gaps,
    }
}
