//! The API of Boxes as Rust types, and the CustomResourceDefinition made from them.
//!
//! The types say what is written on the wire and nothing about behaviour: every rule lives in the
//! crate `boxes-lifecycle`. [`crd()`] is the one source of `crds/boxes.yaml`; a test compares them.

#![forbid(unsafe_code)]

mod crd;
mod names;
#[expect(
    clippy::duplicated_attributes,
    reason = "every printed column has a type and a path of its own"
)]
mod spec;
mod status;

pub use crd::crd;
pub use names::{Evidence, HistoryType, OutputState, Reason, State, StopCause};
pub use spec::{BoxObject, BoxSpec, BoxTemplate, BoxTemplateMeta};
pub use status::{BoxStatus, HistoryEntry, OutputStatus, PodReference, Run, Stop};

/// Domain of every label, annotation and finalizer that is ours.
pub const DOMAIN: &str = "boxes.run/";

/// Finalizer on a Box: its record outlives its pod.
pub const BOX_FINALIZER: &str = "boxes.run/record";

/// Finalizer on a pod: its ending cannot be deleted away before it is copied into the record.
pub const POD_FINALIZER: &str = "boxes.run/evidence";

/// Finalizer on a pod: its output cannot be deleted away before it is saved. The collector of its
/// node lets go of it.
pub const OUTPUT_FINALIZER: &str = "boxes.run/output";

/// Every finalizer on a pod that is ours.
pub const POD_FINALIZERS: [&str; 2] = [POD_FINALIZER, OUTPUT_FINALIZER];

/// Annotation on a pod: what the collector saved of its output, an [`OutputStatus`] as JSON.
pub const OUTPUT_ANNOTATION: &str = "boxes.run/output";

/// Label on a pod: the UID of the Box that it runs.
pub const BOX_UID_LABEL: &str = "boxes.run/box-uid";

/// Annotation on a pod: the whole name of its Box (a label would cut names past 63 characters).
pub const BOX_NAME_ANNOTATION: &str = "boxes.run/box";

/// Annotation on a pod: the generation of the Box that it was made from.
pub const GENERATION_ANNOTATION: &str = "boxes.run/generation";

/// Annotation on a Box: the UID of a pod that a person confirms to be stopped.
pub const CONFIRM_STOPPED_ANNOTATION: &str = "boxes.run/confirm-stopped";

/// Annotation on a Box: the UID of a pod to be deleted with the shortest grace.
pub const FORCE_STOP_ANNOTATION: &str = "boxes.run/force-stop";

/// Annotation on a Box: the UID of a pod whose output a person gives up.
pub const ABANDON_OUTPUT_ANNOTATION: &str = "boxes.run/abandon-output";

/// Annotation on a pod: how the supervisor gets into it. Without it the command runs unsupervised.
pub const SUPERVISOR_ANNOTATION: &str = "boxes.run/supervisor";

/// Name of the one container of a pod that runs the Box's command.
pub const CONTAINER: &str = "box";

/// Condition types of a Box.
pub mod condition {
    /// The spec can be run by this controller.
    pub const ACCEPTED: &str = "Accepted";
    /// The Box has its ending; the reason is `status.reason`.
    pub const ENDED: &str = "Ended";
    /// The whole output is durable.
    pub const OUTPUT_SAVED: &str = "OutputSaved";
    /// No pod of this Box is left.
    pub const CLEANED_UP: &str = "CleanedUp";
    /// For kstatus: True while the Box is on its way to what its spec asks.
    pub const RECONCILING: &str = "Reconciling";
    /// For kstatus: True when the Box failed or its clean-up does not get on.
    pub const STALLED: &str = "Stalled";
}
