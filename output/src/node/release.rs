//! Lets go of a pod, in one patch that says what was saved.

use boxes_crds::{OUTPUT_ANNOTATION, OUTPUT_FINALIZER, OutputStatus};
use boxes_program::says_absent;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use super::pod;
use crate::archive::Manifest;

/// What the annotation says.
pub(crate) fn said(manifest: &Manifest) -> OutputStatus {
    OutputStatus {
        state: manifest.state.as_str().to_owned(),
        bytes: i64::try_from(manifest.bytes).unwrap_or(i64::MAX),
        truncated: manifest.gap_count > 0,
        message: message(manifest),
    }
}

fn message(manifest: &Manifest) -> String {
    let Some(gap) = manifest.gaps.first() else {
        return String::new();
    };
    let after = gap.from.map_or_else(
        || "at the beginning".to_owned(),
        |time| format!("after {time}"),
    );
    let size = gap
        .bytes
        .map_or_else(String::new, |bytes| format!(" ({bytes} bytes of log)"));
    let more = match manifest.gap_count {
        0 | 1 => String::new(),
        count => format!(", and {} more", count - 1),
    };
    format!("{after}: {}{size}{more}", gap.reason)
}

/// Lets go of the pod, if it is still held. `said` is absent when nobody wants the output.
///
/// # Errors
/// The API server does not take it. Try again.
pub(crate) async fn release(
    client: &Client,
    held: &Pod,
    said: Option<&OutputStatus>,
) -> Result<(), kube::Error> {
    let pods = Api::<Pod>::namespaced(client.clone(), &held.namespace().unwrap_or_default());
    // Live: somebody else's finalizers are to stay as they are now.
    let now = match pods.get(&held.name_any()).await {
        Err(error) if says_absent(&error, &held.name_any()) => return Ok(()),
        other => other?,
    };
    if now.metadata.uid != held.metadata.uid || !pod::holds(&now) {
        return Ok(());
    }
    let patch = Patch::Merge(patch(&now, said));
    match pods
        .patch(&held.name_any(), &PatchParams::default(), &patch)
        .await
    {
        Err(error) if says_absent(&error, &held.name_any()) => Ok(()),
        other => other.map(drop),
    }
}

/// Guarded by UID and version: it is of this pod as it was read, or it is refused.
fn patch(pod: &Pod, said: Option<&OutputStatus>) -> Value {
    let kept: Vec<_> = pod
        .finalizers()
        .iter()
        .filter(|held| *held != OUTPUT_FINALIZER)
        .collect();
    let mut patch = json!({"metadata": {
        "uid": pod.metadata.uid,
        "resourceVersion": pod.metadata.resource_version,
        "finalizers": kept,
    }});
    if let Some(text) = said.and_then(|said| serde_json::to_string(said).ok()) {
        patch["metadata"]["annotations"] = json!({OUTPUT_ANNOTATION: text});
    }
    patch
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::{Gap, GapReason, RunKey, Saved, StreamTotals, Uid};

    fn manifest(gaps: Vec<Gap>) -> Manifest {
        Manifest {
            version: 1,
            run: RunKey::first(Uid::parse("b").unwrap(), Uid::parse("p").unwrap()),
            state: if gaps.is_empty() {
                Saved::Saved
            } else {
                Saved::Partial
            },
            entries: 1,
            bytes: 7,
            sha256: String::new(),
            stdout: StreamTotals::default(),
            stderr: StreamTotals::default(),
            gap_count: gaps.len() as u64,
            gaps,
        }
    }

    #[test]
    fn what_is_missing_is_said() {
        let gap = Gap {
            from: Some("2026-11-30T19:00:00Z".parse().unwrap()),
            to: None,
            bytes: Some(12),
            reason: GapReason::Torn,
        };
        let told = said(&manifest(vec![gap, gap]));
        assert_eq!(
            serde_json::to_value(told).unwrap(),
            json!({"state": "Partial", "bytes": 7, "truncated": true,
                "message": "after 2026-11-30T19:00:00Z: a line of the log was cut off (12 bytes of log), and 1 more"}),
        );
        assert_eq!(said(&manifest(vec![])).message, "");
    }

    #[test]
    fn the_patch_is_guarded_and_takes_our_finalizer_alone() {
        let pod: Pod = serde_json::from_value(json!({"metadata": {
            "name": "p", "uid": "u", "resourceVersion": "7",
            "finalizers": ["boxes.run/evidence", "boxes.run/output", "example.org/other"],
        }}))
        .unwrap();
        let patch = patch(&pod, Some(&said(&manifest(vec![]))));
        assert_eq!(
            patch["metadata"]["finalizers"],
            json!(["boxes.run/evidence", "example.org/other"])
        );
        assert_eq!(
            (
                &patch["metadata"]["uid"],
                &patch["metadata"]["resourceVersion"]
            ),
            (&json!("u"), &json!("7"))
        );
        let text = patch["metadata"]["annotations"]["boxes.run/output"]
            .as_str()
            .unwrap();
        assert_eq!(text, r#"{"state":"Saved","bytes":7,"truncated":false}"#);
    }
}
