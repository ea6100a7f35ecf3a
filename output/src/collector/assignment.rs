//! What is to be collected, and what came of it.

use jiff::Timestamp;

use crate::archive::{Label, Manifest, RunKey};

/// The output of one pod, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Whose output it is.
    pub run: RunKey,
    /// The namespace of the Box.
    pub namespace: String,
    /// The name of the Box.
    pub name: String,
    /// The container's log folder, below the node's: `<namespace>_<pod>_<uid>/<container>`.
    pub folder: String,
    /// Whether the Box was seen to exist. Before that files are held, and nothing is stored.
    pub wanted: bool,
    /// When the container started, if the kubelet ever said that it did.
    pub started: Option<Timestamp>,
    /// Whether the container has ended.
    pub ended: Ended,
}

/// What is known about the end of a container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ended {
    /// It may still write.
    #[default]
    No,
    /// It has ended; there must be a log.
    Ran,
    /// Its pod is over and says of no start; there need not be a log.
    NeverRan,
    /// Nobody knows when it ended, or whether it has: its log may have gone on.
    Unknown,
}

impl Assignment {
    pub(crate) fn label(&self) -> Label {
        Label {
            uid: self.run.box_uid.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }

    /// Whether the container has ended, by all that is known: a kubelet that restarts may say of a
    /// pod that it failed, and no more, while its container still runs.
    pub(crate) fn end(&self, logged: bool) -> Ended {
        match self.ended {
            Ended::NeverRan if logged || self.started.is_some() => Ended::Unknown,
            said => said,
        }
    }

    /// Takes the news. That it started is not forgotten.
    pub(crate) fn update(&mut self, news: Self) -> bool {
        let news = Self {
            started: news.started.or(self.started),
            ..news
        };
        let changed = *self != news;
        *self = news;
        changed
    }
}

/// The output of a pod is saved, as far as it ever will be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What was collected.
    pub assignment: Assignment,
    /// What is durable in the archive.
    pub manifest: Manifest,
}
