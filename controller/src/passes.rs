//! From events to passes: what the watches tell, and when a pass is made over which Box.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use boxes_crds::BOX_UID_LABEL;
use boxes_lifecycle::PodView;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Api, Resource};
use tokio::sync::SetOnce;
use tokio::task::JoinSet;

use crate::cache::CachedBox;
use crate::context::Context;
use crate::reconcile::{on_error, reconcile};
use crate::watches::follow;

/// Keeps the cache of Boxes, and asks for a pass over each that changes.
pub(crate) async fn watch_boxes(cx: Arc<Context>, cache: Writer<CachedBox>) {
    let boxes = Api::<CachedBox>::all(cx.client.clone());
    let boxes = watcher(boxes, watcher::Config::default()).default_backoff();
    let news = |event: &Event<CachedBox>| match event {
        Event::Apply(object) => cx.queue.push(ObjectRef::from_obj(object)),
        Event::InitDone => all_may_have_changed(&cx, &cx.boxes_listed),
        Event::Delete(_) | Event::Init | Event::InitApply(_) => {}
    };
    follow(&cx.metrics, reflector(cache, boxes), news).await;
}

/// Keeps the cache of pods, and asks for a pass over the Box of each that changes.
pub(crate) async fn watch_pods(cx: Arc<Context>, cache: Writer<PodView>) {
    let pods = Api::<PodView>::all(cx.client.clone());
    let ours = watcher::Config::default().labels(BOX_UID_LABEL);
    let pods = watcher(pods, ours).default_backoff();
    let news = |event: &Event<PodView>| match event {
        Event::Apply(pod) | Event::Delete(pod) => owners(pod).for_each(|key| cx.queue.push(key)),
        Event::InitDone => all_may_have_changed(&cx, &cx.pods_listed),
        Event::Init | Event::InitApply(_) => {}
    };
    follow(&cx.metrics, reflector(cache, pods), news).await;
}

/// A watch has a whole list: what became of each object before it, nobody told.
fn all_may_have_changed(cx: &Context, listed: &SetOnce<()>) {
    // It is set already when a watch lists again.
    let _ = listed.set(());
    for object in cx.boxes.state() {
        cx.queue.push(ObjectRef::from_obj(&*object));
    }
}

/// The Boxes that own a pod.
fn owners(pod: &PodView) -> impl Iterator<Item = ObjectRef<CachedBox>> {
    let namespace = pod.meta().namespace.as_deref();
    let owners = pod.meta().owner_references.iter().flatten();
    owners.filter_map(move |owner| ObjectRef::from_owner_ref(namespace, owner, ()))
}

/// Makes passes, at most so many at once, until asked to stop. Those under way are then finished.
pub(crate) async fn make(cx: &Arc<Context>, at_once: usize, stop: impl Future<Output = ()>) {
    let mut stop = pin!(stop);
    let mut passes = JoinSet::new();
    tokio::select! {
        () = &mut stop => return,
        () = listed(cx) => {}
    }
    loop {
        tokio::select! {
            biased;
            () = &mut stop => break,
            Some(_) = passes.join_next(), if passes.len() >= at_once => {}
            key = cx.queue.next(), if passes.len() < at_once => {
                passes.spawn(pass(cx.clone(), key));
            }
        }
    }
    while passes.join_next().await.is_some() {}
}

/// What is deleted before the first list of pods would never be told of.
async fn listed(cx: &Context) {
    cx.boxes_listed.wait().await;
    cx.pods_listed.wait().await;
}

/// One pass over what the cache has by now.
async fn pass(cx: Arc<Context>, key: ObjectRef<CachedBox>) {
    let again = match cx.boxes.get(&key) {
        Some(cached) => reconcile(&cached, &cx)
            .await
            .unwrap_or_else(|error| Some(on_error(&cached, &error, &cx))),
        None => None,
    };
    cx.queue.done(key, again);
}
