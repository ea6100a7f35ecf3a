//! `a_box("exit-3").runs(["sh", "-c", "exit 3"])`: a Box about to be made.

use anyhow::{Context, Result};
use boxes_crds::BoxObject;
use kube::api::{DynamicObject, PostParams};
use serde_json::{Map, Value, json};

use super::live::LiveBox;
use super::world::World;

/// The image that tests run in.
pub const BUSYBOX: &str = crate::images::BUSYBOX;

/// Waits for [`LiveBox::tell`], in a shell.
pub const WAIT: &str = "until [ -e /told ]; do sleep 0.1; done";

/// A Box about to be made. What it says is plain JSON, so that it can also say what is wrong.
#[derive(Debug, Clone, PartialEq)]
pub struct BoxBuilder {
    metadata: Map<String, Value>,
    spec: Map<String, Value>,
}

/// A Box of this name that runs in busybox.
#[must_use]
pub fn a_box(name: impl Into<String>) -> BoxBuilder {
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), Value::String(name.into()));
    let builder = BoxBuilder {
        metadata,
        spec: Map::new(),
    };
    builder.image(BUSYBOX)
}

/// One method for each field of the spec, which sets it.
macro_rules! fields {
    ($($method:ident => $field:literal),+ $(,)?) => {
        impl BoxBuilder {
            $(
                #[doc = concat!("Sets `spec.", $field, "`.")]
                #[must_use]
                pub fn $method(self, value: impl serde::Serialize) -> Self {
                    self.with($field, json!(value))
                }
            )+
        }
    };
}

fields! {
    image => "image",
    command => "command",
    args => "args",
    env => "env",
    env_from => "envFrom",
    working_dir => "workingDir",
    resources => "resources",
    image_pull_policy => "imagePullPolicy",
    security_context => "securityContext",
    volume_mounts => "volumeMounts",
    volumes => "volumes",
    service_account_name => "serviceAccountName",
    image_pull_secrets => "imagePullSecrets",
    node_selector => "nodeSelector",
    tolerations => "tolerations",
    affinity => "affinity",
    runtime_class_name => "runtimeClassName",
    priority_class_name => "priorityClassName",
    pod_security_context => "podSecurityContext",
    template => "template",
    tty => "tty",
    stdin => "stdin",
    active_deadline_seconds => "activeDeadlineSeconds",
    termination_grace_period_seconds => "terminationGracePeriodSeconds",
    stopped => "stopped",
    start_deadline_seconds => "startDeadlineSeconds",
    ttl_seconds_after_finished => "ttlSecondsAfterFinished",
}

impl BoxBuilder {
    /// The command.
    #[must_use]
    pub fn runs<'a>(self, command: impl IntoIterator<Item = &'a str>) -> Self {
        let command: Vec<_> = command.into_iter().collect();
        self.command(command)
    }

    /// The command is this line, given to a shell. A shell's own `$$` is written `$$$$`.
    #[must_use]
    pub fn shell(self, line: &str) -> Self {
        self.runs(["sh", "-c", line])
    }

    /// A line for a shell that is run when [`LiveBox::tell`] says so, however late that is.
    #[must_use]
    pub fn when_told(self, line: &str) -> Self {
        self.shell(&format!("{WAIT}; {line}"))
    }

    /// Limits the memory of the command.
    #[must_use]
    pub fn memory_limit(self, quantity: &str) -> Self {
        self.resources(json!({"limits": {"memory": quantity}}))
    }

    /// `spec.template.spec`.
    #[must_use]
    pub fn pod_template(self, partial: &Value) -> Self {
        self.template(json!({"spec": partial}))
    }

    /// Any field of the spec, also one that there is not; null removes it.
    #[must_use]
    pub fn with(mut self, field: &str, value: Value) -> Self {
        match value {
            Value::Null => self.spec.remove(field),
            value => self.spec.insert(field.to_owned(), value),
        };
        self
    }

    /// Any field of the metadata.
    #[must_use]
    pub fn with_metadata(mut self, field: &str, value: Value) -> Self {
        self.metadata.insert(field.to_owned(), value);
        self
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.metadata
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// The manifest, as a user would write it.
    #[must_use]
    pub fn manifest(&self) -> Value {
        json!({
            "apiVersion": "boxes.run/v1alpha1",
            "kind": "Box",
            "metadata": self.metadata,
            "spec": self.spec,
        })
    }

    /// Makes the Box in the test's namespace.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn create(self, world: &World) -> Result<LiveBox> {
        let name = self.name().to_owned();
        let made = self
            .try_create(world)
            .await
            .with_context(|| format!("cannot make box {name}"))?;
        Ok(LiveBox::new(world, &made))
    }

    /// Asks the API server for the Box, which may well refuse it.
    ///
    /// # Errors
    /// As the API server says.
    pub async fn try_create(self, world: &World) -> kube::Result<BoxObject> {
        let object: DynamicObject =
            serde_json::from_value(self.manifest()).map_err(kube::Error::SerdeError)?;
        let made = world
            .dynamic_boxes()
            .create(&PostParams::default(), &object)
            .await?;
        made.try_parse()
            .map_err(|error| kube::Error::Service(Box::new(error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_says_what_was_asked_and_nothing_else() {
        let manifest = a_box("it")
            .runs(["true"])
            .active_deadline_seconds(3)
            .manifest();
        assert_eq!(
            manifest["spec"],
            json!({"image": "busybox", "command": ["true"], "activeDeadlineSeconds": 3})
        );
        assert_eq!(manifest["metadata"], json!({"name": "it"}));
    }

    #[test]
    fn null_removes_a_field() {
        let manifest = a_box("it").with("image", Value::Null).manifest();
        assert_eq!(manifest["spec"], json!({}));
    }

    /// Each field of the API has a method here: a new one must not go untested for want of it.
    #[test]
    fn every_field_of_the_spec_can_be_set() {
        let crd = serde_json::to_value(boxes_crds::crd()).unwrap();
        let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let fields = schema["properties"]["spec"]["properties"]
            .as_object()
            .unwrap();
        let source = include_str!("builder.rs");
        for field in fields.keys() {
            assert!(
                source.contains(&format!("=> \"{field}\",")),
                "no method for {field}"
            );
        }
    }
}
