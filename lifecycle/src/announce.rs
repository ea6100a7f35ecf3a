//! What a new status is worth saying aloud: one Kubernetes Event and one log line each.

use boxes_crds::{BoxStatus, HistoryType, OutputState, condition};

use crate::ending::Ending;

/// How grave an announcement is, in the words of Kubernetes Events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// All is as asked.
    Normal,
    /// A person may want to look.
    Warning,
}

/// One thing that happened to a Box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// How grave it is.
    pub severity: Severity,
    /// A word for machines: a history type or the reason of a condition.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
}

/// What stands in the history alone.
const QUIET: [HistoryType; 3] = [
    HistoryType::Created,
    HistoryType::OutputSaved,
    HistoryType::CleanedUp,
];

/// What is new in `next`, compared with the recorded status, oldest first. Of the steps towards the
/// start only the last is told, and what is no news for a person stands in the history alone.
#[must_use]
pub fn announcements(recorded: &BoxStatus, next: &BoxStatus) -> Vec<Announcement> {
    let known = |type_: HistoryType| {
        let mut all = recorded.history.iter();
        all.any(|entry| entry.type_ == type_.as_str())
    };
    let news: Vec<_> = next
        .history
        .iter()
        .filter_map(|entry| HistoryType::parse(&entry.type_))
        .filter(|type_| !known(*type_))
        .collect();
    let overtaken = |type_: HistoryType| {
        type_ == HistoryType::Scheduled && news.contains(&HistoryType::Started)
    };
    news.iter()
        .copied()
        .filter(|type_| !QUIET.contains(type_))
        .filter(|type_| !overtaken(*type_))
        .map(|type_| of_history(type_, next))
        .chain(newly_lost(recorded, next))
        .chain(newly_refused(recorded, next))
        .collect()
}

fn of_history(type_: HistoryType, status: &BoxStatus) -> Announcement {
    let run = status.run.as_ref();
    let pod = run.map(|run| run.pod.name.as_str()).unwrap_or_default();
    let node = run.and_then(|run| run.node.as_deref()).unwrap_or_default();
    let message = match type_ {
        HistoryType::Created => format!("made pod {pod}"),
        HistoryType::Scheduled => format!("pod {pod} is bound to node {node}"),
        HistoryType::Started => "the command has started".to_owned(),
        HistoryType::StopRequested => "the box was asked to stop".to_owned(),
        HistoryType::OOMKilled => "the kernel killed a process: out of memory".to_owned(),
        HistoryType::Exited => ended(status),
        HistoryType::OutputSaved => "the output is saved".to_owned(),
        HistoryType::CleanedUp => "no pod of this box is left".to_owned(),
    };
    let failed = Ending::of(status).is_some_and(|ending| ending.is_failure());
    let severity = match type_ {
        HistoryType::OOMKilled => Severity::Warning,
        HistoryType::Exited if failed => Severity::Warning,
        HistoryType::Created
        | HistoryType::Scheduled
        | HistoryType::Started
        | HistoryType::StopRequested
        | HistoryType::Exited
        | HistoryType::OutputSaved
        | HistoryType::CleanedUp => Severity::Normal,
    };
    Announcement {
        severity,
        reason: type_.to_string(),
        message,
    }
}

fn ended(status: &BoxStatus) -> String {
    let state = status.state.as_deref().unwrap_or_default();
    let reason = status.reason.as_deref().unwrap_or_default();
    let message = status.message.as_deref().unwrap_or_default();
    format!("{state}/{reason}: {message}")
}

/// Output is missing, and that is final.
fn newly_lost(recorded: &BoxStatus, next: &BoxStatus) -> Option<Announcement> {
    let lost = |status: &BoxStatus| {
        let output = status.output.clone()?;
        let state = OutputState::parse(&output.state)?;
        (state.is_final() && state != OutputState::Saved).then_some(output)
    };
    let now = lost(next).filter(|_| lost(recorded).is_none())?;
    Some(Announcement {
        severity: Severity::Warning,
        reason: format!("Output{}", now.state),
        message: now.message,
    })
}

/// `Accepted` turned False, or is False for another reason.
fn newly_refused(recorded: &BoxStatus, next: &BoxStatus) -> Option<Announcement> {
    let accepted = |status: &BoxStatus| {
        status
            .conditions
            .iter()
            .find(|known| known.type_ == condition::ACCEPTED)
            .cloned()
    };
    let now = accepted(next).filter(|known| known.status == "False")?;
    let before = accepted(recorded);
    let news =
        before.is_none_or(|before| before.status != now.status || before.reason != now.reason);
    news.then_some(Announcement {
        severity: Severity::Warning,
        reason: now.reason,
        message: now.message,
    })
}
