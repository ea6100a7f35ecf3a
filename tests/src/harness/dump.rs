//! What a failed test shows: Boxes, pods and events of its namespace, and the controller's words.

use std::fmt::{Debug, Write};

use boxes_crds::BoxObject;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::world::World;

/// An object as YAML, without `managedFields`.
pub(super) fn yaml<K: Serialize>(object: &K) -> String {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Some(metadata) = value.get_mut("metadata").and_then(|it| it.as_object_mut()) {
        metadata.remove("managedFields");
    }
    serde_saphyr::to_string(&value).unwrap_or_else(|error| format!("no YAML: {error}"))
}

/// Everything that helps to understand what happened in a test's namespace.
pub(super) async fn dump(world: &World) -> String {
    let mut text = String::new();
    section(
        &mut text,
        "boxes",
        &objects::<BoxObject>(&world.boxes()).await,
    );
    section(&mut text, "pods", &objects::<Pod>(&world.pods()).await);
    section(&mut text, "events", &events(world).await);
    section(
        &mut text,
        "the controller's log about this namespace",
        &log(world).await,
    );
    text
}

fn section(text: &mut String, title: &str, content: &str) {
    let content = if content.trim().is_empty() {
        "(none)"
    } else {
        content.trim_end()
    };
    // Writing to a String cannot fail.
    let _ = write!(text, "\n--- {title}\n{content}\n");
}

async fn objects<K>(api: &Api<K>) -> String
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
{
    match api.list(&ListParams::default()).await {
        Ok(list) => list
            .items
            .iter()
            .map(yaml)
            .collect::<Vec<_>>()
            .join("---\n"),
        Err(error) => format!("cannot be listed: {error}"),
    }
}

async fn events(world: &World) -> String {
    let api: Api<Event> = world.api();
    match api.list(&ListParams::default()).await {
        Ok(list) => list.items.iter().map(line).collect(),
        Err(error) => format!("cannot be listed: {error}"),
    }
}

fn line(event: &Event) -> String {
    let regarding = event.regarding.as_ref();
    let kind = regarding.and_then(|it| it.kind.as_deref()).unwrap_or("?");
    let name = regarding.and_then(|it| it.name.as_deref()).unwrap_or("?");
    let at = event
        .creation_timestamp()
        .map(|time| time.0.to_string())
        .unwrap_or_default();
    let reason = event.reason.as_deref().unwrap_or("?");
    let note = event.note.as_deref().unwrap_or_default();
    format!("{at} {kind}/{name} {reason}: {note}\n")
}

async fn log(world: &World) -> String {
    match world.controller().log_since(world.began()).await {
        Ok(log) => {
            let about = |line: &&str| line.contains(world.namespace());
            log.lines().filter(about).collect::<Vec<_>>().join("\n")
        }
        Err(error) => format!("cannot be read: {error:#}"),
    }
}
