//! Everything that happened to the Boxes and pods of a namespace, in the order in which it happened.
//!
//! Guarantees: every version that the API server stored from the beginning on is there once, and the
//! order is that of the store: resource versions of Boxes and pods count the same thing.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use boxes_crds::{BoxObject, BoxStatus, POD_FINALIZER};
use futures::TryStreamExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, ObjectMeta, WatchEvent, WatchParams};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::watch::PATIENCE;
use super::world::World;

/// One version of an object.
#[derive(Debug, Clone)]
pub struct Moment {
    /// Its place in the order of all.
    pub version: u64,
    /// When it was told here.
    pub at: Timestamp,
    /// Whether the object was removed from the store with it.
    pub gone: bool,
    /// The object.
    pub seen: Seen,
}

/// An object of a story.
#[derive(Debug, Clone)]
pub enum Seen {
    /// A Box.
    Box(Box<BoxObject>),
    /// A pod.
    Pod(Box<Pod>),
}

impl Moment {
    /// The Box of this moment, if it is one of a Box.
    #[must_use]
    pub fn a_box(&self) -> Option<&BoxObject> {
        match &self.seen {
            Seen::Box(object) => Some(object),
            Seen::Pod(_) => None,
        }
    }

    /// The pod of this moment, if it is one of a pod.
    #[must_use]
    pub fn pod(&self) -> Option<&Pod> {
        match &self.seen {
            Seen::Pod(pod) => Some(pod),
            Seen::Box(_) => None,
        }
    }

    /// The status of the Box of this moment.
    #[must_use]
    pub fn status(&self) -> Option<&BoxStatus> {
        self.a_box()?.status.as_ref()
    }

    /// Whether it is a pod that our finalizer holds.
    #[must_use]
    pub fn is_held_pod(&self) -> bool {
        self.pod()
            .is_some_and(|pod| pod.finalizers().iter().any(|it| it == POD_FINALIZER))
    }

    /// One line about it, for messages.
    #[must_use]
    pub fn line(&self) -> String {
        let gone = if self.gone { " GONE" } else { "" };
        let (kind, meta, state) = match &self.seen {
            Seen::Box(object) => (
                "box",
                object.meta(),
                format!("{:?}", self.status().map(summary)),
            ),
            Seen::Pod(pod) => {
                let phase = pod.status.as_ref().and_then(|status| status.phase.clone());
                ("pod", pod.meta(), phase.unwrap_or_default())
            }
        };
        let name = meta.name.as_deref().unwrap_or_default();
        let deleting = if meta.deletion_timestamp.is_some() {
            " deleting"
        } else {
            ""
        };
        let finalizers = meta.finalizers.clone().unwrap_or_default();
        format!(
            "{} {kind}/{name}{gone}{deleting} {state} {finalizers:?}",
            self.version
        )
    }
}

fn summary(status: &BoxStatus) -> (Option<&str>, Option<&str>, Vec<&str>) {
    let history = status
        .history
        .iter()
        .map(|entry| entry.type_.as_str())
        .collect();
    (status.state.as_deref(), status.reason.as_deref(), history)
}

/// A story that is being written down.
pub struct Story {
    boxes: Chapter<BoxObject>,
    pods: Chapter<Pod>,
    moments: Arc<Mutex<Vec<Moment>>>,
    broken: Arc<Mutex<Option<String>>>,
    news: watch::Receiver<usize>,
    _writers: JoinSet<()>,
}

impl Story {
    pub(super) async fn begin(world: &World) -> Result<Self> {
        let (say, news) = watch::channel(0);
        let moments = Arc::new(Mutex::new(Vec::new()));
        let broken = Arc::default();
        let mut writers = JoinSet::new();
        let (boxes, pods) = (world.boxes(), world.pods());
        let (from_boxes, from_pods) = (version_of(&boxes).await?, version_of(&pods).await?);
        let pen = Pen {
            moments: Arc::clone(&moments),
            broken: Arc::clone(&broken),
            say,
        };
        let of_box = |object: BoxObject| Seen::Box(Box::new(object));
        let of_pod = |pod: Pod| Seen::Pod(Box::new(pod));
        writers.spawn(write(
            boxes.clone(),
            from_boxes.clone(),
            pen.clone(),
            of_box,
        ));
        writers.spawn(write(pods.clone(), from_pods.clone(), pen, of_pod));
        Ok(Self {
            boxes: Chapter::new(boxes, &from_boxes),
            pods: Chapter::new(pods, &from_pods),
            moments,
            broken,
            news,
            _writers: writers,
        })
    }

    /// What happened so far, in order.
    #[must_use]
    pub fn so_far(&self) -> Vec<Moment> {
        let mut all = self
            .moments
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        all.sort_by_key(|moment| moment.version);
        all
    }

    /// Fails once a watch broke in a way that loses what came next.
    fn whole(&self) -> Result<()> {
        let broken = self.broken.lock().unwrap_or_else(PoisonError::into_inner);
        match &*broken {
            None => Ok(()),
            Some(why) => bail!("a watch of the story broke: {why}"),
        }
    }

