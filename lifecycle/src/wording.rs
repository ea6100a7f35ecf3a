//! Sentences for people about what a box waits for and how it ended.

use boxes_crds::Reason;

use crate::ending::Ending;
use crate::pod_view::{PodView, RunState};

/// What a not yet started pod waits for, for messages.
pub(crate) fn waits_for(pod: &PodView) -> String {
    match pod.container.as_ref().map(|container| &container.state) {
        Some(RunState::Waiting {
            reason: Some(reason),
            message,
        }) => match message {
            Some(message) => format!("; {}", pull_error(reason, message)),
            None => format!("; {reason}"),
        },
        _ => String::new(),
    }
}

/// The kubelet alternates between the error of a pull and the back-off after it, which repeats that
/// error behind words of its own. To a Box it is one thing, and no news each time.
fn pull_error(reason: &str, message: &str) -> String {
    const FAILED: &str = "ErrImagePull: ";
    let error = message.find(FAILED).map(|start| &message[start..]);
    match (reason, error) {
        ("ImagePullBackOff", Some(error)) => error.to_owned(),
        _ => format!("{reason}: {message}"),
    }
}

/// One sentence about an ending with a wait status.
pub(crate) fn describe(ending: &Ending, deadline: Option<i64>) -> String {
    let how = match (ending.exit_code, ending.signal) {
        (Some(code), _) => format!("the command exited with code {code}"),
        (None, Some(signal)) => format!("the command was ended by signal {signal}"),
        (None, None) => "the command ended".to_owned(),
    };
    match ending.reason {
        Reason::Exit
        | Reason::Signal
        | Reason::StartFailed
        | Reason::NodeLost
        | Reason::PodLost => how,
        Reason::OOM => "the kernel killed the command: out of memory".to_owned(),
        Reason::Timeout => format!(
            "the command ran past activeDeadlineSeconds ({})",
            deadline.unwrap_or_default()
        ),
        Reason::Stopped => format!("stopped on request: {how}"),
        Reason::Evicted => format!("the pod was evicted: {how}"),
        Reason::Preempted => format!("the pod was preempted: {how}"),
        Reason::PodDeleted => format!("someone deleted the pod: {how}"),
    }
}
