//! What every pass shares.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use boxes_lifecycle::{BoxView, PodView};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Api, Client};
use tokio::sync::SetOnce;

use crate::announce::Announcer;
use crate::cache::CachedBox;
use crate::memory::Memories;
use crate::metrics::Metrics;
use crate::queue::Queue;
use crate::supervision::Supervision;
use crate::traces::Traces;

/// The field manager of our server-side applies and the name that Events are reported under.
pub(crate) const MANAGER: &str = "boxes-controller";

/// What every pass shares.
pub(crate) struct Context {
    pub client: Client,
    /// Every pod with our label.
    pub pods: Store<PodView>,
    /// Every Box.
    pub boxes: Store<CachedBox>,
    pub memories: Memories,
    pub metrics: Arc<Metrics>,
    pub announcer: Announcer,
    pub traces: Traces,
    /// What new pods get to run under.
    pub supervision: Supervision,
    /// Whether new pods wait until their output is saved.
    pub saves_output: bool,
    /// The Boxes to make a pass over.
    pub queue: Queue<ObjectRef<CachedBox>>,
    /// Set when the first list of Boxes is in the cache.
    pub boxes_listed: SetOnce<()>,
    /// Set when the first list of pods is.
    pub pods_listed: SetOnce<()>,
    /// Whether the first lists are in, or another controller leads and this one could take over.
    pub ready: AtomicBool,
}

impl Context {
    /// The pods of a namespace.
    pub(crate) fn pods_in(&self, namespace: &str) -> Api<PodView> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// The Boxes of a namespace.
    pub(crate) fn boxes_in(&self, namespace: &str) -> Api<BoxView> {
        Api::namespaced(self.client.clone(), namespace)
    }
}
