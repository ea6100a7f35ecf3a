//! What a real kubelet said about one box, from its beginning to its end, as data for other tests.
//!
//! Guarantees: kept is what the rules read, and nothing that names the machine, the node, the namespace
//! or a container; the same life recorded again differs only in its times.

use boxes_crds::{BOX_UID_LABEL, BoxObject, DOMAIN};
use k8s_openapi::api::core::v1::Pod;
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::live::LiveBox;
use super::story::{Moment, Seen};

/// The moments of one Box and its pod in a story, with the ending that was recorded.
#[must_use]
pub fn recording(told: &[Moment], it: &LiveBox) -> Value {
    let mut moments = Vec::new();
    let mut last_box = Value::Null;
    let mut ending = Value::Null;
    let mut names = Vec::new();
    for (number, moment) in told.iter().enumerate() {
        let version = json!((number + 1).to_string());
        match &moment.seen {
            Seen::Box(object) if object.uid().as_deref() == Some(it.uid()) => {
                ending = ending_of(object);
                let reduced = reduced_box(object);
                if reduced == last_box || moment.gone {
                    continue;
                }
                last_box = reduced.clone();
                names.push((it.uid().to_owned(), "box-1"));
                names.push((object.namespace().unwrap_or_default(), "recorded"));
                let mut reduced = reduced;
                reduced["metadata"]["resourceVersion"] = version;
                moments.push(json!({"at": moment.at, "box": reduced}));
            }
            Seen::Pod(pod)
                if pod
                    .labels()
                    .get(BOX_UID_LABEL)
                    .is_some_and(|uid| uid == it.uid()) =>
            {
                names.push((pod.uid().unwrap_or_default(), "pod-1"));
                let mut reduced = reduced_pod(pod);
                reduced["metadata"]["resourceVersion"] = version;
                let reduced = if moment.gone { Value::Null } else { reduced };
                moments.push(json!({"at": moment.at, "pod": reduced}));
            }
            Seen::Box(_) | Seen::Pod(_) => {}
        }
    }
    let mut text = json!({"ending": ending, "moments": moments}).to_string();
    for (name, stand_in) in names {
        text = text.replace(&name, stand_in);
    }
    serde_json::from_str(&text).unwrap_or_default()
}

fn ending_of(object: &BoxObject) -> Value {
    let status = object.status.clone().unwrap_or_default();
    json!({
        "state": status.state, "reason": status.reason, "exitCode": status.exit_code,
        "signal": status.signal,
    })
}

/// Some fields of an object.
fn some(whole: &Value, fields: &[&str]) -> Value {
    let kept = fields.iter().filter_map(|field| {
        let value = whole.get(field).filter(|value| !value.is_null())?;
        Some(((*field).to_owned(), value.clone()))
    });
    Value::Object(kept.collect::<Map<_, _>>())
}

/// The same of each object of a list.
fn some_of_each(whole: &Value, fields: &[&str]) -> Value {
    let all = whole.as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().map(|it| some(it, fields)).collect()
}

fn metadata<K: Resource>(object: &K) -> Value {
    let whole = value(object.meta());
    let mut kept = some(
        &whole,
        &[
            "name",
            "namespace",
            "uid",
            "generation",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "finalizers",
        ],
    );
    for field in ["labels", "annotations"] {
        let all = whole[field].as_object().into_iter().flatten();
        let ours = all.filter(|(key, _)| key.starts_with(DOMAIN));
        let ours: Map<_, _> = ours
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        if !ours.is_empty() {
            kept[field] = ours.into();
        }
    }
    kept
}

fn value<T: Serialize>(object: &T) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}

fn reduced_box(object: &BoxObject) -> Value {
    json!({"metadata": metadata(object), "spec": value(&object.spec)})
}

fn reduced_pod(pod: &Pod) -> Value {
    let whole = value(pod);
    let (spec, status) = (&whole["spec"], &whole["status"]);
    let mut kept = json!({"metadata": metadata(pod)});
    kept["metadata"]["ownerReferences"] = whole["metadata"]["ownerReferences"].clone();
    kept["spec"] = some(spec, &["activeDeadlineSeconds"]);
    if !spec["nodeName"].is_null() {
        kept["spec"]["nodeName"] = "node".into();
    }
    for field in ["containers", "initContainers"] {
        kept["spec"][field] = some_of_each(&spec[field], &["name", "restartPolicy"]);
    }
    kept["status"] = some(
        status,
        &[
            "phase",
            "reason",
            "message",
            "startTime",
            "observedGeneration",
        ],
    );
    kept["status"]["conditions"] = some_of_each(
        &status["conditions"],
        &["type", "status", "reason", "message", "lastTransitionTime"],
    );
    for field in ["containerStatuses", "initContainerStatuses"] {
        let all = status[field]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        kept["status"][field] = all.iter().map(container).collect();
    }
    kept
}

fn container(whole: &Value) -> Value {
    let mut kept = some(whole, &["name", "restartCount", "state", "lastState"]);
    kept["image"] = "".into();
    kept["imageID"] = "".into();
    kept["ready"] = false.into();
    if whole["containerID"]
        .as_str()
        .is_some_and(|id| !id.is_empty())
    {
        kept["containerID"] = "made".into();
    }
    for state in ["state", "lastState"] {
        if let Some(ended) = kept.pointer_mut(&format!("/{state}/terminated/containerID")) {
            *ended = "made".into();
        }
    }
    kept
}
