//! One pass over one Box: observe, decide, apply.

use std::time::Duration;

use boxes_crds::BoxStatus;
use boxes_lifecycle::{
    BoxView, Decision, PodView, Trouble, World, Write, decide, trace, trace_of_released,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;

use crate::apply::{Outcome, apply, version_of, write_status};
use crate::cache::CachedBox;
use crate::context::Context;
use crate::error::Error;
use crate::memory::{Cause, Memory};
use crate::observe::{cached_pod, live_box, observe};

/// How long a pass may take. Longer means that the API server does not answer.
const LIMIT: Duration = Duration::from_mins(1);

/// When to look again for an event that should have come long ago.
const LATE: Duration = Duration::from_secs(5);

/// When to look again after a write that came too late, should no event tell why it did.
const OUTDATED: Duration = Duration::from_secs(1);

/// When to make a pass again although nothing happens.
pub(crate) type Again = Option<Duration>;

/// One pass over a Box.
pub(crate) async fn reconcile(cached: &CachedBox, cx: &Context) -> Result<Again, Error> {
    cx.metrics.count_pass();
    match cached {
        CachedBox::Whole(object) => reconcile_whole(object, cx).await,
        CachedBox::Settled {
            expires_at: None, ..
        } => Ok(None),
        CachedBox::Settled {
            expires_at: Some(at),
            metadata,
            ..
        } => reconcile_expiring(metadata, *at, cx).await,
    }
}

/// A Box that asks for nothing until its time is over.
async fn reconcile_expiring(
    metadata: &ObjectMeta,
    at: Timestamp,
    cx: &Context,
) -> Result<Again, Error> {
    let wait = at.duration_since(Timestamp::now());
    if wait.is_positive() {
        return Ok(Some(wait.unsigned_abs()));
    }
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let name = metadata.name.as_deref().unwrap_or_default();
    match live_box(cx, namespace, name).await? {
        Some(object) => reconcile_whole(&object, cx).await,
        None => Ok(None),
    }
}

/// One pass.
async fn reconcile_whole(object: &BoxView, cx: &Context) -> Result<Again, Error> {
    let memory = cx.memories.of(object.uid());
    let pod = cached_pod(cx, object);
    if is_outdated(object, pod.as_deref(), &memory) {
        if pod.is_none() {
            // It is not there yet, or not any more: it is waited for once.
            cx.memories
                .change(object.uid(), |memory| memory.pod_version = None);
        }
        return Ok(Some(LATE));
    }
    cx.memories.change(object.uid(), Memory::caught_up);
    if let Some(wait) = memory.not_due(Timestamp::now(), &cause_of(cx, object)) {
        tell_trouble(cx, object, &memory).await;
        return Ok(Some(wait));
    }
    let pass = pass(cx, object, &memory);
    let result = tokio::time::timeout(LIMIT, pass)
        .await
        .unwrap_or(Err(Error::Timeout {
            seconds: LIMIT.as_secs(),
        }));
    match result {
        Ok(action) => {
            cx.memories.change(object.uid(), Memory::succeeded);
            Ok(action)
        }
        // Somebody else wrote in between: what was decided is no longer asked.
        Err(error) if error.is_outdated() => {
            cx.metrics.count_error(error.class());
            Ok(Some(OUTDATED))
        }
        Err(error) => Err(error),
    }
}

/// What to do about a pass that failed: again, at a pace that slows down and never ends.
pub(crate) fn on_error(cached: &CachedBox, error: &Error, cx: &Context) -> Duration {
    cx.metrics.count_error(error.class());
    let metadata = cached.meta();
    let uid = metadata.uid.as_deref().unwrap_or_default();
    let with = match cached {
        CachedBox::Whole(object) => cause_of(cx, object),
        CachedBox::Settled { .. } => Cause::default(),
    };
    let mut wait = LATE;
    let mut stalled = false;
    cx.memories.change(uid, |memory| {
        wait = memory.failed(Timestamp::now(), uid, with, error.to_string());
        stalled = memory.trouble.as_ref().is_some_and(Trouble::is_stalled);
    });
    tracing::warn!(
        namespace = metadata.namespace,
        name = metadata.name,
        uid,
        class = error.class(),
        error = %error,
        retry_in_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
        "a pass over the box failed"
    );
    // Before the next attempt it is told that this one failed.
    if stalled { Duration::ZERO } else { wait }
}

fn cause_of(cx: &Context, object: &BoxView) -> Cause {
    Cause {
        generation: object.metadata.generation,
        annotations: object.metadata.annotations.clone(),
        pod: cached_pod(cx, object).and_then(|pod| version_of(&*pod)),
    }
}

/// Between two attempts nothing is done about a Box in trouble but to say so, once a person should
/// know.
async fn tell_trouble(cx: &Context, object: &BoxView, memory: &Memory) {
    if !memory.trouble.as_ref().is_some_and(Trouble::is_stalled) {
        return;
    }
    let telling = async {
        let world = observe(cx, object, memory, Timestamp::now()).await?;
        match &decide(&world).status {
            Some(status) => record(cx, &world, status).await,
            None => Ok(()),
        }
    };
    // What cannot be said now is said after the next attempt.
    match tokio::time::timeout(LIMIT, telling).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(error = %error, "trouble could not be told"),
        Err(_) => tracing::debug!("trouble could not be told: no answer"),
    }
}

