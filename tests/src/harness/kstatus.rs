//! What kstatus reads in a Box: the rules by which `kubectl`'s companions, Flux, Argo CD and others judge
//! any object, as `sigs.k8s.io/cli-utils/pkg/kstatus` has them for a kind that it does not know.

use boxes_crds::BoxObject;

use super::live::condition;

/// The judgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kstatus {
    /// It is being deleted.
    Terminating,
    /// It is on its way to what was asked.
    InProgress,
    /// It will not become what was asked.
    Failed,
    /// It is what was asked.
    Current,
}

/// Judges a Box.
#[must_use]
pub fn kstatus(object: &BoxObject) -> Kstatus {
    let holds = |type_| condition(object, type_).is_some_and(|known| known.status == "True");
    let status = object.status.as_ref();
    let observed = status.and_then(|status| status.observed_generation);
    let behind = observed.is_some() && observed != object.metadata.generation;
    if object.metadata.deletion_timestamp.is_some() {
        Kstatus::Terminating
    } else if behind || holds(boxes_crds::condition::RECONCILING) {
        Kstatus::InProgress
    } else if holds(boxes_crds::condition::STALLED) {
        Kstatus::Failed
    } else {
        Kstatus::Current
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn judged(metadata: &Value, conditions: &[(&str, &str)]) -> Kstatus {
        let conditions: Vec<_> = conditions
            .iter()
            .map(|(type_, status)| {
                json!({"type": type_, "status": status, "reason": "R", "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z"})
            })
            .collect();
        let object = json!({
            "apiVersion": "boxes.run/v1alpha1", "kind": "Box", "metadata": metadata,
            "spec": {"image": "busybox"},
            "status": {"observedGeneration": 1, "conditions": conditions},
        });
        kstatus(&serde_json::from_value(object).unwrap())
    }

    #[test]
    fn the_first_rule_that_applies_decides() {
        let now = "2026-01-01T00:00:00Z";
        let (both, stalled) = (
            [("Reconciling", "True"), ("Stalled", "True")],
            [("Reconciling", "False"), ("Stalled", "True")],
        );
        let deleted = json!({"name": "it", "generation": 2, "deletionTimestamp": now});
        assert_eq!(judged(&deleted, &both), Kstatus::Terminating);
        let changed = json!({"name": "it", "generation": 2});
        assert_eq!(judged(&changed, &stalled), Kstatus::InProgress);
        let same = json!({"name": "it", "generation": 1});
        assert_eq!(judged(&same, &both), Kstatus::InProgress);
        assert_eq!(judged(&same, &stalled), Kstatus::Failed);
        assert_eq!(judged(&same, &[("Ended", "True")]), Kstatus::Current);
    }
}
