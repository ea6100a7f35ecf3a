//! Small things that several modules need.

use boxes_crds::BoxObject;

/// A command that runs until it is told to end, and then at once. It says `ready` when it listens.
pub(crate) const UNTIL_TOLD: &str = "trap 'exit 0' TERM; echo ready; sleep 1000 & wait";

/// Whether a Box has an ending.
pub(crate) fn has_ended(object: &BoxObject) -> bool {
    object
        .status
        .as_ref()
        .is_some_and(|status| status.reason.is_some())
}
