//! Reports of a supervisor, and pods that carry them.

use boxes_crds::SUPERVISOR_ANNOTATION;
use boxes_lifecycle::{RunState, report_key};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::fixtures::{APod, an_ended_pod, at};

/// What a supervisor writes.
#[derive(Clone, Debug)]
pub(crate) struct AReport(Value);

/// Of a box that no stop reached: the command started at 20.25 and ended at 50.5.
fn a_report(end: Value) -> AReport {
    AReport(json!({
        "report": 1, "key": report_key("box-1"), "startedAt": in_parts(20, 250),
        "endedAt": in_parts(50, 500), "stopReceived": false, "oomKills": 0,
    }))
    .with(end)
}

pub(crate) fn exited(code: i32) -> AReport {
    a_report(json!({"exitCode": code}))
}

pub(crate) fn signaled(signal: i32) -> AReport {
    a_report(json!({"signal": signal}))
}

pub(crate) fn not_started(code: i32, message: &str) -> AReport {
    a_report(json!({"exitCode": code, "startFailure": message})).without("startedAt")
}

/// What the kubelet sees of such a report, at 50.
pub(crate) fn ended(code: i32, report: &AReport) -> APod {
    an_ended_pod(code, "Error").reports(report)
}

/// The same, and the kernel had killed something for want of memory.
pub(crate) fn oom_killed(code: i32, report: &AReport) -> APod {
    an_ended_pod(code, "OOMKilled").reports(report)
}

/// A time of the small clock that has parts of a second.
pub(crate) fn in_parts(seconds: i64, milliseconds: i64) -> Timestamp {
    at(seconds) + SignedDuration::from_millis(milliseconds)
}

impl AReport {
    pub(crate) fn with(mut self, fields: Value) -> Self {
        let all = self.0.as_object_mut().unwrap();
        all.extend(fields.as_object().cloned().unwrap());
        self
    }

    pub(crate) fn without(mut self, field: &str) -> Self {
        self.0.as_object_mut().unwrap().remove(field);
        self
    }

    pub(crate) fn after_a_stop(self) -> Self {
        self.with(json!({"stopReceived": true}))
    }

    pub(crate) fn killed_for_memory(self, times: u64) -> Self {
        self.with(json!({"oomKills": times}))
    }

    pub(crate) fn of_another_box(self) -> Self {
        self.with(json!({"key": report_key("box-2")}))
    }

    pub(crate) fn line(&self) -> String {
        self.0.to_string()
    }
}

impl APod {
    /// Its command runs under a supervisor.
    pub(crate) fn supervised(mut self) -> Self {
        let all = self.0.metadata.annotations.get_or_insert_default();
        all.insert(SUPERVISOR_ANNOTATION.to_owned(), "image-volume".to_owned());
        self
    }

    /// Its command ran under a supervisor, which left this.
    pub(crate) fn reports(self, report: &AReport) -> Self {
        self.supervised().with_message(&report.line())
    }

    pub(crate) fn with_message(mut self, text: &str) -> Self {
        let container = self.0.container.as_mut().unwrap();
        if let RunState::Terminated { message, .. } = &mut container.state {
            *message = Some(text.to_owned());
        }
        self
    }

    /// The kubelet's times of the command's container.
    pub(crate) fn with_times(mut self, start: Option<i64>, end: Option<i64>) -> Self {
        let container = self.0.container.as_mut().unwrap();
        if let RunState::Terminated {
            started, finished, ..
        } = &mut container.state
        {
            *started = start.map(at);
            *finished = end.map(at);
        }
        self
    }
}