/// Whether the caches have not seen our own last write: its event brings the next pass.
fn is_outdated(object: &BoxView, pod: Option<&PodView>, memory: &Memory) -> bool {
    let older = |seen: Option<u64>, written: Option<u64>| matches!((seen, written), (Some(seen), Some(written)) if seen < written);
    let pod_behind = match pod {
        Some(pod) => older(version_of(pod), memory.pod_version),
        None => memory.pod_version.is_some(),
    };
    older(version_of(object), memory.box_version) || pod_behind
}

async fn pass(cx: &Context, object: &BoxView, memory: &Memory) -> Result<Again, Error> {
    let world = observe(cx, object, memory, Timestamp::now()).await?;
    name_unreadable(cx, object, memory);
    let decision = decide(&world);
    let written = write(cx, &world, &decision).await;
    // A write that fails is no reason to keep silent about it.
    let outdated = written.is_ok() && decision.write.as_ref().is_some_and(Write::outdates_status);
    if let Some(status) = decision.status.as_ref().filter(|_| !outdated) {
        record(cx, &world, status).await?;
    }
    Ok(next(written?, &decision))
}

async fn write(cx: &Context, world: &World, decision: &Decision) -> Result<Outcome, Error> {
    let Some(write) = &decision.write else {
        return Ok(Outcome::Done);
    };
    let outcome = apply(cx, world, write).await?;
    cx.metrics.count_write(write.as_str());
    tracing::debug!(
        namespace = world.object.namespace(),
        name = world.object.name(),
        uid = world.object.uid(),
        write = write.as_str(),
        outcome = ?outcome,
        "wrote what was decided"
    );
    if *write == Write::ReleaseBox && outcome == Outcome::Done {
        cx.traces.send(|| trace_of_released(world));
    }
    Ok(outcome)
}

/// Writes the status and, once the API server has acknowledged it, says what is new.
async fn record(cx: &Context, world: &World, status: &BoxStatus) -> Result<(), Error> {
    write_status(cx, &world.object, status).await?;
    cx.metrics.count_write("status");
    let Some((_, record)) = world.readable() else {
        return Ok(());
    };
    let ended_now = record.ending.is_none() && status.reason.is_some();
    if ended_now {
        cx.metrics.count_ending(status, Timestamp::now());
    }
    cx.announcer.announce(&world.object, &record.status, status);
    cx.traces
        .send(|| trace(&world.object, &record.status, status));
    Ok(())
}

fn next(outcome: Outcome, decision: &Decision) -> Again {
    match outcome {
        Outcome::Done => decision.wake.map(SignedDuration::unsigned_abs),
        // The answer is in memory, where no event tells of it.
        Outcome::Answered => Some(Duration::ZERO),
        Outcome::Outdated => Some(OUTDATED),
    }
}

/// Logs, once for each version, that this build cannot read a Box.
fn name_unreadable(cx: &Context, object: &BoxView, memory: &Memory) {
    let Err(why) = &object.content else {
        return;
    };
    let version = Some(object.resource_version().to_owned());
    if memory.named_unreadable == version {
        return;
    }
    tracing::warn!(
        namespace = object.namespace(),
        name = object.name(),
        uid = object.uid(),
        why = %why,
        "the box is unreadable to this build and is left as it is"
    );
    cx.memories
        .change(object.uid(), |memory| memory.named_unreadable = version);
}
