//! Watches the Boxes and pods of a namespace and notes when what was first seen.

use std::collections::{BTreeMap, HashMap};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use boxes_crds::BOX_NAME_ANNOTATION;
use futures::TryStreamExt;
use kube::Client;
use kube::api::{WatchEvent, WatchParams};
use kube::core::Request;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::cluster_access::{boxes_in, core_in, get};
use super::life::Life;

/// An object, reduced to what is looked at, so that looking costs little.
#[derive(Debug, Clone, Deserialize)]
struct Seen<S> {
    metadata: Meta,
    status: Option<S>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    name: String,
    resource_version: String,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodStatus {
    #[serde(default)]
    container_statuses: Vec<ContainerStatus>,
}

#[derive(Debug, Clone, Deserialize)]
struct ContainerStatus {
    state: Option<ContainerState>,
}

#[derive(Debug, Clone, Deserialize)]
struct ContainerState {
    terminated: Option<IgnoredAny>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct BoxStatus {
    reason: Option<String>,
    exit_code: Option<i32>,
    #[serde(default)]
    conditions: Vec<Condition>,
}

#[derive(Debug, Clone, Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    type_: String,
    status: String,
}

#[derive(Deserialize)]
struct List {
    metadata: ListMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMeta {
    resource_version: String,
}

/// What was seen so far. The lives are by the name of the Box, or of a bare pod.
#[derive(Debug)]
struct Book {
    lives: Mutex<HashMap<String, Life>>,
    news: watch::Sender<usize>,
}

/// The watches of a namespace.
#[derive(Debug)]
pub(super) struct Observer {
    book: Arc<Book>,
    watches: JoinSet<Result<()>>,
}

impl Observer {
    /// Begins to watch a namespace.
    pub(super) async fn begin(client: &Client, namespace: &str) -> Result<Self> {
        let book = Arc::new(Book {
            lives: Mutex::default(),
            news: watch::Sender::new(0),
        });
        let mut watches = JoinSet::new();
        for (path, is_boxes) in [
            (boxes_in(namespace), true),
            (core_in(namespace, "pods"), false),
        ] {
            let list: List = get(client, &format!("{path}?limit=1")).await?;
            let (client, book) = (client.clone(), Arc::clone(&book));
            let version = list.metadata.resource_version;
            watches.spawn(async move {
                if is_boxes {
                    let note = |object: &Seen<BoxStatus>, _: bool, now| book.note_box(object, now);
                    follow(&client, &path, version, note).await
                } else {
                    let note =
                        |object: &Seen<PodStatus>, gone, now| book.note_pod(object, gone, now);
                    follow(&client, &path, version, note).await
                }
            });
        }
        Ok(Self { book, watches })
    }

    /// Notes that an object is about to be made.
    pub(super) fn create(&self, name: &str) {
        self.book.with(|lives| {
            lives.insert(name.to_owned(), Life::new(Instant::now()));
        });
    }

    /// The lives so far.
    pub(super) fn lives(&self) -> Vec<Life> {
        self.book.with(|lives| lives.values().copied().collect())
    }

    /// The life of one object.
    pub(super) fn life(&self, name: &str) -> Option<Life> {
        self.book.with(|lives| lives.get(name).copied())
    }

    /// Waits until so many Boxes have ended, are cleaned up, and their pods gone.
    pub(super) async fn done(&mut self, count: usize, patience: Duration) -> Result<()> {
        let enough = |book: &Book| *book.news.borrow() >= count;
        self.until(enough, patience).await.with_context(|| {
            let done = *self.book.news.borrow();
            format!("{done} of {count} boxes are done")
        })
    }

    /// Waits until one object is as described.
    pub(super) async fn one(
        &mut self,
        name: &str,
        patience: Duration,
        is: impl Fn(&Life) -> bool,
    ) -> Result<()> {
        let found = |book: &Book| book.with(|lives| lives.get(name).is_some_and(&is));
        self.until(found, patience)
            .await
            .with_context(|| format!("{name} does not get there"))
    }

    async fn until(&mut self, is: impl Fn(&Book) -> bool, patience: Duration) -> Result<()> {
        let mut news = self.book.news.subscribe();
        let search = async {
            while !is(&self.book) {
                tokio::select! {
                    changed = news.changed() => changed.context("nobody watches any more")?,
                    Some(ended) = self.watches.join_next() => {
                        ended??;
                        bail!("a watch ended");
                    }
                }
            }
            Ok(())
        };
        tokio::time::timeout(patience, search)
            .await
            .with_context(|| format!("waited {} s", patience.as_secs()))?
    }
}

impl Book {
    fn with<T>(&self, look: impl FnOnce(&mut HashMap<String, Life>) -> T) -> T {
        look(&mut self.lives.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Life)) {
        let newly_done = self.with(|lives| {
            let life = lives.get_mut(name)?;
            let before = life.done().is_some();
            change(life);
            Some(!before && life.done().is_some())
        });
        let more = usize::from(newly_done == Some(true));
        self.news.send_modify(|done| *done += more);
    }

    fn note_box(&self, object: &Seen<BoxStatus>, now: Instant) {
        let Some(status) = &object.status else {
            return;
        };
        self.change(&object.metadata.name, |life| {
            if let Some(reason) = &status.reason {
                life.box_ended.get_or_insert(now);
                life.wrong |= reason != "Exit" || status.exit_code != Some(0);
            }
            if is_cleaned_up(status) {
                life.cleaned_up.get_or_insert(now);
            }
        });
    }

    fn note_pod(&self, pod: &Seen<PodStatus>, gone: bool, now: Instant) {
        let own = &pod.metadata.name;
        let name = pod.metadata.annotations.get(BOX_NAME_ANNOTATION);
        self.change(name.unwrap_or(own), |life| {
            if pod.status.as_ref().is_some_and(has_ended) {
                life.pod_ended.get_or_insert(now);
            }
            if gone {
                life.pod_gone.get_or_insert(now);
            }
        });
    }
}

fn is_cleaned_up(status: &BoxStatus) -> bool {
    let mut conditions = status.conditions.iter();
    conditions.any(|known| known.type_ == "CleanedUp" && known.status == "True")
}

fn has_ended(status: &PodStatus) -> bool {
    let mut containers = status.container_statuses.iter();
    containers.any(|it| {
        it.state
            .as_ref()
            .is_some_and(|state| state.terminated.is_some())
    })
}

/// Watches from a version on, and takes a watch that the API server ends up again where it ended.
async fn follow<S>(
    client: &Client,
    path: &str,
    mut version: String,
    note: impl Fn(&Seen<S>, bool, Instant),
) -> Result<()>
where
    S: Clone + DeserializeOwned,
{
    loop {
        let request = Request::new(path).watch(&WatchParams::default(), &version)?;
        let mut events = pin!(client.request_events::<Seen<S>>(request).await?);
        while let Some(event) = events.try_next().await? {
            let now = Instant::now();
            match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    note(&object, false, now);
                    version = object.metadata.resource_version;
                }
                WatchEvent::Deleted(object) => {
                    note(&object, true, now);
                    version = object.metadata.resource_version;
                }
                WatchEvent::Bookmark(mark) => version = mark.metadata.resource_version,
                WatchEvent::Error(error) => {
                    bail!("the watch of {path} failed: {}", error.message);
                }
            }
        }
    }
}
