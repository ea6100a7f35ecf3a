//! The supervisor in a pod, and commands that would like to pass for it.

use boxes_crds::SUPERVISOR_ANNOTATION;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::command::Wait;

/// What a supervisor is told.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Supervisor {
    key: String,
    pub grace: i64,
}

impl Supervisor {
    /// The one that a pod's command runs under.
    pub(crate) fn of(pod: &Pod) -> Option<Self> {
        let annotations = pod.metadata.annotations.as_ref()?;
        annotations.get(SUPERVISOR_ANNOTATION)?;
        let spec = pod.spec.as_ref()?;
        let container = spec.containers.iter().find(|it| it.name == "box")?;
        let mut command = container.command.iter().flatten();
        let grace = command.find_map(|it| it.strip_prefix("--grace="))?;
        let mut env = container.env.iter().flatten();
        let key = env.find(|it| it.name == "BOXES_REPORT_KEY")?;
        Some(Self {
            key: key.value.clone()?,
            grace: grace.parse().ok()?,
        })
    }
}

/// What really became of a command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Truth {
    /// Absent when it could not be started.
    pub wait: Option<Wait>,
    /// By the node's clock.
    pub started: Timestamp,
    /// By the node's clock.
    pub ended: Timestamp,
    pub stop_received: bool,
    pub oom_kills: u64,
    /// Whether a supervisor reported it.
    pub told: bool,
}

impl Truth {
    /// The termination message: what a forging command had written, then the supervisor's line.
    pub(crate) fn message(&self, forges: bool, supervisor: Option<&Supervisor>) -> Option<String> {
        let report = supervisor
            .filter(|_| self.told)
            .map(|it| self.report(&it.key));
        let lines = [forges.then(|| self.forged()), report];
        let all: Vec<_> = lines.into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join("\n"))
    }

    fn report(&self, key: &str) -> String {
        let mut report = json!({
            "report": 1, "key": key, "endedAt": self.ended, "stopReceived": self.stop_received,
            "oomKills": self.oom_kills,
        });
        let (field, value) = match self.wait {
            None => ("startFailure", Value::from("no such program")),
            Some(Wait::Code(code)) => ("exitCode", code.into()),
            Some(Wait::Signal(number)) => ("signal", number.into()),
        };
        report[field] = value;
        match self.wait {
            None => report["exitCode"] = 127.into(),
            Some(_) => report["startedAt"] = json!(self.started),
        }
        report.to_string()
    }

    /// What a command writes that knows everything but the key.
    fn forged(&self) -> String {
        let lie = Self {
            stop_received: !self.stop_received,
            oom_kills: 7,
            started: self.started + jiff::SignedDuration::from_secs(1),
            ..*self
        };
        lie.report("guessed")
    }
}
