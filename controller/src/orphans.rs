//! Looks, now and then, for pods that are ours by label and whose Box is gone.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use boxes_crds::BOX_NAME_ANNOTATION;
use boxes_lifecycle::{Orphan, PodView, orphan_write};
use jiff::Timestamp;
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;

use crate::apply::change_pod;
use crate::cache::CachedBox;
use crate::context::Context;
use crate::error::Error;
use crate::observe::live_box;
use crate::requests::Target;

/// The time between two passes.
const PACE: Duration = Duration::from_mins(1);

/// Looks for orphans for ever.
pub(crate) async fn watch(cx: Arc<Context>) {
    let mut absent = HashSet::new();
    loop {
        tokio::time::sleep(PACE).await;
        absent = pass(&cx, &absent).await;
        let boxes = cx.boxes.state();
        let uids: HashSet<_> = boxes.iter().map(|object| object.uid()).collect();
        cx.memories.keep_only(|uid| uids.contains(uid));
    }
}

/// One pass. Gives the UIDs of the pods whose Box a live read found absent.
async fn pass(cx: &Context, before: &HashSet<String>) -> HashSet<String> {
    let mut absent = HashSet::new();
    for pod in cx.pods.state() {
        if owner_is_cached(cx, &pod) {
            continue;
        }
        match tend(cx, &pod, before.contains(pod.uid())).await {
            Ok(true) => drop(absent.insert(pod.uid().to_owned())),
            Ok(false) => {}
            Err(error) => tracing::warn!(
                namespace = pod.namespace(),
                pod = pod.name(),
                error = %error,
                "a pod without a box could not be looked after"
            ),
        }
    }
    absent
}

fn owner_is_cached(cx: &Context, pod: &PodView) -> bool {
    let Some(name) = pod.annotation(BOX_NAME_ANNOTATION) else {
        return false;
    };
    let namespace = pod.namespace().unwrap_or_default();
    let found = cx
        .boxes
        .get(&ObjectRef::<CachedBox>::new(name).within(&namespace));
    found.is_some_and(|object| Some(object.uid()) == pod.owner_uid())
}

/// Looks after one pod. Whether its Box is positively absent.
async fn tend(cx: &Context, pod: &PodView, absent_before: bool) -> Result<bool, Error> {
    let (Some(owner), Some(name)) = (pod.owner_uid(), pod.annotation(BOX_NAME_ANNOTATION)) else {
        return Ok(false);
    };
    let namespace = pod.namespace().unwrap_or_default();
    let found = live_box(cx, &namespace, name).await?;
    let absent_now = found.is_none_or(|object| object.uid() != owner);
    let orphan = Orphan {
        absent_now,
        absent_before,
    };
    if let Some(write) = orphan_write(Timestamp::now(), pod, orphan) {
        tracing::info!(
            namespace,
            pod = pod.name(),
            uid = pod.uid(),
            write = write.as_str(),
            "a pod whose box is gone is being removed"
        );
        let target = Target {
            namespace: &namespace,
            name: pod.name(),
        };
        change_pod(cx, target, &write, pod.finalizers()).await?;
    }
    Ok(absent_now)
}
