//! What a Box's template may say, and whether a spec is accepted.

use std::collections::BTreeMap;

use boxes_crds::{BoxSpec, BoxTemplate, CONTAINER, DOMAIN};
use k8s_openapi::api::core::v1::{Container, PodSpec};
use serde_json::Value;

/// Why a spec is not accepted: `Accepted=False` with this reason and message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}: {message}")]
pub struct Refused {
    /// `TemplateInvalid` or `NameReserved`.
    pub reason: &'static str,
    /// Names the field, and what to do.
    pub message: String,
}

/// The partial pod spec of the template, checked.
pub(crate) fn pod_spec_of(spec: &BoxSpec) -> Result<PodSpec, Refused> {
    let Some(template) = &spec.template else {
        return Ok(PodSpec::default());
    };
    refuse_our_keys(template)?;
    let partial = parse(template)?;
    match forbidden(&partial) {
        None => Ok(partial),
        Some(message) => Err(refused(message)),
    }
}

fn refused(message: String) -> Refused {
    Refused {
        reason: "TemplateInvalid",
        message,
    }
}

/// Labels and annotations under our domain are how the controller knows its own.
fn refuse_our_keys(template: &BoxTemplate) -> Result<(), Refused> {
    let Some(metadata) = &template.metadata else {
        return Ok(());
    };
    let keys = |all: &Option<BTreeMap<String, String>>| -> Vec<String> {
        all.iter().flatten().map(|(key, _)| key.clone()).collect()
    };
    let ours = keys(&metadata.labels)
        .into_iter()
        .chain(keys(&metadata.annotations))
        .find(|key| key.starts_with(DOMAIN));
    match ours {
        None => Ok(()),
        Some(key) => Err(refused(format!(
            "spec.template.metadata: the key {key} is reserved: labels and annotations under \
             {DOMAIN} belong to the controller; remove it"
        ))),
    }
}

fn parse(template: &BoxTemplate) -> Result<PodSpec, Refused> {
    let mut value = Value::Object(template.spec.clone().unwrap_or_default());
    // A partial pod spec need not have containers; the type does.
    if let Value::Object(fields) = &mut value {
        fields
            .entry("containers")
            .or_insert_with(|| Value::Array(Vec::new()));
    }
    let mut unknown = None;
    let partial = serde_ignored::deserialize(value, |path| {
        unknown.get_or_insert_with(|| path.to_string());
    })
    .map_err(|error| refused(format!("spec.template.spec is not a pod spec: {error}")))?;
    match unknown {
        None => Ok(partial),
        Some(path) => Err(refused(format!(
            "spec.template.spec: unknown field {}: compare it with `kubectl explain pod.spec`",
            path.replace("?.", "")
        ))),
    }
}

/// What a template may not set, since it would change what a Box promises.
fn forbidden(partial: &PodSpec) -> Option<String> {
    let pod_fields = [
        (
            "activeDeadlineSeconds",
            partial.active_deadline_seconds.is_some(),
            "set spec.activeDeadlineSeconds",
        ),
        (
            "terminationGracePeriodSeconds",
            partial.termination_grace_period_seconds.is_some(),
            "set spec.terminationGracePeriodSeconds",
        ),
        (
            "nodeName",
            partial.node_name.is_some(),
            "use spec.nodeSelector or spec.affinity",
        ),
        (
            "schedulingGates",
            partial.scheduling_gates.is_some(),
            "use spec.stopped",
        ),
    ];
    let pod_field = pod_fields
        .into_iter()
        .find(|(_, set, _)| *set)
        .map(|(field, _, instead)| {
            format!("spec.template.spec.{field} cannot be set: {instead} instead")
        });
    let restart = partial
        .restart_policy
        .as_deref()
        .is_some_and(|policy| policy != "Never");
    let policy = restart
        .then(|| "spec.template.spec.restartPolicy can only be Never: a Box runs once".to_owned());
    let containers = partial
        .containers
        .iter()
        .chain(partial.init_containers.iter().flatten());
    pod_field
        .or(policy)
        .or_else(|| containers.into_iter().find_map(forbidden_in_any))
        .or_else(|| {
            partial
                .containers
                .iter()
                .filter(|found| found.name == CONTAINER)
                .find_map(forbidden_in_box)
        })
        .or_else(|| init_named_box(partial))
}

fn init_named_box(partial: &PodSpec) -> Option<String> {
    let mut inits = partial.init_containers.iter().flatten();
    inits.any(|init| init.name == CONTAINER).then(|| {
        format!("spec.template.spec.initContainers: the name {CONTAINER} is the box's own container's; choose another")
    })
}

/// No container may restart the whole pod.
fn forbidden_in_any(container: &Container) -> Option<String> {
    let mut rules = container.restart_policy_rules.iter().flatten();
    rules.any(|rule| rule.action == "RestartAllContainers").then(|| {
        format!(
            "spec.template.spec: container {} has a RestartAllContainers rule: a Box runs once; remove it",
            container.name
        )
    })
}

fn forbidden_in_box(container: &Container) -> Option<String> {
    let fields = [
        ("command", container.command.is_some(), "set spec.command"),
        ("args", container.args.is_some(), "set spec.args"),
        (
            "restartPolicy",
            container.restart_policy.is_some(),
            "remove it: a Box runs once",
        ),
        (
            "restartPolicyRules",
            container.restart_policy_rules.is_some(),
            "remove it: a Box runs once",
        ),
        (
            "terminationMessagePath",
            container.termination_message_path.is_some(),
            "remove it: the message is the record's",
        ),
        (
            "terminationMessagePolicy",
            container.termination_message_policy.is_some(),
            "remove it: the message is the record's",
        ),
    ];
    fields
        .into_iter()
        .find(|(_, set, _)| *set)
        .map(|(field, _, instead)| {
            format!("spec.template.spec.containers[{CONTAINER}].{field} cannot be set: {instead}")
        })
}
