//! What a user asks of a Box. Field names and meanings are those of Pod and Job.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Affinity, EnvFromSource, EnvVar, LocalObjectReference, PodSecurityContext,
    ResourceRequirements, SecurityContext, Toleration, Volume, VolumeMount,
};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::status::BoxStatus;

/// One command in one pod. The spec is immutable once the pod was made, except `stopped`,
/// `ttlSecondsAfterFinished` and `activeDeadlineSeconds` downward.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "boxes.run",
    version = "v1alpha1",
    kind = "Box",
    root = "BoxObject",
    plural = "boxes",
    singular = "box",
    namespaced,
    status = "BoxStatus",
    derive = "PartialEq",
    shortname = "bx",
    category = "all",
    doc = "A Box is one command run in one pod, with an honest, durable record of how it ended.",
    printcolumn(name = "State", type_ = "string", json_path = ".status.state"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.reason"),
    printcolumn(name = "Exit", type_ = "integer", json_path = ".status.exitCode"),
    printcolumn(name = "Signal", type_ = "integer", json_path = ".status.signal"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    ),
    printcolumn(
        name = "Node",
        type_ = "string",
        json_path = ".status.run.node",
        priority = 1
    ),
    printcolumn(
        name = "Pod",
        type_ = "string",
        json_path = ".status.run.pod.name",
        priority = 1
    ),
    printcolumn(
        name = "Started",
        type_ = "date",
        json_path = ".status.run.startedAt",
        priority = 1
    ),
    printcolumn(
        name = "Ended",
        type_ = "date",
        json_path = ".status.run.endedAt",
        priority = 1
    ),
    printcolumn(
        name = "Output",
        type_ = "string",
        json_path = ".status.output.state",
        priority = 1
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.message",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
pub struct BoxSpec {
    /// Image of the box's container, as in a pod: `busybox`, `ghcr.io/org/tool:1.2`, or by digest.
    #[schemars(length(min = 1))]
    pub image: String,
    /// Program and first arguments, not run in a shell: `[sh, -c, "exit 3"]`. Replaces the image's
    /// ENTRYPOINT. `$(NAME)` is replaced from the environment and `$$` stands for one `$`, so a
    /// shell's own `$$` is written `$$$$`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// Arguments to the command. Without `command` they replace the image's CMD. `$(NAME)` and `$$`
    /// as in `command`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// Environment of the command. Values can come from Secrets and ConfigMaps by `valueFrom`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<Vec<EnvVar>>,
    /// Whole Secrets and ConfigMaps as environment. `env` wins over them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env_from: Option<Vec<EnvFromSource>>,
    /// Directory that the command starts in; the image's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// Compute resources of the container. A command that exceeds its memory limit ends as
    /// `Exited/OOM`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// Always, IfNotPresent or Never; the cluster's default when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Always", "IfNotPresent", "Never"]))]
    pub image_pull_policy: Option<String>,
    /// Security settings of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security_context: Option<SecurityContext>,
    /// Where the volumes of `volumes` appear in the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_mounts: Option<Vec<VolumeMount>>,
    /// Volumes of the pod. They are never deleted together with the Box.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volumes: Option<Vec<Volume>>,
    /// ServiceAccount of the pod. Its token is mounted only when this field, or the template,
    /// asks for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Secrets with the registry's credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_secrets: Option<Vec<LocalObjectReference>>,
    /// Labels that the node must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<BTreeMap<String, String>>,
    /// Taints that the pod tolerates. not-ready and unreachable are tolerated without a time limit
    /// unless they are named here: a short network partition ends no box.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerations: Option<Vec<Toleration>>,
    /// Scheduling preferences of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    /// RuntimeClass of the pod, such as one for gVisor or Kata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_class_name: Option<String>,
    /// PriorityClass of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<String>,
    /// Security settings of the pod, such as `runAsUser` and `fsGroup`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_security_context: Option<PodSecurityContext>,
    /// Labels and annotations for the pod, and a partial pod spec merged over what the fields above
    /// give. For sidecars, init containers and rare pod fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<BoxTemplate>,
    /// Gives the container a terminal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tty: Option<bool>,
    /// Keeps the container's standard input open, for `kubectl attach`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<bool>,
    /// Seconds, counted from the pod's start on its node (its image pull included), after which the
    /// box is ended as `Exited/Timeout`. Enforced by the kubelet, so also while the controller is
    /// down. May be lowered while the box runs, never raised. Absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub active_deadline_seconds: Option<i64>,
    /// Seconds between TERM and KILL when the box is stopped. 10 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub termination_grace_period_seconds: Option<i64>,
    /// `true` asks that the box is not running; absent and `false` are the same. A Box created with
    /// `true` waits, with no pod, until it is set to false. Stopping a box that was asked to run
    /// ends it for good: setting it back has no effect once `status.stop` is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<bool>,
    /// Seconds, counted from the pod's creation, or from the first refusal of a pod, within which
    /// the command must have started, or the box ends as `Stopped/StartFailed`. Absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub start_deadline_seconds: Option<i64>,
    /// Seconds after its end at which the Box is deleted, its record included. Absent: it is kept
    /// until someone deletes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub ttl_seconds_after_finished: Option<i64>,
}

/// What the pod has beyond the fields of the Box.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct BoxTemplate {
    /// Labels and annotations of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BoxTemplateMeta>,
    /// A partial pod spec, merged over the pod by strategic merge: the container named `box` is the
    /// box's own, others are sidecars. It is not checked by the API server: a field that the
    /// controller does not know makes the Box `Accepted=False`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "partial_pod_spec")]
    pub spec: Option<Map<String, Value>>,
}

/// Metadata for the pod.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct BoxTemplateMeta {
    /// Labels; keys under `boxes.run/` are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations; keys under `boxes.run/` are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
}

/// Schemaless: a whole pod spec would take the CRD past what client-side apply can store.
fn partial_pod_spec(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}
