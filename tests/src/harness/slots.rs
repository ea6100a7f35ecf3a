//! Room on a real node that only one test knows of: an extended resource with the name of its
//! namespace. Whoever asks for it competes with nobody else.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::watch::{PATIENCE, until};
use super::world::World;

/// Slots that a node offers.
pub struct Slots {
    nodes: Api<Node>,
    node: String,
    resource: String,
}

impl World {
    /// The node that the controller runs on: it has a kubelet that works.
    ///
    /// # Errors
    /// When there is none.
    pub async fn a_node(&self) -> Result<String> {
        let pod = self.controller().ready_pod().await?;
        let node = pod.spec.and_then(|spec| spec.node_name);
        node.context("a ready pod without a node")
    }

    /// Lets a node offer so many slots.
    ///
    /// # Errors
    /// When its status cannot be patched.
    pub async fn slots(&self, count: u32) -> Result<Slots> {
        let slots = Slots {
            nodes: Api::all(self.client()),
            node: self.a_node().await?,
            resource: format!("example.com/{}", self.namespace()),
        };
        slots.offer(&json!(count.to_string())).await?;
        let offered = |seen: Option<&Node>| {
            let allocatable = seen?.status.as_ref()?.allocatable.as_ref()?;
            allocatable.contains_key(&slots.resource).then_some(())
        };
        until(&slots.nodes, &slots.node, "the slots", PATIENCE, offered).await?;
        Ok(slots)
    }
}

impl Slots {
    /// `spec.resources` of a Box that takes so many.
    #[must_use]
    pub fn taking(&self, count: u32) -> Value {
        let limits = BTreeMap::from([(&self.resource, count.to_string())]);
        json!({"limits": limits})
    }

    /// The node that offers them.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.node
    }

    /// The name under which they are asked for.
    #[must_use]
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// Takes them back.
    ///
    /// # Errors
    /// When the node's status cannot be patched.
    pub async fn withdraw(self) -> Result<()> {
        self.offer(&Value::Null).await
    }

    async fn offer(&self, count: &Value) -> Result<()> {
        let room = BTreeMap::from([(&self.resource, count)]);
        let patch = Patch::Merge(json!({"status": {"capacity": room, "allocatable": room}}));
        let patched = self
            .nodes
            .patch_status(&self.node, &PatchParams::default(), &patch)
            .await;
        patched
            .with_context(|| format!("cannot change what node {} offers", self.node))
            .map(drop)
    }
}
