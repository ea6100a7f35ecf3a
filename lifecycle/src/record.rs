//! Reading a recorded status: what this build wrote, or something that it must leave alone.

use boxes_crds::{BoxStatus, Evidence, HistoryType, OutputState, Reason, State, StopCause};
use serde::Deserializer;

use crate::ending::Ending;

/// A recorded status that this build understands as a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// The status as recorded.
    pub status: BoxStatus,
    /// The recorded state; `None` before the first status write.
    pub state: Option<State>,
    /// The recorded ending, which never changes again.
    pub ending: Option<Ending>,
}

/// Why this build cannot read a Box: it is shown as written, and nothing of it is touched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(pub String);

impl Record {
    /// Reads `status` of a Box.
    ///
    /// # Errors
    /// Names the first thing that this build does not know: a field, a word, or a combination that
    /// the contract's table of endings does not have.
    pub fn read<'de>(raw: Option<impl Deserializer<'de>>) -> Result<Self, Unreadable> {
        let status = raw.map(known_fields).transpose()?.flatten();
        let status = status.unwrap_or_default();
        let state = word(status.state.as_deref(), "state", State::parse)?;
        let reason = word(status.reason.as_deref(), "reason", Reason::parse)?;
        let evidence = word(status.evidence.as_deref(), "evidence", Evidence::parse)?;
        known_words_below(&status)?;
        let ending = ending(&status, state, reason, evidence)?;
        Ok(Self {
            status,
            state,
            ending,
        })
    }

    /// Whether a stop was recorded.
    #[must_use]
    pub const fn stop_requested(&self) -> bool {
        self.status.stop.is_some()
    }

    /// The condition of a type.
    #[must_use]
    pub fn condition(
        &self,
        type_: &str,
    ) -> Option<&k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition> {
        self.status
            .conditions
            .iter()
            .find(|condition| condition.type_ == type_)
    }

    /// Whether it is recorded that no pod is left.
    #[must_use]
    pub fn cleaned_up(&self) -> bool {
        self.condition(boxes_crds::condition::CLEANED_UP)
            .is_some_and(|condition| condition.status == "True")
    }

    /// Whether the command is recorded as started.
    #[must_use]
    pub fn started(&self) -> bool {
        let run = self.status.run.as_ref();
        self.state == Some(State::Running) || run.is_some_and(|run| run.started_at.is_some())
    }
}

/// Parses a value and refuses fields that the type does not have.
fn known_fields<'de>(raw: impl Deserializer<'de>) -> Result<Option<BoxStatus>, Unreadable> {
    let mut unknown = None;
    let status = serde_ignored::deserialize(raw, |path| {
        unknown.get_or_insert_with(|| path.to_string());
    })
    .map_err(|error| Unreadable(format!("status cannot be parsed: {error}")))?;
    match unknown {
        None => Ok(status),
        Some(path) => Err(Unreadable(format!(
            "status has an unknown field: {}",
            plain(&path)
        ))),
    }
}

/// `serde_ignored` marks optional values with `?` in a path.
fn plain(path: &str) -> String {
    path.replace("?.", "").replace(".?", "")
}

fn word<T>(
    written: Option<&str>,
    field: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, Unreadable> {
    let unknown = |word| Unreadable(format!("status.{field} has an unknown word: {word:?}"));
    written
        .map(|word| parse(word).ok_or_else(|| unknown(word)))
        .transpose()
}

fn known_words_below(status: &BoxStatus) -> Result<(), Unreadable> {
    let by = status.stop.as_ref().map(|stop| stop.by.as_str());
    word(by, "stop.by", StopCause::parse)?;
    let output = status.output.as_ref().map(|output| output.state.as_str());
    word(output, "output.state", OutputState::parse)?;
    for entry in &status.history {
        word(Some(&entry.type_), "history[].type", HistoryType::parse)?;
    }
    match status.run.as_ref().map(|run| run.number) {
        None | Some(1) => Ok(()),
        Some(number) => Err(Unreadable(format!("status.run.number is {number}, not 1"))),
    }
}

/// The ending, if one is recorded, checked against the table.
fn ending(
    status: &BoxStatus,
    state: Option<State>,
    reason: Option<Reason>,
    evidence: Option<Evidence>,
) -> Result<Option<Ending>, Unreadable> {
    let refuse = |what: String| Err(Unreadable(what));
    let ended = state.is_some_and(State::is_final);
    let Some(reason) = reason else {
        let parts = [
            status.exit_code.is_some(),
            status.signal.is_some(),
            evidence.is_some(),
        ];
        return if ended || parts.contains(&true) {
            refuse("status has an ending without a reason".to_owned())
        } else {
            Ok(None)
        };
    };
    if state != Some(reason.state()) {
        let state = status.state.as_deref().unwrap_or_default();
        return refuse(format!(
            "status.state {state:?} does not go with reason {reason}"
        ));
    }
    let Some(evidence) = evidence else {
        return refuse("status has an ending without evidence".to_owned());
    };
    let ending = Ending {
        reason,
        exit_code: status.exit_code,
        signal: status.signal,
        evidence,
    };
    match ending.fault() {
        None => Ok(Some(ending)),
        Some(fault) => refuse(format!("status has an ending that no box has: {fault}")),
    }
}
