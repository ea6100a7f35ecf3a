//! The one file that writes what was decided. Every write names the UID that the decision was made
//! on; the API server refuses it for any other object.

use boxes_crds::{BOX_FINALIZER, BoxStatus, POD_FINALIZERS};
use boxes_lifecycle::{BoxView, Refusal, World, Write, pod_name};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Preconditions};
use kube::core::Status;
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

use crate::context::Context;
use crate::error::{Error, api_status};
use crate::memory::{Memory, pace};
use crate::observe::live_box;
use crate::requests::{Target, apply_status, create, delete, merge};

/// What is called when a pod is asked to stop, or to end earlier.
const LOWERING: &str = "lowering the pod's deadline";

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is done, and an event of the changed object follows.
    Done,
    /// The API server refused it in a way that the next decision knows about.
    Answered,
    /// It was not made: the Box has changed since it was decided, and an event of that is on its way.
    Outdated,
}

/// Makes the decided write.
pub(crate) async fn apply(cx: &Context, world: &World, write: &Write) -> Result<Outcome, Error> {
    let object = &world.object;
    match write {
        Write::HoldBox => hold_box(cx, object).await,
        Write::ReleaseBox => release_box(cx, object).await,
        Write::DeleteBox => delete_box(cx, object).await,
        Write::CreatePod(pod) => create_pod(cx, world, pod).await,
        Write::LowerDeadline { .. } | Write::DeletePod { .. } | Write::ReleasePod { .. } => {
            let pod = Target {
                namespace: object.namespace(),
                name: &pod_name(object.name()),
            };
            let finalizers = world
                .pod
                .ours()
                .map(ResourceExt::finalizers)
                .unwrap_or_default();
            let answer = change_pod(cx, pod, write, finalizers).await;
            note_pod_answer(cx, object, write, answer)
        }
    }
}

/// Makes a write to an existing pod and gives the version that it then has.
pub(crate) async fn change_pod(
    cx: &Context,
    pod: Target<'_>,
    write: &Write,
    finalizers: &[String],
) -> Result<Option<u64>, Error> {
    match write {
        Write::LowerDeadline {
            uid,
            resource_version,
            seconds,
        } => {
            let spec = json!({"activeDeadlineSeconds": seconds});
            let patch = guarded(uid, resource_version, json!({"spec": spec}));
            let lowered = merge::<Pod>(&cx.client, pod, &patch).await;
            lowered.map_err(Error::call(LOWERING))
        }
        Write::ReleasePod {
            uid,
            resource_version,
        } => {
            let kept = without(finalizers, &POD_FINALIZERS);
            let patch = guarded(
                uid,
                resource_version,
                json!({"metadata": {"finalizers": kept}}),
            );
            let released = merge::<Pod>(&cx.client, pod, &patch).await;
            released.map_err(Error::call("removing the pod's finalizers"))
        }
        Write::DeletePod {
            uid,
            resource_version,
            grace,
        } => {
            let params = DeleteParams {
                grace_period_seconds: *grace,
                preconditions: Some(Preconditions {
                    uid: Some(uid.clone()),
                    resource_version: resource_version.clone(),
                }),
                ..DeleteParams::default()
            };
            let deleted = delete::<Pod>(&cx.client, pod, &params).await;
            deleted
                .map(|()| None)
                .map_err(Error::call("deleting the pod"))
        }
        Write::HoldBox | Write::CreatePod(_) | Write::DeleteBox | Write::ReleaseBox => Ok(None),
    }
}

/// Remembers the version that our own write gave the pod, and a refusal to lower its deadline.
fn note_pod_answer(
    cx: &Context,
    object: &BoxView,
    write: &Write,
    answer: Result<Option<u64>, Error>,
) -> Result<Outcome, Error> {
    match answer {
        Ok(version) => {
            // A pod that is released may be gone with that, and is then not waited for.
            let version = version.filter(|_| matches!(write, Write::LowerDeadline { .. }));
            cx.memories
                .change(object.uid(), |memory| memory.pod_version = version);
            Ok(Outcome::Done)
        }
        Err(Error::Call {
            call: LOWERING,
            source,
        }) if refuses(&source) => {
            tracing::warn!(
                namespace = object.namespace(),
                name = object.name(),
                error = %source,
                "the pod's deadline cannot be lowered, so the pod is deleted to stop it"
            );
            cx.memories
                .change(object.uid(), |memory| memory.deadline_refused = true);
            Ok(Outcome::Answered)
        }
        Err(error) => Err(error),
    }
}

fn refuses(error: &kube::Error) -> bool {
    api_status(error).is_some_and(|status| status.is_forbidden() || status.is_invalid())
}

async fn hold_box(cx: &Context, object: &BoxView) -> Result<Outcome, Error> {
    let mut finalizers = object.finalizers().to_vec();
    finalizers.push(BOX_FINALIZER.to_owned());
    let outcome = patch_box(cx, object, &finalizers, "adding the Box's finalizer").await?;
    cx.memories
        .change(object.uid(), |memory| memory.just_held = true);
    Ok(outcome)
}

