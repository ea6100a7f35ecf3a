//! The pod that a Box's spec gives.

use std::collections::BTreeMap;

use boxes_crds::{
    BOX_NAME_ANNOTATION, BOX_UID_LABEL, BoxSpec, BoxTemplateMeta, CONTAINER, GENERATION_ANNOTATION,
    OUTPUT_ANNOTATION, OUTPUT_FINALIZER, POD_FINALIZER,
};
use k8s_openapi::DeepMerge;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Resource;

use crate::name::{hex, pod_name};
use crate::object::BoxView;
use crate::output::announced;
use crate::reserved::refuse_reserved;
use crate::supervisor::{Supervisor, inject, is_supervised};
use crate::template::{Refused, pod_spec_of};

/// `activeDeadlineSeconds` of a pod whose Box has none: the greatest value. Every pod has one, so
/// that lowering it to stop the pod never moves it into another quota scope.
pub const NO_DEADLINE: i64 = 2_147_483_647;

/// Seconds between TERM and KILL when the Box does not say.
const GRACE: i64 = 10;

/// Annotation on a pod: a hash of the immutable part of the spec that it was made from.
pub(crate) const SPEC_HASH_ANNOTATION: &str = "boxes.run/spec-hash";

/// Taints that a pod tolerates without a time limit unless its Box says otherwise: a short network
/// partition ends no box.
const PARTITION_TAINTS: [&str; 2] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
];

/// The pod of a Box.
///
/// # Errors
/// The template is refused.
pub fn pod_for(
    object: &BoxView,
    spec: &BoxSpec,
    supervisor: Option<&Supervisor>,
    saves_output: bool,
) -> Result<Pod, Refused> {
    let mut pod_spec = merged(spec)?;
    pod_spec.tolerations = Some(with_partition_tolerations(pod_spec.tolerations));
    let mut pod = Pod {
        metadata: metadata(object, spec),
        spec: Some(pod_spec),
        status: None,
    };
    if let Some(supervisor) = supervisor.filter(|_| is_supervised(spec)) {
        inject(&mut pod, supervisor, grace(spec), object.uid());
    }
    if saves_output {
        hold_output(&mut pod.metadata);
    }
    Ok(pod)
}

/// Checks the part of a spec that the API server does not: its template and the names in it.
///
/// # Errors
/// Names the first field that is unknown or that may not be set so.
pub fn accept(spec: &BoxSpec) -> Result<(), Refused> {
    merged(spec).map(drop)
}

/// The fields of the Box and its template.
fn merged(spec: &BoxSpec) -> Result<PodSpec, Refused> {
    let partial = pod_spec_of(spec)?;
    refuse_reserved(spec, &partial)?;
    let mut pod_spec = from_fields(spec);
    pod_spec.merge_from(partial);
    Ok(pod_spec)
}

/// A hash of what may not change once a pod was made.
#[must_use]
pub fn spec_hash(spec: &BoxSpec) -> String {
    let immutable = BoxSpec {
        stopped: None,
        ttl_seconds_after_finished: None,
        active_deadline_seconds: None,
        ..spec.clone()
    };
    // A spec was parsed from JSON and goes back to it.
    let bytes = serde_json::to_vec(&immutable).unwrap_or_default();
    hex(&bytes, 16)
}

fn metadata(object: &BoxView, spec: &BoxSpec) -> ObjectMeta {
    let BoxTemplateMeta {
        labels,
        annotations,
    } = spec
        .template
        .as_ref()
        .and_then(|template| template.metadata.clone())
        .unwrap_or_default();
    let mut labels = labels.unwrap_or_default();
    labels.insert(BOX_UID_LABEL.to_owned(), object.uid().to_owned());
    let mut annotations = annotations.unwrap_or_default();
    annotations.extend(own_annotations(object, spec));
    ObjectMeta {
        name: Some(pod_name(object.name())),
        namespace: Some(object.namespace().to_owned()),
        labels: Some(labels),
        annotations: Some(annotations),
        owner_references: Some(vec![owner(object)]),
        finalizers: Some(vec![POD_FINALIZER.to_owned()]),
        ..ObjectMeta::default()
    }
}

