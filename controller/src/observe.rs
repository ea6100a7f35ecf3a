//! The one file that reads the cluster for a decision.

use std::sync::Arc;

use boxes_lifecycle::{
    BoxView, NodeView, PodView, Seen, World, deletion_asked, misses_container, needs_injection,
    needs_live_pod, needs_namespace, needs_node, pod_name,
};
use boxes_program::says_absent;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::api::Api;
use kube::runtime::reflector::ObjectRef;
use serde::de::DeserializeOwned;

use crate::context::Context;
use crate::error::Error;
use crate::memory::Memory;

/// The taint that an administrator sets on a node that is shut down for good.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// The world of one Box. Any read that fails fails the pass: nothing is concluded from it.
pub(crate) async fn observe(
    cx: &Context,
    object: &BoxView,
    memory: &Memory,
    now: Timestamp,
) -> Result<World, Error> {
    let mut world = from_caches(cx, object, memory, now);
    if needs_injection(&world) {
        world.supervisor = cx.supervision.for_new_pods().await;
    }
    if needs_live_pod(&world) {
        let found = live_pod(cx, object).await?;
        world.pod = Seen::judge(object, found, true);
    }
    world.missing_since = misses_container(&world).then(|| world.missing_since.unwrap_or(now));
    world.deletion_asked = deletion_asked(&world);
    if (world.missing_since, world.deletion_asked) != (memory.missing_since, memory.deletion_asked)
    {
        cx.memories.change(object.uid(), |memory| {
            memory.missing_since = world.missing_since;
            memory.deletion_asked = world.deletion_asked;
        });
    }
    if let Some(node) = needs_node(&world).map(str::to_owned) {
        world.node = node_view(cx, &world, memory, &node).await?;
    }
    if needs_namespace(&world) {
        world.namespace_terminating = namespace_terminating(cx, object.namespace()).await?;
    }
    Ok(world)
}

fn from_caches(cx: &Context, object: &BoxView, memory: &Memory, now: Timestamp) -> World {
    let cached = cached_pod(cx, object);
    World {
        pod: Seen::judge(object, cached.as_deref().cloned(), false),
        name_collided: memory.name_collided,
        refusal: memory.refusal.clone(),
        trouble: memory.trouble.clone(),
        missing_since: memory.missing_since,
        deletion_asked: memory.deletion_asked,
        deadline_refused: memory.deadline_refused,
        supervisor: cx.supervision.any(),
        saves_output: cx.saves_output,
        crowded: cx.queue.is_crowded(),
        ..World::unseen(object.clone(), now)
    }
}

/// The cache's word for the pod of a Box.
pub(crate) fn cached_pod(cx: &Context, object: &BoxView) -> Option<Arc<PodView>> {
    let key = ObjectRef::<PodView>::new(&pod_name(object.name())).within(object.namespace());
    cx.pods.get(&key)
}

async fn live_pod(cx: &Context, object: &BoxView) -> Result<Option<PodView>, Error> {
    let api = cx.pods_in(object.namespace());
    read(&api, &pod_name(object.name()), "reading the pod").await
}

/// Reads the Box live.
pub(crate) async fn live_box(
    cx: &Context,
    namespace: &str,
    name: &str,
) -> Result<Option<BoxView>, Error> {
    read(&cx.boxes_in(namespace), name, "reading the Box").await
}

/// Reads an object live. `None` only when the API server says that this very object is absent.
async fn read<K>(api: &Api<K>, name: &str, call: &'static str) -> Result<Option<K>, Error>
where
    K: Clone + std::fmt::Debug + DeserializeOwned,
{
    match api.get(name).await {
        Ok(found) => Ok(Some(found)),
        Err(error) if says_absent(&error, name) => Ok(None),
        Err(error) => Err(Error::call(call)(error)),
    }
}

async fn node_view(
    cx: &Context,
    world: &World,
    memory: &Memory,
    name: &str,
) -> Result<NodeView, Error> {
    let api: Api<Node> = Api::all(cx.client.clone());
    let uid = world.object.uid();
    let Some(node) = read(&api, name, "reading the node").await? else {
        let version = world
            .pod
            .ours()
            .map(PodView::resource_version)
            .unwrap_or_default();
        let since = absent_since(memory, version).unwrap_or(world.now);
        let noted = Some((since, version.to_owned()));
        cx.memories.change(uid, |memory| memory.node_absent = noted);
        return Ok(NodeView::AbsentSince { since });
    };
    cx.memories.change(uid, |memory| memory.node_absent = None);
    Ok(NodeView::Present {
        ready: is_ready(&node),
        out_of_service: is_out_of_service(&node),
    })
}

/// Since when the node was found absent, if nothing has reported the pod in between.
fn absent_since(memory: &Memory, pod_version: &str) -> Option<Timestamp> {
    let (since, version) = memory.node_absent.as_ref()?;
    (version == pod_version).then_some(*since)
}

fn is_ready(node: &Node) -> bool {
    let status = node.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    conditions
        .into_iter()
        .flatten()
        .any(|known| known.type_ == "Ready" && known.status == "True")
}

fn is_out_of_service(node: &Node) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    taints
        .into_iter()
        .flatten()
        .any(|taint| taint.key == OUT_OF_SERVICE)
}

async fn namespace_terminating(cx: &Context, name: &str) -> Result<bool, Error> {
    let api: Api<Namespace> = Api::all(cx.client.clone());
    let found = read(&api, name, "reading the namespace").await?;
    Ok(found.is_none_or(|namespace| namespace.metadata.deletion_timestamp.is_some()))
}