    /// Waits until the story is as described, and tells it: all that happened until then, and perhaps
    /// some more.
    ///
    /// # Errors
    /// When it is not in time; the message tells the story so far.
    pub async fn until(
        &mut self,
        what: &str,
        is: impl Fn(&[Moment]) -> bool,
    ) -> Result<Vec<Moment>> {
        let search = async {
            self.reach(is).await?;
            // The watches of Boxes and of pods are two: one may be behind what the other has told.
            let (boxes, pods) = (self.boxes.list().await?, self.pods.list().await?);
            let is_told = |all: &[Moment]| {
                boxes.is_told(all, |it| it.a_box().map(Resource::meta))
                    && pods.is_told(all, |it| it.pod().map(Resource::meta))
            };
            self.reach(is_told).await
        };
        match tokio::time::timeout(PATIENCE, search).await {
            Ok(told) => told,
            Err(_) => bail!(
                "waited {} s for {what}; {}",
                PATIENCE.as_secs(),
                tell(&self.so_far())
            ),
        }
    }

    async fn reach(&self, is: impl Fn(&[Moment]) -> bool) -> Result<Vec<Moment>> {
        let mut news = self.news.clone();
        loop {
            let all = self.so_far();
            self.whole()?;
            if is(&all) {
                return Ok(all);
            }
            news.changed()
                .await
                .context("the watches of the story ended")?;
        }
    }

    /// Watches for a while that the story does not become as described.
    ///
    /// # Errors
    /// When it does; the message tells the story so far.
    pub async fn never(
        &mut self,
        what: &str,
        time: Duration,
        is: impl Fn(&[Moment]) -> bool,
    ) -> Result<()> {
        let over = tokio::time::sleep(time);
        let mut over = pin!(over);
        loop {
            let all = self.so_far();
            ensure!(!is(&all), "{what}; {}", tell(&all));
            self.whole()?;
            tokio::select! {
                () = &mut over => return Ok(()),
                news = self.news.changed() => news.context("the watches of the story ended")?,
            }
        }
    }
}

/// The objects of one kind that a story is about.
struct Chapter<K> {
    api: Api<K>,
    /// What was changed last at that version or before is not told.
    from: u64,
}

/// What there was of them at one instant: their versions, by UID.
struct There {
    versions: BTreeMap<String, u64>,
    from: u64,
}

impl<K> Chapter<K>
where
    K: Resource + Clone + Debug + DeserializeOwned,
{
    fn new(api: Api<K>, from: &str) -> Self {
        let from = from.parse().unwrap_or_default();
        Self { api, from }
    }

    async fn list(&self) -> Result<There> {
        let all = self.api.list(&ListParams::default()).await?.items;
        let version = |object: &K| object.resource_version()?.parse().ok();
        let known = |object: K| Some((object.uid()?, version(&object)?));
        Ok(There {
            versions: all.into_iter().filter_map(known).collect(),
            from: self.from,
        })
    }
}

impl There {
    /// Whether a story has come as far: of what is there it has told the last change, and of what it told
    /// of and is not there the end.
    fn is_told<'a>(
        &self,
        story: &'a [Moment],
        meta: impl Fn(&'a Moment) -> Option<&'a ObjectMeta>,
    ) -> bool {
        let mut last: BTreeMap<&str, &Moment> = BTreeMap::new();
        for moment in story {
            if let Some(uid) = meta(moment).and_then(|meta| meta.uid.as_deref()) {
                last.insert(uid, moment);
            }
        }
        let changes = self.versions.iter().all(|(uid, version)| {
            let told = last.get(uid.as_str()).map_or(self.from, |it| it.version);
            told >= *version
        });
        let mut all = last.iter();
        changes && all.all(|(uid, moment)| moment.gone || self.versions.contains_key(*uid))
    }
}

/// A story in lines, for messages.
#[must_use]
pub fn tell(moments: &[Moment]) -> String {
    let lines: Vec<_> = moments.iter().map(Moment::line).collect();
    format!("what happened:\n{}", lines.join("\n"))
}

#[derive(Clone)]
struct Pen {
    moments: Arc<Mutex<Vec<Moment>>>,
    broken: Arc<Mutex<Option<String>>>,
    say: watch::Sender<usize>,
}

impl Pen {
    fn breaks(&self, why: &str) {
        *self.broken.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.to_owned());
        self.say.send_modify(|count| *count += 1);
    }

    fn write(&self, moment: Moment) {
        self.moments
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(moment);
        self.say.send_modify(|count| *count += 1);
    }
}

async fn version_of<K>(api: &Api<K>) -> Result<String>
where
    K: Resource + Clone + Debug + DeserializeOwned,
{
    let list = api.list(&ListParams::default().limit(1)).await?;
    list.metadata
        .resource_version
        .context("a list without a resource version")
}

/// Watches from a version on. A watch that breaks is taken up again where it broke.
async fn write<K>(api: Api<K>, mut version: String, pen: Pen, seen: impl Fn(K) -> Seen)
where
    K: Resource + Clone + Debug + DeserializeOwned + 'static,
{
    loop {
        let Ok(events) = api.watch(&WatchParams::default(), &version).await else {
            continue;
        };
        let mut events = pin!(events);
        while let Ok(Some(event)) = events.try_next().await {
            let (object, gone) = match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
                WatchEvent::Deleted(object) => (object, true),
                WatchEvent::Bookmark(bookmark) => {
                    version = bookmark.metadata.resource_version;
                    continue;
                }
                // What happened since cannot be told any more: whoever waits for it hears that.
                WatchEvent::Error(error) => return pen.breaks(&error.message),
            };
            version = object.resource_version().unwrap_or_default();
            let number = version.parse().unwrap_or_default();
            pen.write(Moment {
                version: number,
                at: Timestamp::now(),
                gone,
                seen: seen(object),
            });
        }
    }
}
