//! Writes that fail, or that are made and not acknowledged.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, ensure};
use boxes_tests::harness::{Fault, Met, Moment, PATIENCE, Reason, State, a_box, e2e_alone, tell};
use kube::ResourceExt;
use serde_json::Value;

use crate::help::{UNTIL_TOLD, has_ended};

/// How long a pod must be kept whose ending is not acknowledged.
const A_WHILE: Duration = Duration::from_secs(5);

/// Each write fails twice: first it is not made, then it is made and nobody hears of it. After that
/// it goes through.
#[tokio::test]
async fn lives_whose_every_write_fails_twice_are_lived_once_and_end_right() {
    e2e_alone(async |world| {
        let mut story = world.story().await?;
        let controller = world.host_controller().await?;
        let namespace = world.namespace().to_owned();
        let seen: Mutex<BTreeMap<String, usize>> = Mutex::default();
        controller.proxy().fails(move |ask| {
            if ask.namespace != namespace || !ask.is_write_to_boxes_or_pods() {
                return None;
            }
            let name = match ask.body.pointer("/metadata/name").and_then(Value::as_str) {
                Some(name) if ask.name.is_empty() => name,
                _ => &ask.name,
            };
            let ended = ask.writes_an_ending();
            let what = format!("{} {} {name} {ended}", ask.verb, ask.resource);
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            let count = seen.entry(what).or_default();
            *count += 1;
            match count {
                1 => Some(Fault::Refused(500)),
                2 => Some(Fault::DoneAndRefused),
                _ => None,
            }
        });
        let returns = a_box("returns").shell("exit 3").create(world).await?;
        let stopped = a_box("stopped").shell(UNTIL_TOLD).create(world).await?;
        stopped.says("ready").await?;
        stopped.stop().await?;
        returns
            .ends_as(State::Exited, Reason::Exit)
            .with_code(3)
            .await?;
        stopped
            .ends_as(State::Stopped, Reason::Stopped)
            .with_code(0)
            .await?;
        returns.is_cleaned_up().await?;
        stopped.is_cleaned_up().await?;
        returns.delete().await?;
        returns.is_gone().await?;
        let told = story.until("both pods to be gone", |all| {
            all.iter()
                .filter(|it| it.gone && it.pod().is_some())
                .count()
                >= 2
        });
        let told = told.await?;
        let uids: std::collections::BTreeSet<_> = told
            .iter()
            .filter_map(Moment::pod)
            .filter_map(ResourceExt::uid)
            .collect();
        ensure!(uids.len() == 2, "run more than once: {}", tell(&told));
        for it in [&returns, &stopped] {
            released_after_its_ending(&told, it.name())?;
        }
        controller.stop().await
    })
    .await;
}

/// In the store, the ending comes before the release.
fn released_after_its_ending(told: &[Moment], name: &str) -> Result<()> {
    let ended = told.iter().find(|moment| {
        let object = moment.a_box().filter(|object| has_ended(object));
        object.is_some_and(|object| object.name_any() == name)
    });
    let released = told.iter().find(|moment| {
        let pod = moment.pod().filter(|_| !moment.is_held_pod());
        pod.is_some_and(|pod| pod.name_any() == name)
    });
    let order = ended.zip(released);
    ensure!(
        order.is_some_and(|(ended, released)| ended.version < released.version),
        "{name}: {}",
        tell(told)
    );
    Ok(())
}

#[tokio::test]
async fn a_pod_is_kept_while_its_ending_cannot_be_recorded() {
    e2e_alone(async |world| {
        let controller = world.host_controller().await?;
        let proxy = controller.proxy();
        let namespace = world.namespace().to_owned();
        proxy.fails(move |ask| {
            let ours = ask.namespace == namespace && ask.writes_an_ending();
            ours.then_some(Fault::Refused(500))
        });
        let since = proxy.count();
        let it = a_box("unrecorded").shell("exit 3").create(world).await?;
        let (pod, _) = it.has_a_finished_pod().await?;
        let refused = |met: &[Met]| met.iter().filter(|met| met.fault.is_some()).count() >= 2;
        proxy
            .until(since, "endings that are refused", refused)
            .await?;
        let takes = |met: &Met| {
            let ours = met.ask.namespace == world.namespace();
            ours && met.ask.resource == "pods" && met.ask.is_destructive()
        };
        proxy.never("the pod was touched", A_WHILE, takes).await?;
        ensure!(!proxy.since(since).iter().any(takes), "touched early");
        proxy.heals();
        it.ends_as(State::Exited, Reason::Exit).with_code(3).await?;
        it.has_no_pod_left(&pod).await?;
        controller.stop().await
    })
    .await;
}

/// The attempts come further and further apart, the neighbours do not feel them, and nothing is
/// dropped: once the cause is gone the clean-up goes on.
#[tokio::test]
async fn a_clean_up_that_fails_again_and_again_slows_itself_down_and_no_neighbour() {
    e2e_alone(async |world| {
        let controller = world.host_controller().await?;
        let proxy = controller.proxy();
        let namespace = world.namespace().to_owned();
        proxy.fails(move |ask| {
            let ours = ask.namespace == namespace && ask.name == "stuck";
            (ours && ask.releases_a_pod()).then_some(Fault::Refused(500))
        });
        let stuck = a_box("stuck").shell("exit 3").create(world).await?;
        stuck
            .ends_as(State::Exited, Reason::Exit)
            .with_code(3)
            .await?;
        for number in 0..4 {
            let it = a_box(format!("neighbour-{number}")).runs(["true"]);
            let it = it.create(world).await?;
            it.is_cleaned_up().await?;
        }
        // The kubelet's last words about the pod may begin the count anew; then nothing changes.
        controller
            .says(PATIENCE, |line| wait(line).is_some_and(|ms| ms >= 4000))
            .await?;
        let log = controller.log();
        let waits: Vec<_> = log.iter().filter_map(|line| wait(line)).collect();
        let last = &waits[waits.len().saturating_sub(3)..];
        ensure!(
            last.len() == 3 && last.windows(2).all(|pair| pair[0] < pair[1]),
            "the waits are {waits:?} ms"
        );
        let status = stuck.status().await?;
        let up = status.conditions.iter().find(|it| it.type_ == "CleanedUp");
        ensure!(up.is_some_and(|it| it.status == "False"), "{status:?}");
        proxy.heals();
        stuck.is_cleaned_up().await?;
        controller.stop().await
    })
    .await;
}

/// The time until the next attempt that a line about the stuck box names.
fn wait(line: &str) -> Option<u64> {
    let line: Value = serde_json::from_str(line).ok()?;
    let about = line.get("name").and_then(Value::as_str) == Some("stuck");
    line.get("retry_in_ms")
        .filter(|_| about)
        .and_then(Value::as_u64)
}
