//! When a pass may be made at all.

use std::sync::Arc;
use std::time::Duration;

use boxes_lifecycle::BoxView;
use serde_json::{Value, json};

use crate::cache::CachedBox;
use crate::fake::{a_box, context, failure};
use crate::reconcile::reconcile;

/// A Box whose pod is not in the cache and must be read live.
fn cached() -> Arc<CachedBox> {
    let pod = json!({"name": "hello", "uid": "pod-uid"});
    let record: Value = json!({"state": "Running", "run": {"number": 1, "pod": pod}});
    let object: BoxView = a_box(&record);
    Arc::new(CachedBox::from(object))
}

#[tokio::test(start_paused = true)]
async fn no_pass_asks_for_anything_before_the_first_list_of_pods() {
    let (cx, log) = context(vec![failure(500, "InternalError", "hello")]);
    let action = reconcile(cached(), Arc::new(cx)).await.unwrap();
    assert_ne!(action, kube::runtime::controller::Action::await_change());
    assert!(log.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn every_pass_that_waits_for_it_goes_on() {
    let answers = (0..8)
        .map(|_| failure(500, "InternalError", "hello"))
        .collect();
    let (cx, log) = context(answers);
    let cx = Arc::new(cx);
    let passes: Vec<_> = (0..8)
        .map(|_| tokio::spawn(reconcile(cached(), cx.clone())))
        .collect();
    tokio::time::sleep(Duration::from_millis(1)).await;
    cx.pods_listed.set(()).unwrap();
    for pass in passes {
        assert!(pass.await.unwrap().is_err(), "the fake API server fails");
    }
    assert_eq!(log.lock().unwrap().len(), 8);
}
