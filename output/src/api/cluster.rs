//! What the log API asks of the cluster.

use std::net::SocketAddr;

use futures::future::BoxFuture;

use super::endpoints::Service;
use super::names::Target;
use super::user::User;
use crate::archive::Uid;

/// Answers of the API server. "Not there" and "not allowed" are answers; everything else that goes
/// wrong is [`NoAnswer`].
pub(crate) trait Cluster: Send + Sync {
    /// The Box of this name; `None` if there is none.
    fn find_box<'a>(
        &'a self,
        target: &'a Target,
    ) -> BoxFuture<'a, Result<Option<FoundBox>, NoAnswer>>;

    /// Where a Service is served now.
    fn addresses<'a>(
        &'a self,
        service: &'a Service,
    ) -> BoxFuture<'a, Result<Vec<SocketAddr>, NoAnswer>>;

    /// Whether this user may `get` `boxes/log` of this Box.
    fn review<'a>(
        &'a self,
        user: &'a User,
        target: &'a Target,
    ) -> BoxFuture<'a, Result<Verdict, NoAnswer>>;
}

/// What matters of a Box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundBox {
    /// Its UID.
    pub(crate) uid: Uid,
    /// The UID of the pod of its run, once it has one.
    pub(crate) pod_uid: Option<Uid>,
    /// `status.state`, as written; empty before the first status.
    pub(crate) state: String,
    /// Whether its record is final.
    pub(crate) ended: bool,
    /// Whether it ended and no pod of it is left. Output that is not in the archive by then has
    /// hardly any way to come into it.
    pub(crate) cleaned_up: bool,
    /// Whether nobody saves the output of its run: it was made while that was off, or its pod's finalizer
    /// was taken away.
    pub(crate) unsaved: bool,
}

/// The answer to a review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The user may.
    Allowed,
    /// The user may not; perhaps with the authorizer's reason.
    Denied(Option<String>),
}

/// The API server gave no answer that can be used.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the API server gave no answer: {0}")]
pub(crate) struct NoAnswer(pub String);
