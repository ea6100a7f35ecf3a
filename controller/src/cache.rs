//! What the cache keeps of a Box: the whole, until nothing is left to do about it.

use boxes_crds::State;
use boxes_lifecycle::{BoxView, settled};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::NamespaceResourceScope;
use serde::{Deserialize, Deserializer};

/// What stands for the state of a Box that this build cannot read.
pub(crate) const UNREADABLE: &str = "Unreadable";

/// A Box in the cache.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "the large one is the small one to keep: most are so"
)]
pub(crate) enum CachedBox {
    /// As the API server hands it out.
    Whole(Box<BoxView>),
    /// It asks for nothing until it changes or expires. What would be done then is decided on a
    /// fresh read.
    Settled {
        metadata: ObjectMeta,
        state: State,
        expires_at: Option<Timestamp>,
    },
}

impl CachedBox {
    /// The UID.
    pub(crate) fn uid(&self) -> &str {
        self.meta().uid.as_deref().unwrap_or_default()
    }

    /// The state as metrics name it.
    pub(crate) fn state_word(&self) -> &'static str {
        match self {
            Self::Settled { state, .. } => state.as_str(),
            Self::Whole(object) => match &object.content {
                Err(_) => UNREADABLE,
                Ok((_, record)) => record.state.unwrap_or(State::Pending).as_str(),
            },
        }
    }

    /// Whether its ending is recorded.
    pub(crate) fn has_ended(&self) -> bool {
        match self {
            Self::Settled { .. } => true,
            Self::Whole(object) => {
                let content = object.content.as_ref();
                content.is_ok_and(|(_, record)| record.ending.is_some())
            }
        }
    }
}

impl From<BoxView> for CachedBox {
    fn from(object: BoxView) -> Self {
        match settled(&object) {
            None => Self::Whole(Box::new(object)),
            Some(settled) => Self::Settled {
                metadata: identity(object.metadata),
                state: settled.state,
                expires_at: settled.expires_at,
            },
        }
    }
}

/// What names an object, and one state of it.
fn identity(full: ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        name: full.name,
        namespace: full.namespace,
        uid: full.uid,
        resource_version: full.resource_version,
        ..ObjectMeta::default()
    }
}

impl<'de> Deserialize<'de> for CachedBox {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        BoxView::deserialize(deserializer).map(Self::from)
    }
}

impl Resource for CachedBox {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind(dt: &()) -> std::borrow::Cow<'_, str> {
        BoxView::kind(dt)
    }
    fn group(dt: &()) -> std::borrow::Cow<'_, str> {
        BoxView::group(dt)
    }
    fn version(dt: &()) -> std::borrow::Cow<'_, str> {
        BoxView::version(dt)
    }
    fn plural(dt: &()) -> std::borrow::Cow<'_, str> {
        BoxView::plural(dt)
    }
    fn meta(&self) -> &ObjectMeta {
        match self {
            Self::Whole(object) => &object.metadata,
            Self::Settled { metadata, .. } => metadata,
        }
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        match self {
            Self::Whole(object) => &mut object.metadata,
            Self::Settled { metadata, .. } => metadata,
        }
    }
}
