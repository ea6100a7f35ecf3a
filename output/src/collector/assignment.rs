//! What is to be collected, and what came of it.

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
    /// It never started; there need not be a log.
    NeverRan,
    /// Its pod went before the end of the container was known: its log may have gone on.
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
}

/// The output of a pod is saved, as far as it ever will be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What was collected.
    pub assignment: Assignment,
    /// What is durable in the archive.
    pub manifest: Manifest,
}