/// The pod waits for its output. The annotation tells one whose finalizer was taken off from one that
/// never had it.
fn hold_output(metadata: &mut ObjectMeta) {
    let finalizers = metadata.finalizers.get_or_insert_default();
    finalizers.push(OUTPUT_FINALIZER.to_owned());
    let annotations = metadata.annotations.get_or_insert_default();
    annotations.insert(OUTPUT_ANNOTATION.to_owned(), announced());
}

fn own_annotations(object: &BoxView, spec: &BoxSpec) -> BTreeMap<String, String> {
    let generation = object.metadata.generation.unwrap_or_default();
    [
        (BOX_NAME_ANNOTATION, object.name().to_owned()),
        (GENERATION_ANNOTATION, generation.to_string()),
        (SPEC_HASH_ANNOTATION, spec_hash(spec)),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into()
}

fn owner(object: &BoxView) -> OwnerReference {
    OwnerReference {
        api_version: BoxView::api_version(&()).into_owned(),
        kind: BoxView::kind(&()).into_owned(),
        name: object.name().to_owned(),
        uid: object.uid().to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Seconds between TERM and KILL.
fn grace(spec: &BoxSpec) -> i64 {
    spec.termination_grace_period_seconds.unwrap_or(GRACE)
}

/// What the fields of the Box give, before the template.
fn from_fields(spec: &BoxSpec) -> PodSpec {
    PodSpec {
        containers: vec![container(spec)],
        restart_policy: Some("Never".to_owned()),
        active_deadline_seconds: Some(spec.active_deadline_seconds.unwrap_or(NO_DEADLINE)),
        termination_grace_period_seconds: Some(grace(spec)),
        // Code that nobody vouches for gets no credential unless its owner names an identity.
        automount_service_account_token: spec.service_account_name.is_none().then_some(false),
        service_account_name: spec.service_account_name.clone(),
        volumes: spec.volumes.clone(),
        image_pull_secrets: spec.image_pull_secrets.clone(),
        node_selector: spec.node_selector.clone(),
        tolerations: spec.tolerations.clone(),
        affinity: spec.affinity.clone(),
        runtime_class_name: spec.runtime_class_name.clone(),
        priority_class_name: spec.priority_class_name.clone(),
        security_context: spec.pod_security_context.clone(),
        ..PodSpec::default()
    }
}

fn container(spec: &BoxSpec) -> Container {
    Container {
        name: CONTAINER.to_owned(),
        image: Some(spec.image.clone()),
        command: spec.command.clone(),
        args: spec.args.clone(),
        env: spec.env.clone(),
        env_from: spec.env_from.clone(),
        working_dir: spec.working_dir.clone(),
        resources: spec.resources.clone(),
        image_pull_policy: spec.image_pull_policy.clone(),
        security_context: spec.security_context.clone(),
        volume_mounts: spec.volume_mounts.clone(),
        tty: spec.tty,
        stdin: spec.stdin,
        ..Container::default()
    }
}

fn with_partition_tolerations(given: Option<Vec<Toleration>>) -> Vec<Toleration> {
    let mut all = given.unwrap_or_default();
    for taint in PARTITION_TAINTS {
        let named = all.iter().any(|toleration| {
            toleration.key.as_deref() == Some(taint)
                && toleration
                    .effect
                    .as_deref()
                    .is_none_or(|effect| effect == "NoExecute")
        });
        if !named {
            all.push(Toleration {
                key: Some(taint.to_owned()),
                operator: Some("Exists".to_owned()),
                effect: Some("NoExecute".to_owned()),
                ..Toleration::default()
            });
        }
    }
    all
}
