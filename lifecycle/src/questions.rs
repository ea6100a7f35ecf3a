//! What must still be looked up before a decision may be made. Reads cost the API server; these
//! rules say which ones honesty needs.

use boxes_crds::{BoxSpec, condition};

use crate::conditions::POD_NAME_TAKEN;
use crate::confirm::{confirmation, missing};
use crate::decide::waits_for_kubelet;
use crate::ending::refused_until;
use crate::output;
use crate::pod_view::PodView;
use crate::record::Record;
use crate::status::{intended_stop, stopped_before_its_pod};
use crate::world::{Refusal, Seen, World};
use crate::writes::wants_pod;

/// Whether the pod must be read live, given what the cache holds: where its absence would mean
/// something, where something is being deleted, and before a stop is recorded, since the command
/// may just have ended by itself.
#[must_use]
pub fn needs_live_pod(cached: &World) -> bool {
    let object = &cached.object;
    let Some((spec, record)) = cached.readable() else {
        return object.deleting() || is_confirmed(cached);
    };
    if object.deleting() {
        return object.holds_record();
    }
    if record.cleaned_up() {
        return false;
    }
    match &cached.pod {
        Seen::NotSeen | Seen::Foreign => {
            may_exist_unseen(cached, record) || ends_without_pod(cached, spec, record)
        }
        Seen::Ours(_) => intended_stop(cached, spec, record).is_some(),
        Seen::Absent => false,
    }
}

/// A pod that was recorded, or that somebody else has made, can be there although no event told.
fn may_exist_unseen(cached: &World, record: &Record) -> bool {
    let taken = record
        .condition(condition::ACCEPTED)
        .is_some_and(|accepted| accepted.reason == POD_NAME_TAKEN);
    let recorded =
        record.status.run.is_some() || record.ending.is_some() || record.stop_requested();
    recorded || taken || cached.name_collided || cached.pod == Seen::Foreign
}

/// Whether the box would end because it cannot have a pod: it must then have none.
fn ends_without_pod(cached: &World, spec: &BoxSpec, record: &Record) -> bool {
    let invalid = matches!(cached.refusal, Some(Refusal::Invalid { .. }));
    let late = refused_until(spec, record).is_some_and(|due| cached.now >= due);
    invalid || late || stopped_before_its_pod(cached, spec, record)
}

/// Whether a person's confirmation names this Box's pod.
fn is_confirmed(world: &World) -> bool {
    let uid = world.pod.ours().map(PodView::uid);
    let uid = uid.or(world.object.recorded_pod_uid.as_deref());
    uid.is_some_and(|uid| world.object.confirms_stopped(uid))
}

/// Whether it matters by which way the supervisor gets into a pod: only before there is one.
#[must_use]
pub fn needs_injection(world: &World) -> bool {
    let content = world.readable();
    content.is_some_and(|(spec, record)| wants_pod(world, spec, record))
}

/// The node to be read live: that of a pod whose stop waits for the kubelet's word.
#[must_use]
pub fn needs_node(world: &World) -> Option<&str> {
    let pod = world.pod.ours()?;
    let awaited = match world.readable() {
        Some((_, record)) => waits_for_kubelet(world, record, pod),
        // Its namespace may be being deleted, and it must then not wait for a node that is gone.
        None => pod.deleting(),
    };
    let node = pod.node.as_deref()?;
    let stop = awaited && !confirmation(world, pod).is_stopped();
    (stop || misses_output(world, pod)).then_some(node)
}

/// Whether the collector of the pod's node takes so long that the node is to be looked at.
fn misses_output(world: &World, pod: &PodView) -> bool {
    let content = world.readable();
    content.is_some_and(|(_, record)| output::is_missed(&record.status, world, pod))
}

/// Whether it matters that the namespace is being deleted: only then may an unreadable Box go
/// without a person's word, and a pod without its output having been saved.
#[must_use]
pub fn needs_namespace(world: &World) -> bool {
    let going = world.object.deleting() || world.pod.ours().is_some_and(PodView::deleting);
    let pod = world.pod.ours().filter(|pod| pod.deleting());
    world.readable().map_or(going, |(_, record)| {
        pod.is_some_and(|pod| output::is_awaited(&record.status, world, pod))
    })
}

/// Whether a container that was recorded as started is missing from the pod's status, so that the
/// time since then must be remembered.
#[must_use]
pub fn misses_container(world: &World) -> bool {
    let pod = world.pod.ours();
    pod.is_some_and(|pod| missing(&world.object, pod))
}
