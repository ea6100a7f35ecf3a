//! Small things that several modules need.

use std::time::Duration;

use anyhow::{Context, Result};
use boxes_crds::{BoxObject, BoxStatus};
use boxes_tests::harness::{LiveBox, State, World};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStateTerminated, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

/// A command that runs until it is told to end, and then at once. It says `ready` when it listens.
pub(crate) const UNTIL_TOLD: &str = "trap 'exit 0' TERM; echo ready; sleep 1000 & wait";

/// The history of a task that ends by itself.
pub(crate) const A_LIFE: [&str; 6] = [
    "Created",
    "Scheduled",
    "Started",
    "Exited",
    "OutputSaved",
    "CleanedUp",
];

/// Waits until a whole second has passed since a time that the kubelet gave. Its times are whole
/// seconds: only then can what comes next be told from what was.
pub(crate) async fn a_second_after(time: Option<&Time>) -> Result<()> {
    let time = time.context("the kubelet gave no time")?.0;
    let rest = Timestamp::now().duration_since(time).as_millis();
    let rest = u64::try_from(1100 - rest).unwrap_or_default();
    tokio::time::sleep(Duration::from_millis(rest)).await;
    Ok(())
}

/// How the container `box` of a pod ended, by the kubelet's word.
pub(crate) fn end_of(pod: &Pod) -> Option<&ContainerStateTerminated> {
    let all = pod.status.as_ref()?.container_statuses.as_ref()?;
    all.iter()
        .find(|it| it.name == "box")?
        .state
        .as_ref()?
        .terminated
        .as_ref()
}

/// What the supervisor reported of an end, if it could.
pub(crate) fn report_of(end: &ContainerStateTerminated) -> Option<Value> {
    let line = end.message.as_deref()?.trim();
    serde_json::from_str(line).ok()
}

/// A time of that report as a record has it: in whole seconds.
pub(crate) fn reported_time(end: &ContainerStateTerminated, key: &str) -> Option<Time> {
    let at: Timestamp = report_of(end)?[key].as_str()?.parse().ok()?;
    Timestamp::from_second(at.as_second()).ok().map(Time)
}

/// The processes of a pod on this machine, by its UID in their control groups.
pub(crate) fn processes_of(uid: &str) -> Vec<String> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter(|entry| {
        let groups = std::fs::read_to_string(entry.path().join("cgroup"));
        groups.is_ok_and(|groups| groups.contains(uid))
    })
    .map(|entry| {
        let command = std::fs::read_to_string(entry.path().join("cmdline"));
        command.unwrap_or_default().replace('\0', " ")
    })
    .collect()
}

/// The types of a history, oldest first.
pub(crate) fn history(status: &BoxStatus) -> Vec<&str> {
    status
        .history
        .iter()
        .map(|entry| entry.type_.as_str())
        .collect()
}

/// Whether a Box has an ending.
pub(crate) fn has_ended(object: &BoxObject) -> bool {
    object
        .status
        .as_ref()
        .is_some_and(|status| status.reason.is_some())
}

/// Pauses the controller while the command waits to be told, and lets the command end unseen.
pub(crate) async fn ended_in_a_pause(
    world: &World,
    it: &LiveBox,
) -> Result<(Pod, ContainerStateTerminated)> {
    it.is(State::Running).await?;
    world.controller().pause().await?;
    it.tell().await?;
    it.has_a_finished_pod().await
}
