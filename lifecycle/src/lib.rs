//! The rules of a Box: what is seen in the cluster, to what to write and what to say.
//!
//! Everything here is pure and synchronous. [`decide()`] takes a [`World`], which a caller has
//! observed, and gives a [`Decision`]: at most one write to the cluster and at most one new status.
//! A decision depends on the *recorded* status only, never on the one it proposes, so a crash
//! between the two writes is a state like any other.
//!
//! | question | file |
//! |---|---|
//! | what does the Box ask, and can this build read its record | `object.rs`, `record.rs`, `metadata.rs` |
//! | what does its pod say | `pod_view.rs`, `pod_reading.rs` |
//! | did something end the command, and when did that reach it | `cause.rs` |
//! | what did the supervisor say, and is it believed | `report.rs` |
//! | how did the box end | `ending.rs`, `terminated.rs` |
//! | is the stop confirmed | `confirm.rs` |
//! | is the output saved, and does the pod wait for it | `output.rs` |
//! | what must be read before deciding | `questions.rs` |
//! | what is the one next write | `writes.rs` |
//! | what is the next status | `status.rs`, `conditions.rs`, `history.rs`, `wording.rs` |
//! | what is the trace of a run | `trace.rs` |
//! | what pod does a spec give, and is the spec accepted | `manifest.rs`, `template.rs` |
//! | how does the supervisor get into it | `supervisor.rs`, `reserved.rs`, `node_view.rs` |

#![forbid(unsafe_code)]

mod announce;
mod cause;
mod conditions;
mod confirm;
mod decide;
mod ending;
mod history;
mod manifest;
mod metadata;
mod name;
mod node_view;
mod object;
mod orphan;
mod output;
mod pod_reading;
mod pod_view;
mod questions;
mod record;
mod report;
mod reserved;
mod settled;
mod status;
mod supervisor;
mod template;
mod terminated;
mod trace;
mod wording;
mod world;
mod writes;

pub use announce::{Announcement, Severity, announcements};
pub use cause::deletion_asked;
pub use confirm::{Confirmation, confirmation};
pub use decide::{Decision, decide};
pub use ending::Ending;
pub use manifest::{NO_DEADLINE, accept, pod_for, spec_hash};
pub use name::pod_name;
pub use node_view::{NodeFacts, best_injection};
pub use object::BoxView;
pub use orphan::{ORPHAN_AGE, Orphan, orphan_write};
pub use pod_view::{ContainerView, Phase, PodCondition, PodView, RunState};
pub use questions::{
    misses_container, needs_injection, needs_live_pod, needs_namespace, needs_node,
};
pub use record::{Record, Unreadable};
pub use report::{End, NoReport, Report, report_key};
pub use settled::{Settled, settled};
pub use supervisor::{GRACE_MARGIN, Injection, SUPERVISOR, Supervisor, is_supervised};
pub use template::Refused;
pub use trace::{Attribute, Span, Trace, trace, trace_of_released};
pub use world::{NodeView, Refusal, Seen, Trouble, World};
pub use writes::Write;
