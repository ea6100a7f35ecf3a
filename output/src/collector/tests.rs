//! Collectors that live through faults and crashes, over real files and a store that fails.

use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{sleep, timeout};

use super::*;
use crate::archive::faulty::{Fault, Faulty};
use crate::archive::{Archive, Content, GapReason, Manifest, Reader, RunKey, Saved, Start, Uid};
use crate::tail::LogRoot;
use crate::tail::kubelet::Kubelet;

fn assignment(ended: Ended) -> Assignment {
    Assignment {
        run: RunKey::first(
            Uid::parse("box-uid").unwrap(),
            Uid::parse("pod-uid").unwrap(),
        ),
        namespace: "ns".to_owned(),
        name: "hello".to_owned(),
        folder: "pod/box".to_owned(),
        wanted: true,
        started: (ended != Ended::NeverRan).then(|| "2026-11-30T19:00:00Z".parse().unwrap()),
        ended,
    }
}

/// A node with one box.
struct Node {
    kubelet: Kubelet,
    store: Arc<Faulty>,
    collector: Collector,
    outcomes: UnboundedReceiver<Outcome>,
    crashes: u32,
}

impl Node {
    fn start(plan: impl IntoIterator<Item = Fault>) -> Self {
        let (kubelet, store) = (Kubelet::start(), Faulty::new(plan));
        let (collector, outcomes) = new_collector(&kubelet, &store);
        let mut node = Self {
            kubelet,
            store,
            collector,
            outcomes,
            crashes: 0,
        };
        node.collector.assign(assignment(Ended::No));
        node
    }

    fn archive(&self) -> Archive {
        Archive::over(self.store.clone())
    }

    fn restart(&mut self, ended: Ended) {
        (self.collector, self.outcomes) = new_collector(&self.kubelet, &self.store);
        self.collector.assign(assignment(ended));
    }

    /// Time passes; a collector that crashes is started again.
    async fn live(&mut self, time: Duration, ended: Ended) {
        let mut rest = Box::pin(sleep(time));
        loop {
            let store = self.store.clone();
            tokio::select! {
                () = &mut rest => return,
                () = store.crashed() => {
                    self.crashes += 1;
                    self.restart(ended);
                }
            }
        }
    }

    /// The container ends.
    async fn end(&mut self, ended: Ended) -> Manifest {
        self.kubelet.close();
        self.collector.assign(assignment(ended));
        self.outcome(ended).await
    }

    async fn outcome(&mut self, ended: Ended) -> Manifest {
        let outcome = async {
            loop {
                let store = self.store.clone();
                tokio::select! {
                    Some(outcome) = self.outcomes.recv() => return outcome.manifest,
                    () = store.crashed() => {
                        self.crashes += 1;
                        self.restart(ended);
                    }
                }
            }
        };
        timeout(Duration::from_hours(1), outcome)
            .await
            .expect("it never ends")
    }

    /// What a reader gets.
    async fn read(&self) -> (Vec<u8>, Vec<GapReason>) {
        let read = self
            .archive()
            .read(&assignment(Ended::No).run, Start::Beginning);
        let entries = read.try_collect::<Vec<_>>().await.unwrap().concat();
        let (mut bytes, mut gaps) = (Vec::new(), Vec::new());
        for (at, entry) in entries.into_iter().enumerate() {
            assert_eq!(entry.number, at as u64);
            match entry.content {
                Content::Gap(gap) => gaps.push(gap.reason),
                Content::Record(record) => {
                    bytes.extend_from_slice(&record.bytes);
                    bytes.extend(record.ends_line.then_some(b'\n'));
                }
            }
        }
        (bytes, gaps)
    }

    async fn check_saved(&self, manifest: &Manifest) {
        let (bytes, gaps) = self.read().await;
        assert_eq!(
            String::from_utf8_lossy(&bytes),
            String::from_utf8_lossy(&self.kubelet.written)
        );
        assert_eq!((gaps, manifest.state), (vec![], Saved::Saved));
        assert_eq!(manifest.bytes, bytes.len() as u64);
        assert_eq!(
            manifest.sha256,
            crate::archive::hex(&Sha256::digest(&bytes))
        );
        assert_eq!(
            self.archive()
                .manifest(&manifest.run)
                .await
                .unwrap()
                .as_ref(),
            Some(manifest)
        );
    }
}

