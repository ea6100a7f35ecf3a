//! Commands that end at about the time at which something else ends them. What the pod itself recorded
//! tells which came first: its supervisor's report, and where there is none the times; where whole
//! seconds cannot tell, the cause has it.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use boxes_crds::{BoxObject, BoxStatus};
use boxes_tests::harness::{LiveBox, Moment, Story, World, a_box, e2e, tell};
use futures::{StreamExt, TryStreamExt, stream};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use crate::help::{end_of, has_ended, report_of};

const TRIES: u64 = 20;

/// As many as two cores can start at about the same time.
const AT_ONCE: usize = 5;

/// What the commands return by themselves.
const OWN: i32 = 5;

/// What they return when they are told to end.
const TOLD: i32 = 9;

/// What kills them that are told before they listen.
const TERM: i32 = 15;

/// A command that ends by itself after so long, and otherwise when it is told to.
fn lasting(time: Duration) -> String {
    let time = time.as_secs_f64();
    format!("trap 'exit {TOLD}' TERM; sleep {time} & wait $!; exit {OWN}")
}

/// State, reason, exit code and signal.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Ending(String, String, Option<i32>, Option<i32>);

impl Ending {
    fn of(status: &BoxStatus) -> Self {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let (state, reason) = (text(&status.state), text(&status.reason));
        Self(state, reason, status.exit_code, status.signal)
    }

    fn own(End { code, signal, .. }: &End) -> Self {
        let reason = if signal.is_some() { "Signal" } else { "Exit" };
        Self("Exited".into(), reason.into(), *code, *signal)
    }

    fn stopped(reason: &str, End { code, signal, .. }: &End) -> Self {
        Self("Stopped".into(), reason.into(), *code, *signal)
    }

    fn timeout() -> Self {
        Self("Exited".into(), "Timeout".into(), None, None)
    }
}

/// The end of a command, as its pod tells it.
#[derive(Debug)]
struct End {
    code: Option<i32>,
    signal: Option<i32>,
    finished: Timestamp,
    /// Whether a stop had reached the command; nothing where its supervisor was killed before it could
    /// tell.
    stop_received: Option<bool>,
}

impl End {
    fn of(pod: &Pod) -> Result<Self> {
        let told = end_of(pod).context("an end")?;
        let finished = told.finished_at.as_ref().context("no time of the end")?.0;
        let report = report_of(told).unwrap_or_default();
        let number = |key: &str| report[key].as_i64().and_then(|it| i32::try_from(it).ok());
        let stop_received = report["stopReceived"].as_bool();
        let (code, signal) = match stop_received {
            Some(_) => (number("exitCode"), number("signal")),
            None => (Some(told.exit_code), None),
        };
        let shown = code.or(signal.map(|it| 128 + it));
        ensure!(shown == Some(told.exit_code), "{told:?}");
        let known = [Some(OWN), Some(TOLD)].contains(&code) || signal == Some(TERM);
        ensure!(known, "the command ended by {told:?}");
        Ok(Self {
            code,
            signal,
            finished,
            stop_received,
        })
    }

    /// Whether something at that time can have ended it.
    fn is_reached(&self, at: Timestamp) -> bool {
        self.stop_received.unwrap_or(self.finished >= at)
    }
}

/// One life, as far as it is known when its end is recorded.
struct Life<'a> {
    /// Every version of its pod that tells the end of the command, up to the record.
    ends: Vec<&'a Pod>,
    /// The record.
    status: &'a BoxStatus,
}

impl<'a> Life<'a> {
    fn of(it: &LiveBox, told: &'a [Moment]) -> Result<Self> {
        let mine = |object: &&Moment| {
            object
                .a_box()
                .is_some_and(|found| found.uid().as_deref() == Some(it.uid()))
        };
        let record = told
            .iter()
            .filter(mine)
            .find(|moment| moment.a_box().is_some_and(has_ended))
            .context("no record")?;
        let ends = told
            .iter()
            .filter(|moment| moment.version < record.version)
            .filter_map(Moment::pod)
            .filter(|pod| is_of(it, pod) && end_of(pod).is_some())
            .collect();
        let status = record.status().context("a record without a status")?;
        Ok(Self { ends, status })
    }

