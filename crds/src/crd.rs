//! The CustomResourceDefinition: the derived schema and what a derive cannot say.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray, ValidationRule,
};
use kube::CustomResourceExt;

use crate::BoxObject;

/// Fields of the spec that may change at any time: `stopped`, `ttlSecondsAfterFinished`, and
/// `activeDeadlineSeconds`, which has a rule of its own.
const MUTABLE: [&str; 3] = [
    "stopped",
    "ttlSecondsAfterFinished",
    "activeDeadlineSeconds",
];

/// True before a pod was made: the spec is then free to change.
const NO_RUN: &str = "!has(oldSelf.status) || !has(oldSelf.status.run)";

/// The CustomResourceDefinition of Box, as installed.
#[must_use]
pub fn crd() -> CustomResourceDefinition {
    let mut crd = BoxObject::crd();
    for version in &mut crd.spec.versions {
        if let Some(root) = version
            .schema
            .as_mut()
            .and_then(|schema| schema.open_api_v3_schema.as_mut())
        {
            complete(root);
        }
    }
    crd
}

/// Adds to the derived schema the transition rules and the openness of the status.
fn complete(root: &mut JSONSchemaProps) {
    let Some(properties) = root.properties.as_mut() else {
        return;
    };
    if let Some(status) = properties.get_mut("status") {
        // What a newer build wrote must survive the passes of this one (contract §3).
        open(status);
        // Before the first pass kstatus would read a Box without a status as done.
        status.default = Some(JSON(serde_json::json!({"observedGeneration": -1})));
    }
    let Some(spec) = properties.get("spec") else {
        return;
    };
    let required = spec.required.clone().unwrap_or_default();
    let fields: Vec<_> = spec
        .properties
        .iter()
        .flatten()
        .map(|(name, _)| name.as_str())
        .filter(|name| !MUTABLE.contains(name))
        .map(|name| (name, unchanged(name, required.iter().any(|it| it == name))))
        .collect();
    root.x_kubernetes_validations = Some(vec![immutable(&fields), deadline_only_downward()]);
}

/// Keeps fields that the schema does not know, also below those that it knows: the API server drops
/// them otherwise, and a record of a newer build would look like one of this.
fn open(schema: &mut JSONSchemaProps) {
    if let Some(properties) = &mut schema.properties {
        schema.x_kubernetes_preserve_unknown_fields = Some(true);
        properties.values_mut().for_each(open);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        open(items);
    }
}

/// CEL that holds when a field kept its value, or its absence.
fn unchanged(field: &str, required: bool) -> String {
    if required {
        return format!("(self.spec.{field} == oldSelf.spec.{field})");
    }
    format!(
        "(has(self.spec.{field}) ? has(oldSelf.spec.{field}) && \
         self.spec.{field} == oldSelf.spec.{field} : !has(oldSelf.spec.{field}))"
    )
}

/// The fields keep their values once a pod was made. One rule for all: each rule is evaluated with
/// every status write too, and a rule a field cost the API server a third of such a write. The
/// message names the first field that differs.
fn immutable(fields: &[(&str, String)]) -> ValidationRule {
    let all: Vec<_> = fields.iter().map(|(_, same)| same.as_str()).collect();
    let first: Vec<_> = fields
        .iter()
        .map(|(name, same)| format!("!{same} ? '{name}'"))
        .collect();
    let rest = "a Box runs once; delete it and make a new one to run something else";
    ValidationRule {
        message_expression: Some(format!(
            "'spec.' + ({} : '') + ' is immutable once the pod was made: {rest}'",
            first.join(" : ")
        )),
        ..rule(
            ".spec",
            &format!("self.spec == oldSelf.spec || ({})", all.join(" && ")),
            format!("the spec is immutable once the pod was made: {rest}"),
        )
    }
}

/// A deadline may be set or lowered while the box runs, never raised or removed.
fn deadline_only_downward() -> ValidationRule {
    let field = "activeDeadlineSeconds";
    rule(
        &format!(".spec.{field}"),
        &format!(
            "!has(oldSelf.spec.{field}) || \
             (has(self.spec.{field}) && self.spec.{field} <= oldSelf.spec.{field})"
        ),
        format!("spec.{field} can only be lowered once the pod was made"),
    )
}

fn rule(field_path: &str, holds: &str, message: String) -> ValidationRule {
    ValidationRule {
        rule: format!("{NO_RUN} || {holds}"),
        message: Some(message),
        reason: Some("FieldValueForbidden".to_owned()),
        field_path: Some(field_path.to_owned()),
        ..ValidationRule::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Client-side apply stores the whole object in an annotation of at most 262,144 bytes.
    const LIMIT: usize = 200_000;

    fn committed() -> String {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/boxes.yaml");
        std::fs::read_to_string(path)
            .unwrap_or_else(|error| panic!("{path} cannot be read ({error}): run `make crd`"))
    }

    #[test]
    fn the_committed_crd_is_the_one_made_from_the_types() {
        assert!(
            committed() == serde_saphyr::to_string(&crd()).unwrap(),
            "crds/boxes.yaml is not what the types give: run `make crd` and commit it"
        );
    }

    #[test]
    fn compact_json_leaves_room_for_client_side_apply() {
        let size = serde_json::to_vec(&crd()).unwrap().len();
        println!("CRD: {size} bytes of compact JSON, limit {LIMIT}");
        assert!(size < LIMIT, "{size} bytes, limit {LIMIT}");
    }

    #[test]
    fn the_status_keeps_unknown_fields_at_every_depth() {
        let crd = serde_json::to_value(crd()).unwrap();
        let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let status = &schema["properties"]["status"];
        for below in [
            "",
            "/properties/run",
            "/properties/run/properties/pod",
            "/properties/stop",
            "/properties/history/items",
            "/properties/conditions/items",
        ] {
            let it = status
                .pointer(below)
                .unwrap_or_else(|| panic!("no {below}"));
            let keeps = &it["x-kubernetes-preserve-unknown-fields"];
            assert_eq!(*keeps, true, "{below}");
        }
    }

    #[test]
    fn spec_has_no_defaults() {
        let crd = serde_json::to_value(crd()).unwrap();
        let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        assert!(schema["properties"]["spec"].is_object());
        let text = schema["properties"]["spec"].to_string();
        assert!(
            !text.contains("\"default\":"),
            "a default would show in GitOps diffs"
        );
    }

    #[test]
    fn every_field_but_the_mutable_ones_is_in_a_rule() {
        let crd = serde_json::to_value(crd()).unwrap();
        let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let fields = schema["properties"]["spec"]["properties"]
            .as_object()
            .unwrap();
        let rules = schema["x-kubernetes-validations"].as_array().unwrap();
        for field in fields.keys() {
            let own = format!("oldSelf.spec.{field})");
            let covered = rules
                .iter()
                .any(|rule| rule["rule"].as_str().unwrap().contains(&own));
            let free = ["stopped", "ttlSecondsAfterFinished"].contains(&field.as_str());
            assert_eq!(covered, !free, "{field}");
        }
    }
}