fn new_collector(
    kubelet: &Kubelet,
    store: &Arc<Faulty>,
) -> (Collector, UnboundedReceiver<Outcome>) {
    let logs = LogRoot::open(kubelet.root()).unwrap();
    let archive = Archive::over(store.clone());
    Collector::new(logs, archive, Budget::new(2 << 20))
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_box_is_saved() {
    let mut node = Node::start([]);
    node.kubelet.write("hello\nthere");
    node.live(SECOND, Ended::No).await;
    assert_eq!(
        node.read().await.0,
        b"hello\n",
        "what is logged is there at once"
    );
    let manifest = node.end(Ended::Ran).await;
    node.check_saved(&manifest).await;
    let label = node
        .archive()
        .label(&manifest.run.box_uid)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (label.namespace.as_str(), label.name.as_str()),
        ("ns", "hello")
    );
    assert_eq!(node.collector.stats().saved(Saved::Saved), 1);
    node.restart(Ended::Ran);
    assert_eq!(node.outcome(Ended::Ran).await, manifest, "it comes again");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_stored_before_its_box_was_seen() {
    let mut node = Node::start([]);
    let (mut collector, mut outcomes) = new_collector(&node.kubelet, &node.store);
    node.collector.forget(&assignment(Ended::No).run);
    let unseen = Assignment {
        wanted: false,
        ..assignment(Ended::Ran)
    };
    collector.assign(unseen);
    node.kubelet.write("hello\n");
    node.live(SECOND, Ended::No).await;
    node.kubelet.close();
    node.kubelet.remove_all();
    node.live(60 * SECOND, Ended::No).await;
    assert_eq!(node.archive().boxes().await.unwrap(), []);
    collector.assign(assignment(Ended::Ran));
    let outcome = timeout(60 * SECOND, outcomes.recv()).await.unwrap();
    node.check_saved(&outcome.unwrap().manifest).await;
}

#[tokio::test(start_paused = true)]
async fn an_empty_output_is_saved() {
    let mut node = Node::start([]);
    let manifest = node.end(Ended::Ran).await;
    node.check_saved(&manifest).await;
    assert_eq!(manifest.entries, 0);
}

#[rstest::rstest]
#[case(Ended::Ran, Saved::Partial)]
#[case(Ended::NeverRan, Saved::Saved)]
#[case(Ended::Unknown, Saved::Partial)]
#[tokio::test(start_paused = true)]
async fn a_log_that_is_gone_is_missed_if_the_command_ran(
    #[case] ended: Ended,
    #[case] state: Saved,
) {
    let mut node = Node::start([]);
    node.kubelet.remove_all();
    node.restart(ended);
    let manifest = node.end(ended).await;
    assert_eq!((manifest.state, manifest.bytes), (state, 0));
}

#[tokio::test(start_paused = true)]
async fn a_container_that_runs_on_after_its_pod_is_said_to_have_never_run_is_read_and_may_lack_its_end()
 {
    let mut node = Node::start([]);
    node.kubelet.write("before\n");
    node.live(SECOND, Ended::No).await;
    // A kubelet that restarts rejects a running pod, and its status is all that is left.
    node.collector.assign(assignment(Ended::NeverRan));
    node.live(10 * SECOND, Ended::NeverRan).await;
    node.kubelet.write("asked to stop\n");
    let manifest = node.end(Ended::NeverRan).await;
    assert_eq!(
        node.read().await,
        (node.kubelet.written.clone(), vec![GapReason::EndUnseen])
    );
    assert_eq!(manifest.state, Saved::Partial);
}

#[tokio::test(start_paused = true)]
async fn a_container_that_was_seen_to_start_did_run() {
    let mut node = Node::start([]);
    node.kubelet.remove_all();
    node.restart(Ended::No);
    let manifest = node.end(Ended::NeverRan).await;
    assert_eq!(manifest.state, Saved::Partial);
}

#[tokio::test(start_paused = true)]
async fn a_pod_deleted_in_the_middle_is_saved_to_its_last_byte() {
    let mut node = Node::start([]);
    node.kubelet.write("before\n");
    node.live(SECOND, Ended::No).await;
    node.kubelet.write("in the middle\n");
    node.kubelet.remove_all();
    node.live(SECOND, Ended::No).await;
    node.kubelet.write("after\n");
    let manifest = node.end(Ended::Ran).await;
    node.check_saved(&manifest).await;
}

#[rstest::rstest]
#[case(Fault::Full)]
#[case(Fault::ReadOnly)]
#[case(Fault::Away)]
#[case(Fault::Slow)]
#[tokio::test(start_paused = true)]
async fn an_archive_that_takes_nothing_for_minutes_loses_nothing(#[case] fault: Fault) {
    let mut node = Node::start([]);
    node.store.always(Some(fault));
    node.restart(Ended::No);
    for round in 0..12 {
        node.kubelet.write(&format!("round {round}\n"));
        node.live(10 * SECOND, Ended::No).await;
        node.kubelet.rotate();
    }
    node.kubelet.remove_all();
    node.kubelet.close();
    node.collector.assign(assignment(Ended::Ran));
    node.live(60 * SECOND, Ended::Ran).await;
    node.store.always(None);
    let manifest = node.outcome(Ended::Ran).await;
    node.check_saved(&manifest).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_logged_late_while_the_archive_is_slow_is_saved() {
    let mut node = Node::start([]);
    node.store.always(Some(Fault::Slow));
    node.restart(Ended::No);
    node.kubelet.write("in time\n");
    node.live(SECOND, Ended::No).await;
    node.collector.assign(assignment(Ended::Ran));
    node.kubelet.write("with the end\n");
    node.live(6 * SECOND, Ended::Ran).await;
    node.kubelet.write("late\nand later\n");
    node.kubelet.close();
    let manifest = node.outcome(Ended::Ran).await;
    node.check_saved(&manifest).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_busy_disk_keeps_from_the_log_long_after_the_end_is_saved() {
    let mut node = Node::start([]);
    node.kubelet.write("in time\n");
    node.live(SECOND, Ended::No).await;
    node.collector.assign(assignment(Ended::Ran));
    node.live(30 * SECOND, Ended::Ran).await;
    node.kubelet.write("late\n");
    let manifest = node.end(Ended::Ran).await;
    node.check_saved(&manifest).await;
}

#[tokio::test(start_paused = true)]
async fn a_log_that_somebody_keeps_open_is_saved_and_said_to_lack_its_end_perhaps() {
    let mut node = Node::start([]);
    node.kubelet.write("all\n");
    node.collector.assign(assignment(Ended::Ran));
    let manifest = node.outcome(Ended::Ran).await;
    let seen = (node.kubelet.written.clone(), vec![GapReason::EndUnseen]);
    assert_eq!(node.read().await, seen);
    assert_eq!(manifest.state, Saved::Partial);
}

#[tokio::test(start_paused = true)]
async fn a_link_beside_a_log_that_is_held_does_not_keep_it_from_being_read() {
    let mut node = Node::start([]);
    node.kubelet.write("held\n");
    node.live(SECOND, Ended::No).await;
    node.kubelet.replace_by_link("/etc/passwd");
    node.kubelet.write("and read\n");
    let manifest = node.end(Ended::Ran).await;
    let (bytes, gaps) = node.read().await;
    assert_eq!(bytes, node.kubelet.written);
    assert_eq!(gaps, [GapReason::Unreadable]);
    assert_eq!(manifest.state, Saved::Partial);
}

#[tokio::test(start_paused = true)]
async fn two_collectors_at_once_save_once() {
    let mut node = Node::start([]);
    let (mut other, mut outcomes) = new_collector(&node.kubelet, &node.store);
    other.assign(assignment(Ended::No));
    for round in 0..40 {
        node.kubelet.write(&format!("round {round}\n"));
        sleep(Duration::from_millis(170)).await;
    }
    other.assign(assignment(Ended::Ran));
    let manifest = node.end(Ended::Ran).await;
    node.check_saved(&manifest).await;
    let same = timeout(60 * SECOND, outcomes.recv())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(same.manifest, manifest);
}

/// Boxes whose archive hangs, as a folder on a network may, each in a thread that nobody gets back.
fn hung_boxes(archive: &std::path::Path) -> impl Iterator<Item = Assignment> {
    let hung = |number| {
        let uid = Uid::parse(&format!("hung-{number}")).unwrap();
        let run = RunKey::first(uid.clone(), uid);
        let folder = archive.join(format!("runs/{0}/{0}/0", run.pod_uid));
        let manifest = folder.join("manifest.json");
        std::fs::create_dir_all(folder).unwrap();
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
        rustix::fs::mknodat(rustix::fs::CWD, manifest, kind, mode, 0).unwrap();
        Assignment {
            run,
            ..assignment(Ended::No)
        }
    };
    (0..STORING * 3).map(hung)
}

#[test]
fn an_archive_that_hangs_does_not_keep_logs_from_being_read() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(READING + STORING)
        .enable_all()
        .build()
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let archive = format!("file://{}", folder.path().display());
    let archive = Archive::open(&archive, &crate::archive::Options::default()).unwrap();
    let mut kubelet = Kubelet::start();
    let logs = LogRoot::open(kubelet.root()).unwrap();
    let boxes = hung_boxes(folder.path());
    let read = runtime.block_on(async {
        let (mut collector, _outcomes) = Collector::new(logs, archive, Budget::new(2 << 20));
        let stats = collector.stats();
        let until = async |bytes| {
            while stats.log_bytes.get() < bytes {
                sleep(Duration::from_millis(5)).await;
            }
        };
        kubelet.write("before\n");
        collector.assign(assignment(Ended::No));
        until(1).await;
        boxes.for_each(|hung| collector.assign(hung));
        let before = stats.log_bytes.get();
        kubelet.write("after\n");
        timeout(60 * SECOND, until(before + 1)).await
    });
    // Threads that hang are left.
    runtime.shutdown_background();
    assert!(read.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_box_that_is_forgotten_is_let_go() {
    let mut node = Node::start([]);
    node.kubelet.write("hello\n");
    node.live(SECOND, Ended::No).await;
    node.collector.forget(&assignment(Ended::No).run);
    node.live(SECOND, Ended::No).await;
    let stats = node.collector.stats();
    assert_eq!((stats.boxes.get(), stats.held.get()), (0, 0));
    assert_eq!(node.collector.runs().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn much_output_is_stored_in_many_segments_within_the_budget() {
    let mut node = Node::start([]);
    let line = "0123456789abcdef".repeat(64) + "\n";
    for _ in 0..4 {
        for _ in 0..1024 {
            node.kubelet.write(&line);
        }
        node.live(SECOND, Ended::No).await;
    }
    let manifest = node.end(Ended::Ran).await;
    node.check_saved(&manifest).await;
    let names = node.archive().names(&manifest.run).await.unwrap();
    assert!(names.all().count() >= 4, "{names:?}");
}

#[derive(Clone, Debug)]
enum Act {
    Write(String),
    Rotate,
    Pause(u64),
    Restart,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => "[a-z \n]{0,60}".prop_map(Act::Write),
        1 => Just(Act::Rotate),
        3 => (0..900_u64).prop_map(Act::Pause),
        1 => Just(Act::Restart),
    ]
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        4 => Just(Fault::None),
        1 => Just(Fault::Full),
        1 => Just(Fault::Away),
        1 => Just(Fault::Slow),
        2 => Just(Fault::AnswerLost),
        2 => Just(Fault::CrashBefore),
        2 => Just(Fault::CrashAfter),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_collector_that_crashes_after_any_write_saves_the_same_once(
        acts in prop::collection::vec(act(), 0..40),
        plan in prop::collection::vec(fault(), 0..30),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut node = Node::start(plan);
            for act in acts {
                match act {
                    Act::Write(text) => node.kubelet.write(&text),
                    Act::Rotate => {
                        // The kubelet looks every ten seconds.
                        node.live(10 * SECOND, Ended::No).await;
                        node.kubelet.rotate();
                    }
                    Act::Pause(time) => node.live(Duration::from_millis(time), Ended::No).await,
                    Act::Restart => node.restart(Ended::No),
                }
            }
            let manifest = node.end(Ended::Ran).await;
            node.check_saved(&manifest).await;
        });
    }
}
