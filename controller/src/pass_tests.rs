//! When a pass may be made at all.

use std::sync::Arc;
use std::time::Duration;

use boxes_lifecycle::BoxView;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher::Event;
use serde_json::{Value, json};

use crate::cache::CachedBox;
use crate::context::Context;
use crate::fake::{Log, a_box, context, failure};
use crate::passes;

const COUNT: usize = 8;

/// Boxes in the cache, each to be looked at, whose pods are not there and must be read live.
fn bench() -> (Arc<Context>, Log) {
    let answers = vec![failure(500, "InternalError", "hello"); COUNT];
    let (mut cx, log) = context(answers);
    let (boxes, mut writer) = kube::runtime::reflector::store();
    cx.boxes = boxes;
    for number in 0..COUNT {
        let object = CachedBox::from(waiting(number));
        cx.queue.push(ObjectRef::from_obj(&object));
        writer.apply_watcher_event(&Event::Apply(object));
    }
    (Arc::new(cx), log)
}

fn waiting(number: usize) -> BoxView {
    let pod = json!({"name": "hello", "uid": "pod-uid"});
    let record: Value = json!({"state": "Running", "run": {"number": 1, "pod": pod}});
    let mut object = a_box(&record);
    object.metadata.name = Some(format!("hello-{number}"));
    object.metadata.uid = Some(format!("uid-{number}"));
    object
}

/// Makes passes for a moment.
async fn make(cx: &Arc<Context>, at_once: usize) {
    passes::make(cx, at_once, tokio::time::sleep(Duration::from_millis(1))).await;
}

#[tokio::test(start_paused = true)]
async fn no_pass_asks_for_anything_before_the_first_list_of_pods() {
    let (cx, log) = bench();
    cx.boxes_listed.set(()).unwrap();
    make(&cx, COUNT).await;
    assert!(log.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn every_pass_that_waits_for_it_goes_on_however_few_at_once() {
    for at_once in [1, COUNT] {
        let (cx, log) = bench();
        cx.boxes_listed.set(()).unwrap();
        cx.pods_listed.set(()).unwrap();
        make(&cx, at_once).await;
        assert_eq!(log.lock().unwrap().len(), COUNT, "{at_once} at once");
    }
}