    /// Checks the record against what each version of the pod would give. A controller may have seen
    /// any of them when it decided, and no other.
    fn is_right(&self, expected: impl Fn(&Pod, &End) -> Result<Ending>) -> Result<()> {
        ensure!(
            !self.ends.is_empty(),
            "recorded before the kubelet told an end"
        );
        let mut possible = Vec::new();
        for pod in &self.ends {
            possible.push(expected(pod, &End::of(pod)?)?);
        }
        let is = Ending::of(self.status);
        ensure!(
            possible.contains(&is),
            "recorded as {is:?}, must be of {possible:?}"
        );
        Ok(())
    }
}

fn is_of(it: &LiveBox, pod: &Pod) -> bool {
    let label = pod.labels().get(boxes_crds::BOX_UID_LABEL);
    label.is_some_and(|uid| uid == it.uid())
}

/// The ending that a cause at some time gives to a command.
fn with_cause(reason: &str, at: Option<Timestamp>, end: &End) -> Ending {
    match at {
        Some(at) if end.is_reached(at) => Ending::stopped(reason, end),
        _ => Ending::own(end),
    }
}

/// When a pod was first seen to be deleted, that is when somebody asked for it.
fn deletion_asked(it: &LiveBox, told: &[Moment]) -> Option<Timestamp> {
    let deleted = told
        .iter()
        .filter_map(Moment::pod)
        .find(|pod| is_of(it, pod) && pod.metadata.deletion_timestamp.is_some())?;
    let due = deleted.metadata.deletion_timestamp.as_ref()?.0;
    let grace = deleted.metadata.deletion_grace_period_seconds?;
    due.checked_sub(SignedDuration::from_secs(grace)).ok()
}

/// Twenty lives, some at a time. Each command ends a little later than the one before, half of them at
/// about the time and half after the time at which their kubelet says that they run. As soon as it does,
/// something is done.
async fn twenty(
    world: &World,
    done: impl AsyncFn(&LiveBox, &Pod) -> Result<()>,
) -> Result<(Vec<LiveBox>, Story)> {
    let story = world.story().await?;
    let one = async |number: u64| {
        let slow = if number.is_multiple_of(2) { 50 } else { 220 };
        let time = Duration::from_millis(slow * number);
        let it = a_box(format!("try-{number}"))
            .shell(&lasting(time))
            .create(world)
            .await?;
        let runs = |pod: &Pod| end_of(pod).is_some() || is_running(pod);
        let pod = it.has_a_pod("the command to run", runs).await?;
        done(&it, &pod).await?;
        anyhow::Ok(it)
    };
    let all = stream::iter(0..TRIES).map(one).buffered(AT_ONCE);
    Ok((all.try_collect().await?, story))
}

fn is_running(pod: &Pod) -> bool {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    phase == Some("Running")
}

/// Waits until every end is recorded, and checks each.
async fn all_are_right(
    (all, mut story): (Vec<LiveBox>, Story),
    check: impl Fn(&LiveBox, &[Moment]) -> Result<()>,
) -> Result<()> {
    // The pod goes after the record: what came before it is then told, by both watches.
    let is_told = |told: &[Moment], it: &LiveBox| {
        let recorded = told.iter().filter_map(Moment::a_box);
        let mine = |object: &BoxObject| object.uid().as_deref() == Some(it.uid());
        let mut gone = told
            .iter()
            .filter(|moment| moment.gone)
            .filter_map(Moment::pod);
        gone.any(|pod| is_of(it, pod)) && recorded.into_iter().any(|it| mine(it) && has_ended(it))
    };
    let told = story
        .until("every end to be recorded", |told| {
            all.iter().all(|it| is_told(told, it))
        })
        .await?;
    for it in &all {
        check(it, &told).with_context(|| format!("{}; {}", it.name(), tell(&told)))?;
    }
    Ok(())
}

/// What a person does to a pod that may be gone already.
fn unless_gone<T>(answer: kube::Result<T>) -> Result<()> {
    match answer {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        other => Ok(other.map(drop)?),
    }
}

#[tokio::test]
async fn a_command_that_ends_just_before_a_drain_keeps_its_own_ending() {
    e2e(async |world| {
        let drain = async |_: &LiveBox, pod: &Pod| {
            let params = kube::api::EvictParams::default();
            unless_gone(world.pods().evict(&pod.name_any(), &params).await)
        };
        let lives = twenty(world, drain).await?;
        all_are_right(lives, |it, told| {
            Life::of(it, told)?.is_right(|pod, end| Ok(with_cause("Evicted", drained_at(pod), end)))
        })
        .await
    })
    .await;
}

