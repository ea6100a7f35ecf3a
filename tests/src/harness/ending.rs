//! `ends_as(Exited, Exit).with_code(3)`: what the record of an end must say, and nothing else.

use std::future::{Future, IntoFuture};
use std::pin::Pin;

use anyhow::{Result, ensure};
use boxes_crds::{BoxObject, BoxStatus, Evidence, Reason, State, condition};

use super::dump::yaml;
use super::live::{LiveBox, condition as condition_of};

/// What the ending must be. What is not said here must be absent from the record.
#[must_use = "it is checked when it is awaited"]
pub struct ExpectedEnding<'a> {
    it: &'a LiveBox,
    state: State,
    reason: Reason,
    code: Option<i32>,
    signal: Option<i32>,
    evidence: Option<Evidence>,
    message: Vec<&'a str>,
}

impl<'a> ExpectedEnding<'a> {
    pub(super) fn new(it: &'a LiveBox, state: State, reason: Reason) -> Self {
        Self {
            it,
            state,
            reason,
            code: None,
            signal: None,
            evidence: None,
            message: Vec::new(),
        }
    }

    /// `status.exitCode` must be this; otherwise it must be absent.
    pub fn with_code(self, code: i32) -> Self {
        Self {
            code: Some(code),
            ..self
        }
    }

    /// `status.signal` must be this; otherwise it must be absent.
    pub fn with_signal(self, signal: i32) -> Self {
        Self {
            signal: Some(signal),
            ..self
        }
    }

    /// `status.evidence` must be this; otherwise any is good.
    pub fn by_evidence(self, evidence: Evidence) -> Self {
        Self {
            evidence: Some(evidence),
            ..self
        }
    }

    /// `status.message` must have this in it.
    pub fn saying(mut self, part: &'a str) -> Self {
        self.message.push(part);
        self
    }

    async fn check(self) -> Result<BoxStatus> {
        let ended = |object: &BoxObject| {
            let known = condition_of(object, condition::ENDED);
            known.is_some_and(|known| known.status == "True")
        };
        let object = self.it.wait_for("the box to end", ended).await?;
        let status = object.status.unwrap_or_default();
        let seen = (status.state.as_deref(), status.reason.as_deref());
        let expected = (Some(self.state.as_str()), Some(self.reason.as_str()));
        let shown = || format!("its status:\n{}", yaml(&status));
        ensure!(
            seen == expected,
            "ended as {seen:?}, not {expected:?}; {}",
            shown()
        );
        let (seen, expected) = ((status.exit_code, status.signal), (self.code, self.signal));
        ensure!(
            seen == expected,
            "exit code and signal are {seen:?}, not {expected:?}; {}",
            shown()
        );
        let evidence = status.evidence.as_deref();
        if let Some(expected) = self.evidence {
            ensure!(
                evidence == Some(expected.as_str()),
                "evidence is {evidence:?}, not {expected}; {}",
                shown()
            );
        }
        let message = status.message.as_deref().unwrap_or_default();
        for part in self.message {
            ensure!(
                message.contains(part),
                "the message does not say {part:?}; {}",
                shown()
            );
        }
        Ok(status)
    }
}

impl<'a> IntoFuture for ExpectedEnding<'a> {
    type Output = Result<BoxStatus>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.check())
    }
}

/// A word of the data of the first entry of this type in a history.
#[must_use]
pub fn history_data<'a>(status: &'a BoxStatus, type_: &str, key: &str) -> Option<&'a str> {
    let mut all = status.history.iter();
    all.find(|entry| entry.type_ == type_)?
        .data
        .get(key)?
        .as_str()
}