async fn release_box(cx: &Context, object: &BoxView) -> Result<Outcome, Error> {
    let finalizers = without(object.finalizers(), &[BOX_FINALIZER]);
    let outcome = patch_box(cx, object, &finalizers, "removing the Box's finalizer").await?;
    cx.memories.forget(object.uid());
    Ok(outcome)
}

async fn patch_box(
    cx: &Context,
    object: &BoxView,
    finalizers: &[String],
    call: &'static str,
) -> Result<Outcome, Error> {
    let changes = json!({"metadata": {"finalizers": finalizers}});
    let patch = guarded(object.uid(), object.resource_version(), changes);
    let version = merge::<BoxView>(&cx.client, Target::of(object), &patch)
        .await
        .map_err(Error::call(call))?;
    cx.memories
        .change(object.uid(), |memory| memory.box_version = version);
    Ok(Outcome::Done)
}

async fn delete_box(cx: &Context, object: &BoxView) -> Result<Outcome, Error> {
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: Some(object.uid().to_owned()),
            resource_version: Some(object.resource_version().to_owned()),
        }),
        ..DeleteParams::default()
    };
    delete::<BoxView>(&cx.client, Target::of(object), &params)
        .await
        .map_err(Error::call("deleting the Box"))?;
    Ok(Outcome::Done)
}

/// Whether a Box may have run although the cache says that it did not: after a restart or a change
/// of the leader the cache may be behind, and a Box runs once.
async fn may_have_run(cx: &Context, object: &BoxView) -> Result<bool, Error> {
    if cx.memories.of(object.uid()).just_held {
        return Ok(false);
    }
    let live = live_box(cx, object.namespace(), object.name()).await?;
    Ok(live.is_none_or(|live| live.resource_version() != object.resource_version()))
}

async fn create_pod(cx: &Context, world: &World, pod: &Pod) -> Result<Outcome, Error> {
    let object = &world.object;
    if may_have_run(cx, object).await? {
        return Ok(Outcome::Outdated);
    }
    let error = match create(&cx.client, object.namespace(), pod).await {
        Ok(version) => {
            cx.memories.change(object.uid(), |memory| {
                memory.pod_version = version;
                memory.just_held = false;
                memory.refusal = None;
                memory.refusals = 0;
            });
            return Ok(Outcome::Done);
        }
        Err(error) => error,
    };
    let mut answered = false;
    if let Some(status) = api_status(&error) {
        cx.memories.change(object.uid(), |memory| {
            answered = note_refusal(memory, world, status);
        });
    }
    if answered {
        Ok(Outcome::Answered)
    } else {
        Err(Error::call("creating the pod")(error))
    }
}

/// Remembers a refusal that the next decision is to know. False for what is only a failed call.
fn note_refusal(memory: &mut Memory, world: &World, status: &Status) -> bool {
    let message = status.message.clone();
    match status.code {
        409 if status.is_already_exists() => memory.name_collided = true,
        // 400: the server could not even read it as a pod.
        422 | 400 => memory.refusal = Some(Refusal::Invalid { message }),
        403 if namespace_terminates(status) => memory.refusal = Some(Refusal::NamespaceTerminating),
        403 => {
            memory.refusals = memory.refusals.saturating_add(1);
            let pace = pace(memory.refusals, world.object.uid());
            let retry_at = world.now.checked_add(pace).unwrap_or(world.now);
            memory.refusal = Some(Refusal::Forbidden { message, retry_at });
        }
        _ => return false,
    }
    true
}

fn namespace_terminates(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes
        .into_iter()
        .any(|cause| cause.reason == "NamespaceTerminating")
}

/// Writes the whole status, on the very object that it was decided on.
pub(crate) async fn write_status(
    cx: &Context,
    object: &BoxView,
    status: &BoxStatus,
) -> Result<(), Error> {
    let patch = json!({
        "apiVersion": BoxView::api_version(&()),
        "kind": BoxView::kind(&()),
        "metadata": {"name": object.name(), "uid": object.uid(), "resourceVersion": object.resource_version()},
        "status": status,
    });
    let version = apply_status::<BoxView>(&cx.client, Target::of(object), &patch)
        .await
        .map_err(Error::call("writing the Box's status"))?;
    cx.memories
        .change(object.uid(), |memory| memory.box_version = version);
    Ok(())
}

/// A merge patch that the API server answers with 409 for any other object or version.
fn guarded(uid: &str, resource_version: &str, mut changes: Value) -> Value {
    let metadata = &mut changes["metadata"];
    metadata["uid"] = uid.into();
    metadata["resourceVersion"] = resource_version.into();
    changes
}

fn without(finalizers: &[String], ours: &[&str]) -> Vec<String> {
    finalizers
        .iter()
        .filter(|name| !ours.contains(&name.as_str()))
        .cloned()
        .collect()
}

/// The resource version as a number: Kubernetes lets clients compare them so since 1.35, and every
/// API server with etcd behind it has always written them so.
pub(crate) fn version_of<K: Resource>(object: &K) -> Option<u64> {
    object.meta().resource_version.as_deref()?.parse().ok()
}
