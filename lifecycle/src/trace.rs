//! The trace of a run, computed from its record once that is complete.
//!
//! Nothing is kept from pass to pass for it: the record has the times, and the identifiers come from
//! the Box's UID. Whoever computes the trace again gets the same one.

use boxes_crds::{BoxStatus, HistoryType, Run};
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use crate::ending::Ending;
use crate::object::BoxView;
use crate::output::is_final;
use crate::world::World;

/// The name of the span that covers the others.
const ROOT: &str = "box";

/// One run, from the creation of its Box until nothing of it was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The UID of the Box, where that is a UUID.
    pub id: [u8; 16],
    /// The root, then its children in the order of time.
    pub spans: Vec<Span>,
}

/// A part of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Derived from the UID of the Box and the name of the span.
    pub id: [u8; 8],
    /// The root's, for its children.
    pub parent: Option<[u8; 8]>,
    /// What is done in it.
    pub name: &'static str,
    /// When it began, in whole seconds like every time of the record.
    pub start: Timestamp,
    /// When it ended: not before it began.
    pub end: Timestamp,
    /// Whose it is and, of the root, how the box ended.
    pub attributes: Vec<(&'static str, Attribute)>,
    /// The reason of an ending that is a failure, on the root and on the span that it cut.
    pub error: Option<String>,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attribute {
    /// A word or a name.
    Text(String),
    /// A number.
    Number(i64),
}

/// The trace of a run, if `next` is the status that first says that it is cleaned up.
#[must_use]
pub fn trace(object: &BoxView, recorded: &BoxStatus, next: &BoxStatus) -> Option<Trace> {
    let news = time_of(recorded, HistoryType::CleanedUp).is_none();
    let cleaned_up = time_of(next, HistoryType::CleanedUp).filter(|_| news)?;
    trace_until(object, next, cleaned_up)
}

/// The trace of a run whose Box has been released. One that is deleted before it is cleaned up gets no
/// last status: that it may go is what says so.
#[must_use]
pub fn trace_of_released(world: &World) -> Option<Trace> {
    let (_, record) = world.readable()?;
    let told = time_of(&record.status, HistoryType::CleanedUp).is_some();
    (!told)
        .then(|| trace_until(&world.object, &record.status, world.now))
        .flatten()
}

/// The trace of a box that ended; one that never did has none.
fn trace_until(object: &BoxView, status: &BoxStatus, cleaned_up: Timestamp) -> Option<Trace> {
    let ending = Ending::of(status)?;
    let begun = object.metadata.creation_timestamp.as_ref();
    let start = whole_seconds(begun.map_or(cleaned_up, |time| time.0));
    let end = whole_seconds(cleaned_up).max(start);
    let error = ending.is_failure().then(|| ending.reason.to_string());
    let whose = whose(object, status.run.as_ref());
    let how = how_it_ended(status);
    let root = Span {
        id: span_id(object.uid(), ROOT),
        parent: None,
        name: ROOT,
        start,
        end,
        attributes: whose.iter().cloned().chain(how).collect(),
        error: error.clone(),
    };
    let child = |step: Step, until: Timestamp| Span {
        id: span_id(object.uid(), step.name),
        parent: Some(root.id),
        name: step.name,
        start: step.begins,
        end: until,
        attributes: whose.clone(),
        error: error.clone().filter(|_| step.cut),
    };
    let children = within(steps(status), start, end)
        .into_iter()
        .map(|(step, until)| child(step, until))
        .collect::<Vec<_>>();
    Some(Trace {
        id: trace_id(object.uid()),
        spans: std::iter::once(root).chain(children).collect(),
    })
}

/// What a run does next, from some time on until the next step.
#[derive(Clone, Copy)]
struct Step {
    name: &'static str,
    begins: Timestamp,
    /// Whether the box ended in it.
    cut: bool,
}

/// The steps that a run took, in their order. One that the end cut short lasts until the end.
fn steps(status: &BoxStatus) -> Vec<Step> {
    let run = status.run.as_ref();
    let Some(created) = time_of(status, HistoryType::Created) else {
        // No pod was ever made.
        return Vec::new();
    };
    let scheduled = time_of(status, HistoryType::Scheduled);
    let started = run.and_then(|run| run.started_at.as_ref());
    let ended = run.and_then(|run| run.ended_at.as_ref());
    // Of a pod that no node had there was nothing to save.
    let saved = time_of(status, HistoryType::OutputSaved).filter(|_| scheduled.is_some());
    let before_the_end = [
        ("scheduling", Some(created)),
        ("materializing", scheduled),
        ("running", started.map(|time| time.0)),
    ];
    let after_it = if saved.is_some() {
        "saving"
    } else {
        "deleting"
    };
    let mut steps: Vec<_> = before_the_end.into_iter().filter_map(step).collect();
    if let Some(last) = steps.last_mut() {
        last.cut = true;
    }
    let rest = [(after_it, ended.map(|time| time.0)), ("deleting", saved)];
    steps.extend(rest.into_iter().filter_map(step));
    steps
}

fn step((name, begins): (&'static str, Option<Timestamp>)) -> Option<Step> {
    Some(Step {
        name,
        begins: whole_seconds(begins?),
        cut: false,
    })
}

/// Each step with its end. The clocks of the API server, of the node and of the controller differ: a
/// time that lies before the one of an earlier step, or outside of the whole, is moved to the nearest
/// that does not.
fn within(mut steps: Vec<Step>, start: Timestamp, end: Timestamp) -> Vec<(Step, Timestamp)> {
    let mut at = start;
    for step in &mut steps {
        at = step.begins.clamp(at, end);
        step.begins = at;
    }
    let ends: Vec<_> = steps.iter().skip(1).map(|step| step.begins).collect();
    steps
        .into_iter()
        .zip(ends.into_iter().chain([end]))
        .collect()
}

/// On every span, so that each can be searched for by node or by namespace. Nothing of the spec: its
/// environment and arguments may hold secrets.
fn whose(object: &BoxView, run: Option<&Run>) -> Vec<(&'static str, Attribute)> {
    let text = |value: Option<&str>| value.map(|value| Attribute::Text(value.to_owned()));
    present([
        ("k8s.namespace.name", text(Some(object.namespace()))),
        ("box.name", text(Some(object.name()))),
        ("box.uid", text(Some(object.uid()))),
        ("k8s.pod.name", text(run.map(|run| &*run.pod.name))),
        ("k8s.pod.uid", text(run.map(|run| &*run.pod.uid))),
        (
            "k8s.node.name",
            text(run.and_then(|run| run.node.as_deref())),
        ),
    ])
}

/// The ending and what is saved of the output, without their messages, which may quote what others
/// wrote.
fn how_it_ended(status: &BoxStatus) -> Vec<(&'static str, Attribute)> {
    let text = |value: &Option<String>| value.clone().map(Attribute::Text);
    let number = |value: Option<i32>| value.map(|value| Attribute::Number(value.into()));
    let output = status.output.as_ref().filter(|output| is_final(output));
    present([
        ("box.state", text(&status.state)),
        ("box.reason", text(&status.reason)),
        ("box.exit_code", number(status.exit_code)),
        ("box.signal", number(status.signal)),
        ("box.evidence", text(&status.evidence)),
        (
            "box.output.state",
            output.map(|output| Attribute::Text(output.state.clone())),
        ),
        (
            "box.output.bytes",
            output.map(|output| Attribute::Number(output.bytes)),
        ),
    ])
}

fn present<const N: usize>(
    pairs: [(&'static str, Option<Attribute>); N],
) -> Vec<(&'static str, Attribute)> {
    pairs
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)))
        .collect()
}

fn time_of(status: &BoxStatus, type_: HistoryType) -> Option<Timestamp> {
    let mut all = status.history.iter();
    all.find(|entry| entry.type_ == type_.as_str())
        .map(|entry| entry.time.0)
}

/// As the record has it once it is written: what is computed from it again is the same.
fn whole_seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

/// The bytes of a UUID; of anything else a hash. Never all zero, which is no identifier.
fn trace_id(uid: &str) -> [u8; 16] {
    let digits: String = uid.chars().filter(|digit| *digit != '-').collect();
    let is_uuid = digits.len() == 32 && digits.chars().all(|digit| digit.is_ascii_hexdigit());
    let number = u128::from_str_radix(&digits, 16).ok();
    match number.filter(|number| is_uuid && *number != 0) {
        Some(number) => number.to_be_bytes(),
        None => hash(uid, ""),
    }
}

fn span_id(uid: &str, name: &str) -> [u8; 8] {
    hash(uid, name)
}

fn hash<const N: usize>(uid: &str, name: &str) -> [u8; N] {
    let digest = Sha256::digest(format!("{uid}/{name}"));
    std::array::from_fn(|index| digest[index])
}