/// When a pod was evicted, by the condition that counts once the pod is deleted.
fn drained_at(pod: &Pod) -> Option<Timestamp> {
    pod.metadata.deletion_timestamp.as_ref()?;
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let target = conditions.iter().find(|it| {
        it.type_ == "DisruptionTarget" && it.reason.as_deref() == Some("EvictionByEvictionAPI")
    })?;
    Some(target.last_transition_time.as_ref()?.0)
}

#[tokio::test]
async fn a_command_that_ends_just_before_its_pod_is_deleted_keeps_its_own_ending() {
    e2e(async |world| {
        let delete = async |_: &LiveBox, pod: &Pod| {
            let params = kube::api::DeleteParams::default();
            unless_gone(world.pods().delete(&pod.name_any(), &params).await)
        };
        let lives = twenty(world, delete).await?;
        all_are_right(lives, |it, told| {
            let asked = deletion_asked(it, told);
            Life::of(it, told)?.is_right(|pod, end| {
                let at = asked.filter(|_| pod.metadata.deletion_timestamp.is_some());
                Ok(with_cause("PodDeleted", at, end))
            })
        })
        .await
    })
    .await;
}

/// A stop is a cause from the time at which it was recorded.
fn by_a_stop(it: &LiveBox, told: &[Moment], by: &str) -> Result<()> {
    let life = Life::of(it, told)?;
    let stop = life.status.stop.as_ref();
    if let Some(stop) = stop {
        ensure!(stop.by == by, "stopped by {}", stop.by);
    }
    let at = stop.map(|stop| stop.requested_at.0);
    life.is_right(|_, end| {
        ensure!(
            end.code == Some(OWN) || at.is_some(),
            "told to end, and no stop was recorded before"
        );
        Ok(with_cause("Stopped", at, end))
    })
}

#[tokio::test]
async fn a_command_that_ends_just_before_it_is_stopped_keeps_its_own_ending() {
    e2e(async |world| {
        let stop = async |it: &LiveBox, _: &Pod| it.stop().await;
        let lives = twenty(world, stop).await?;
        all_are_right(lives, |it, told| by_a_stop(it, told, "Spec")).await
    })
    .await;
}

#[tokio::test]
async fn a_command_that_ends_just_before_its_box_is_deleted_keeps_its_own_ending() {
    e2e(async |world| {
        let delete = async |it: &LiveBox, _: &Pod| it.delete().await;
        let lives = twenty(world, delete).await?;
        all_are_right(lives, |it, told| by_a_stop(it, told, "Delete")).await
    })
    .await;
}

/// The kubelet calls pods `DeadlineExceeded` whose command had already returned: the times decide.
#[tokio::test]
async fn a_command_that_ends_just_before_its_deadline_keeps_its_own_ending() {
    e2e(async |world| {
        let deadline = SignedDuration::from_secs(6);
        let story = world.story().await?;
        let one = async |number: u64| {
            let time = Duration::from_millis(500 + 270 * number);
            let it = a_box(format!("try-{number}"))
                .shell(&lasting(time))
                .active_deadline_seconds(deadline.as_secs())
                .create(world)
                .await?;
            it.wait_for("the box to end", has_ended).await?;
            anyhow::Ok(it)
        };
        let all = stream::iter(0..TRIES).map(one).buffered(AT_ONCE);
        let all = all.try_collect().await?;
        all_are_right((all, story), |it, told| {
            Life::of(it, told)?.is_right(|pod, end| {
                let status = pod.status.as_ref().context("no status")?;
                let started = status.start_time.as_ref().context("no start")?.0;
                let reached = end.is_reached(started + deadline);
                let early = end.finished < started + deadline;
                ensure!(!early || !reached, "told to end before its deadline");
                let failed = status.phase.as_deref() == Some("Failed");
                let exceeded = failed && status.reason.as_deref() == Some("DeadlineExceeded");
                Ok(if reached && exceeded {
                    Ending::timeout()
                } else {
                    Ending::own(end)
                })
            })
        })
        .await
    })
    .await;
}
