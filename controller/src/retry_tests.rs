//! Attempts that fail: at a pace that slows down, told, and never given up.

use boxes_lifecycle::{BoxView, PodView};
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::Event;
use serde_json::{Value, json};

use crate::cache::CachedBox;
use crate::context::Context;
use crate::fake::{Log, a_box, context, failure, its_pod};
use crate::reconcile::{on_error, reconcile};

/// An ended Box whose pod waits to be released.
fn ended() -> BoxView {
    let pod = json!({"name": "hello", "uid": "pod-uid"});
    a_box(&json!({
        "state": "Exited", "reason": "Exit", "exitCode": 3, "evidence": "Derived",
        "run": {"number": 1, "pod": pod, "startedAt": "2026-01-01T00:00:00Z"},
    }))
}

/// Its pod, ended too.
fn ended_pod() -> Value {
    let mut pod = its_pod();
    pod["status"] = json!({
        "phase": "Failed", "startTime": "2026-01-01T00:00:00Z",
        "containerStatuses": [{
            "name": "box", "containerID": "x", "image": "", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"terminated": {"exitCode": 3, "reason": "Error"}},
        }],
    });
    pod
}

fn refused(times: usize) -> Vec<(u16, Value)> {
    vec![failure(500, "InternalError", "hello"); times]
}

/// A controller whose cache has these.
struct Bench {
    cx: Context,
    log: Log,
    _pods: Writer<PodView>,
}

fn bench(answers: Vec<(u16, Value)>) -> Bench {
    let (mut cx, log) = context(answers);
    let (pods, mut writer) = kube::runtime::reflector::store();
    writer.apply_watcher_event(&Event::Init);
    writer.apply_watcher_event(&Event::InitApply(
        serde_json::from_value(ended_pod()).unwrap(),
    ));
    writer.apply_watcher_event(&Event::InitDone);
    cx.pods = pods;
    Bench {
        cx,
        log,
        _pods: writer,
    }
}

impl Bench {
    /// What an event of the Box leads to.
    async fn pass(&self, object: &BoxView) {
        let cached = CachedBox::from(object.clone());
        if let Err(error) = reconcile(&cached, &self.cx).await {
            on_error(&cached, &error, &self.cx);
        }
    }

    fn asked(&self, what: &str) -> usize {
        let log = self.log.lock().unwrap();
        log.iter()
            .filter(|asked| asked.path.ends_with(what))
            .count()
    }
}

/// Each status write brings an event of the Box, which is no reason to try again before it is due.
#[tokio::test]
async fn the_event_of_our_own_status_write_starts_no_attempt() {
    let bench = bench(refused(99));
    for _ in 0..10 {
        bench.pass(&ended()).await;
    }
    assert_eq!(bench.asked("/pods/hello"), 1, "{:?}", bench.log.lock());
}

/// Lets the next attempt be due.
fn wait_for_the_next(bench: &Bench) {
    bench.cx.memories.change("box-uid", |memory| {
        if let Some(trouble) = &mut memory.trouble {
            trouble.next = jiff::Timestamp::UNIX_EPOCH;
        }
    });
}

/// What the clean-up is said to wait for, if the last request was to write that.
fn told(bench: &Bench) -> Option<String> {
    let log = bench.log.lock().unwrap();
    let status = log.last().map(|asked| asked.body["status"].clone())?;
    let all = status["conditions"].as_array()?.clone();
    let up = all.into_iter().find(|it| it["type"] == "CleanedUp")?;
    (up["reason"] == "CleanupStalled").then(|| up["message"].to_string())
}

#[tokio::test]
async fn after_8_attempts_each_one_is_told_with_its_error_and_the_next_and_none_is_the_last() {
    let bench = bench(refused(99));
    for attempt in 1..=12 {
        wait_for_the_next(&bench);
        bench.pass(&ended()).await;
        // What on_error asks for from the 8th on.
        bench.pass(&ended()).await;
        assert_eq!(bench.asked("/pods/hello"), attempt, "no attempt is dropped");
        let trouble = bench.cx.memories.of("box-uid").trouble.unwrap();
        assert_eq!(usize::try_from(trouble.attempts).unwrap(), attempt);
        let Some(told) = told(&bench) else {
            assert!(attempt < 8, "attempt {attempt} is not told");
            continue;
        };
        assert!(attempt >= 8, "attempt {attempt}: {told}");
        let next = jiff::Timestamp::from_second(trouble.next.as_second()).unwrap();
        for part in [
            format!("{attempt} attempts"),
            next.to_string(),
            "InternalError of hello".to_owned(),
        ] {
            assert!(told.contains(&part), "no {part} in {told}");
        }
    }
}

#[tokio::test]
async fn a_success_ends_the_trouble() {
    let written = json!({"metadata": {"name": "hello"}, "spec": {"image": "x"}});
    let mut answers = refused(2);
    answers.extend([(200, ended_pod()), (200, written)]);
    let bench = bench(answers);
    bench.pass(&ended()).await;
    assert!(bench.cx.memories.of("box-uid").trouble.is_some());
    wait_for_the_next(&bench);
    bench.pass(&ended()).await;
    assert_eq!(bench.cx.memories.of("box-uid").trouble, None);
}
