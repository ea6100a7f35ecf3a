//! Waiting for an object to be as expected: by watch, with a deadline.

use std::fmt::Debug;
use std::pin::pin;
use std::time::Duration;

use anyhow::{Result, bail};
use futures::StreamExt;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watch_object, watcher};
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::dump::yaml;

/// How long a test waits for one thing. It is a bound for a slow machine, not an expectation.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// Watches one object until `found` sees in it what is looked for. `None` is an absent object.
///
/// # Errors
/// When the deadline passes; the message holds `what` was waited for and the object as last seen.
pub async fn until<K, T>(
    api: &Api<K>,
    name: &str,
    what: &str,
    patience: Duration,
    mut found: impl FnMut(Option<&K>) -> Option<T>,
) -> Result<T>
where
    K: Resource + Clone + Debug + Send + Serialize + DeserializeOwned + 'static,
{
    let mut last = None;
    let mut trouble = None;
    let mut seen = pin!(watch_object(api.clone(), name).default_backoff());
    let search = async {
        while let Some(next) = seen.next().await {
            match next {
                Ok(object) => match found(object.as_ref()) {
                    Some(it) => return Some(it),
                    None => last = Some(object),
                },
                Err(error) => trouble = Some(error.to_string()),
            }
        }
        None
    };
    if let Ok(Some(it)) = tokio::time::timeout(patience, search).await {
        return Ok(it);
    }
    let last = match last {
        None => "nothing".to_owned(),
        Some(None) => "that there is no such object".to_owned(),
        Some(Some(object)) => yaml(&object),
    };
    let trouble = trouble
        .map(|error| format!("; last error: {error}"))
        .unwrap_or_default();
    bail!(
        "waited {} s for {what} ({name}){trouble}; last seen:\n{last}",
        patience.as_secs()
    )
}

/// Waits until there is no object of this name, or another one.
///
/// # Errors
/// When it is still there after [`PATIENCE`].
pub async fn gone<K>(api: &Api<K>, name: &str, uid: Option<&str>) -> Result<()>
where
    K: Resource + Clone + Debug + Send + Serialize + DeserializeOwned + 'static,
{
    let is_gone = |seen: Option<&K>| match (seen, uid) {
        (None, _) => Some(()),
        (Some(object), Some(uid)) => (object.meta().uid.as_deref() != Some(uid)).then_some(()),
        (Some(_), None) => None,
    };
    until(api, name, "the object to be gone", PATIENCE, is_gone).await
}

/// Watches all objects with these labels until `found` sees in one of them what is looked for.
///
/// # Errors
/// When it does not within [`PATIENCE`]; the message holds `what` was waited for and what was seen.
pub async fn first<K, T>(
    api: &Api<K>,
    labels: &str,
    what: &str,
    mut found: impl FnMut(&K) -> Option<T>,
) -> Result<T>
where
    K: Resource + Clone + Debug + Send + Serialize + DeserializeOwned + 'static,
{
    let mut last = None;
    let config = watcher::Config::default().labels(labels);
    let mut seen = pin!(
        watcher(api.clone(), config)
            .default_backoff()
            .applied_objects()
    );
    let search = async {
        while let Some(next) = seen.next().await {
            let Ok(object) = next else { continue };
            match found(&object) {
                Some(it) => return Some(it),
                None => last = Some(object),
            }
        }
        None
    };
    if let Ok(Some(it)) = tokio::time::timeout(PATIENCE, search).await {
        return Ok(it);
    }
    let last = last.as_ref().map_or_else(|| "nothing".to_owned(), yaml);
    bail!(
        "waited {} s for {what} ({labels}); last seen:\n{last}",
        PATIENCE.as_secs()
    )
}
