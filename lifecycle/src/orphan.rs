//! Pods that are ours by label and whose Box is gone (contract §6): stopped and released, compute
//! only, and only after it is certain that nobody will ever record them.

use jiff::{SignedDuration, Timestamp};

use crate::cause::deleted_by_pod_gc;
use crate::pod_view::PodView;
use crate::writes::Write;

/// How old a pod must be before it can be an orphan.
pub const ORPHAN_AGE: SignedDuration = SignedDuration::from_mins(10);

/// What two passes in a row found about the owner of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// A live read answered that no Box has the owner's UID: now.
    pub absent_now: bool,
    /// The same in the pass before.
    pub absent_before: bool,
}

/// The next write for a pod whose Box may be gone.
#[must_use]
pub fn orphan_write(now: Timestamp, pod: &PodView, owner: Orphan) -> Option<Write> {
    let created = pod.metadata.creation_timestamp.as_ref()?.0;
    let old = now.duration_since(created) > ORPHAN_AGE;
    if !old || !owner.absent_now || !owner.absent_before || pod.owner_uid().is_none() {
        return None;
    }
    let uid = pod.uid().to_owned();
    let resource_version = pod.resource_version().to_owned();
    let terminal = pod.phase.is_terminal() && pod.start_time.is_some() && !pod.any_running;
    let never_bound = pod.node.is_none() && pod.deleting();
    // Its node is gone for good, and there is no record that a late report could reach.
    let collected = deleted_by_pod_gc(pod) && pod.deleting();
    if terminal || never_bound || collected {
        return Some(if pod.is_held() {
            Write::ReleasePod {
                uid,
                resource_version,
            }
        } else {
            Write::DeletePod {
                uid,
                resource_version: None,
                grace: None,
            }
        });
    }
    if pod.deleting() {
        return None;
    }
    if pod.node.is_none() {
        return Some(Write::DeletePod {
            uid,
            resource_version: Some(resource_version),
            grace: None,
        });
    }
    let lowered = pod.deadline_seconds.is_some_and(|seconds| seconds <= 1);
    (!lowered).then_some(Write::LowerDeadline {
        uid,
        resource_version,
        seconds: 1,
    })
}
