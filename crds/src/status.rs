//! What the controller records about a Box.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How the Box is doing and, once it ended, how it ended. Written by the controller alone.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BoxStatus {
    /// One of Pending, Materializing, Running, Stopped, Exited. Stopped and Exited are final.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Why the box ended: Exit, Signal, Timeout or OOM when Exited; Stopped, Evicted, Preempted,
    /// PodDeleted, NodeLost, PodLost or StartFailed when Stopped. Absent before the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The status that the command returned with, 0 to 255. Absent when it is not known or when a
    /// signal ended the command; never present together with `signal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Number of the signal that ended the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// How the ending is known: Observed (reported from inside the box), Derived (from the
    /// kubelet's exit code alone), Inferred (no wait status exists: node or pod lost).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// One sentence for a person about the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The generation of the spec that this status answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The one run of the box. From its presence on, the spec is immutable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
    /// Present from the moment that a stop is intended. A stop is irrevocable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// What is saved of the command's output. Absent where output is not saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputStatus>,
    /// Accepted, Ended, OutputSaved, CleanedUp, Reconciling, Stalled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// What happened to the box, oldest first: the newest 50 entries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<HistoryEntry>,
    /// How many older entries the bound of the history has dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_dropped: Option<i64>,
}

/// One run of the command in one pod.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// Always 1: a Box runs once.
    pub number: i64,
    /// The pod of the run.
    pub pod: PodReference,
    /// The node that the pod was bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// When the pod was bound to its node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduled_at: Option<Time>,
    /// When the command started: its container, by the kubelet's word, and once it ended the command
    /// itself, by the supervisor's, where that fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When the command ended, by the supervisor's word; without it when its container ended, by the
    /// kubelet's; where the kubelet has none, when the end was established.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Time>,
}

/// Names one pod for all time.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
pub struct PodReference {
    /// Name, in the Box's namespace.
    pub name: String,
    /// UID: a pod of this name with another UID is not this pod.
    pub uid: String,
}

/// A stop that was asked for.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stop {
    /// When the intent was recorded.
    pub requested_at: Time,
    /// What asked: Spec, Delete or StartDeadline.
    pub by: String,
}

/// What is saved of a command's output, which is read by name through the API group
/// `output.boxes.run`. The collector says the same, as JSON, in an annotation of the pod.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
pub struct OutputStatus {
    /// One of Pending, Saving, Saved, Partial, Unavailable; the last three are final.
    pub state: String,
    /// How many bytes that the command wrote are saved.
    #[serde(default)]
    pub bytes: i64,
    /// Whether something is missing.
    #[serde(default)]
    pub truncated: bool,
    /// One sentence for a person about what is missing; empty if nothing is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// One event in the life of a box.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct HistoryEntry {
    /// Created, Scheduled, Started, StopRequested, OOMKilled, Exited, OutputSaved or
    /// CleanedUp.
    #[serde(rename = "type")]
    pub type_: String,
    /// When it happened.
    pub time: Time,
    /// What else is known: for Exited the reason and the code or signal.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "free_form")]
    pub data: Map<String, Value>,
}

/// An object with any fields.
fn free_form(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}
