//! What can go wrong in a pass. "Not ready" is a decision, never an error: these are failed calls.

use kube::core::Status;

/// A failed call, in a pass over one Box.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A call that reads or writes.
    #[error("{call} failed: {}", words(source))]
    Call {
        /// What was called, for people.
        call: &'static str,
        /// What came back.
        #[source]
        source: Box<kube::Error>,
    },
    /// The pass took too long.
    #[error("the API server did not answer within {seconds} s")]
    Timeout {
        /// The limit.
        seconds: u64,
    },
}

impl Error {
    /// Wraps the error of a call.
    pub(crate) fn call(call: &'static str) -> impl FnOnce(kube::Error) -> Self {
        move |source| Self::Call {
            call,
            source: Box::new(source),
        }
    }

    /// A static word for metrics.
    pub(crate) fn class(&self) -> &'static str {
        match self {
            Self::Timeout { .. } => "timeout",
            Self::Call { source, .. } => class_of(source),
        }
    }

    /// Whether the object changed under the decision: the next event brings the new one.
    pub(crate) fn is_outdated(&self) -> bool {
        let Self::Call { source, .. } = self else {
            return false;
        };
        api_status(source).is_some_and(|status| status.is_conflict() || status.is_not_found())
    }
}

/// The API server's own words where it has some: the rest of its answer says nothing to people.
fn words(error: &kube::Error) -> String {
    match api_status(error).map(|status| (status.code, &status.message)) {
        Some((code, message)) if !message.is_empty() => format!("{message} ({code})"),
        Some(_) | None => error.to_string(),
    }
}

/// What the API server said, if it was the API server.
pub(crate) fn api_status(error: &kube::Error) -> Option<&Status> {
    match error {
        kube::Error::Api(status) => Some(status),
        _ => None,
    }
}

/// Every class.
pub(crate) const CLASSES: [&str; 10] = [
    "timeout",
    "transport",
    "forbidden",
    "not_found",
    "conflict",
    "invalid",
    "throttled",
    "server",
    "watch",
    "other",
];

fn class_of(error: &kube::Error) -> &'static str {
    match api_status(error).map(|status| status.code) {
        None => "transport",
        Some(403) => "forbidden",
        Some(404) => "not_found",
        Some(409) => "conflict",
        Some(422 | 400) => "invalid",
        Some(429) => "throttled",
        Some(500..) => "server",
        Some(_) => "other",
    }
}
