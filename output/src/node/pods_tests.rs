//! Pods from their first event to being let go, against answers of an API server.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use object_store::memory::InMemory;
use serde_json::{Value, json};
use tokio::time::advance;

use super::api_tests::{Log, client, failure, object};
use super::known::Known;
use super::pods::Pods;
use crate::archive::{Archive, Manifest, RunKey, Saved, StreamTotals, Uid};
use crate::collector::{Assignment, Budget, Collector, Ended, Outcome};
use crate::tail::LogRoot;

/// A node whose API server gives these answers.
struct Node {
    pods: Pods,
    asked: Log,
    archive: Archive,
    _logs: tempfile::TempDir,
}

fn node(answers: Vec<(u16, Value)>) -> Node {
    let logs = tempfile::tempdir().unwrap();
    let archive = Archive::over(Arc::new(InMemory::new()));
    let root = LogRoot::open(logs.path()).unwrap();
    let (collector, _) = Collector::new(root, archive.clone(), Budget::new(1 << 20));
    let (client, asked) = client(answers);
    Node {
        pods: Pods::new(client, collector),
        asked,
        archive,
        _logs: logs,
    }
}

impl Node {
    /// Sends out what is due, and hears what comes of it.
    async fn turn(&mut self) {
        self.pods.send_out();
        let news = self.pods.news().await.unwrap();
        self.pods.hear(news);
    }

    fn asked(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        asked.iter().map(|(line, _)| line.clone()).collect()
    }
}

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {
        "namespace": "ns", "name": name, "uid": name, "resourceVersion": "7",
        "labels": {"boxes.run/box-uid": "u"}, "annotations": {"boxes.run/box": "hello"},
        "finalizers": ["boxes.run/output"],
    }})
}

fn held(name: &str) -> Pod {
    serde_json::from_value(pod(name)).unwrap()
}

fn outcome(node: &Node) -> Outcome {
    let run = RunKey::first(Uid::parse("u").unwrap(), Uid::parse("p").unwrap());
    let assignment = super::pod::assignment(&held("p")).unwrap();
    assert_eq!((&assignment.run, node.pods.count()), (&run, 1));
    Outcome {
        assignment,
        manifest: Manifest {
            version: 1,
            run,
            state: Saved::Saved,
            entries: 0,
            bytes: 0,
            sha256: String::new(),
            stdout: StreamTotals::default(),
            stderr: StreamTotals::default(),
            gaps: Vec::new(),
            gap_count: 0,
        },
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_hangs_keeps_nobody_waiting() {
    let mut node = node(vec![]);
    node.pods.see(held("p"));
    node.pods.send_out();
    node.pods.see(held("q"));
    for _ in 0..2 {
        node.turn().await;
    }
    assert_eq!(node.pods.count(), 2, "no answer says nothing");
    node.pods.send_out();
    assert!(node.pods.news().await.is_none(), "not again at once");
    advance(Duration::from_secs(2)).await;
    node.turn().await;
}

#[tokio::test(start_paused = true)]
async fn a_saved_pod_is_let_go_by_one_call_at_a_time() {
    let answers = vec![
        (200, pod("p")),
        failure(409, "Conflict", "p"),
        (200, pod("p")),
        (200, pod("p")),
    ];
    let mut node = node(answers);
    node.pods.see(held("p"));
    node.pods.save(&outcome(&node));
    for _ in 0..3 {
        node.pods.send_out();
        node.pods.see(held("p"));
        node.pods.begin_list();
        node.pods.see(held("p"));
        node.pods.end_list();
    }
    node.turn().await;
    assert_eq!((node.asked().len(), node.pods.count()), (2, 1));
    advance(Duration::from_secs(2)).await;
    node.turn().await;
    assert_eq!((node.asked().len(), node.pods.count()), (4, 0));
    assert!(node.pods.news().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_pod_whose_box_is_gone_is_let_go_though_it_runs() {
    let answers = vec![
        failure(404, "NotFound", "hello"),
        (200, pod("p")),
        (200, pod("p")),
    ];
    let mut node = node(answers);
    node.pods.see(held("p"));
    node.turn().await;
    node.turn().await;
    assert_eq!(node.pods.count(), 0);
    assert_eq!(node.asked()[2], "PATCH /api/v1/namespaces/ns/pods/p");
    assert_eq!(node.archive.boxes().await.unwrap(), []);
}

#[rstest::rstest]
#[case(false, 1)]
#[case(true, 3)]
#[tokio::test(start_paused = true)]
async fn the_output_of_a_box_being_deleted_is_read_until_its_pod_is(
    #[case] deleting: bool,
    #[case] asked: usize,
) {
    let answers = vec![object("u", true), (200, pod("p")), (200, pod("p"))];
    let mut node = node(answers);
    let mut pod = held("p");
    if deleting {
        let time = "2026-11-30T19:00:00Z".parse().unwrap();
        pod.metadata.deletion_timestamp = Some(Time(time));
    }
    node.pods.see(pod);
    node.turn().await;
    while node.pods.count() > 0 && deleting {
        node.turn().await;
    }
    assert_eq!(node.asked().len(), asked);
}

#[tokio::test]
async fn whose_output_it_is_stays_as_it_was_confirmed() {
    let mut pod = held("p");
    let assigned = |pod: &Pod| super::pod::assignment(pod).unwrap();
    let mut known = Known::new(pod.clone(), assigned(&pod));
    known.confirm();
    let other = ("boxes.run/box".to_owned(), "other".to_owned());
    pod.metadata.annotations = Some([other].into());
    let news = Assignment {
        ended: Ended::Ran,
        ..assigned(&pod)
    };
    known.update(pod, news);
    let Assignment {
        name,
        wanted,
        ended,
        ..
    } = known.assignment;
    assert_eq!((name.as_str(), wanted, ended), ("hello", true, Ended::Ran));
}

#[tokio::test(start_paused = true)]
async fn it_is_ready_when_all_files_are_held() {
    let mut node = node(vec![]);
    node.pods.begin_list();
    node.pods.see(held("p"));
    assert!(!node.pods.is_ready());
    node.pods.end_list();
    assert!(!node.pods.is_ready(), "nobody has looked for its files");
    while !node.pods.is_ready() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_box_deleted_without_its_pod_is_noticed() {
    let gone = failure(404, "NotFound", "hello");
    let mut node = node(vec![object("u", false), object("ns", false), gone]);
    node.pods.see(held("p"));
    node.turn().await;
    advance(Duration::from_mins(10)).await;
    node.turn().await;
    assert_eq!(node.asked().len(), 3);
}
