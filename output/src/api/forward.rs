//! A read that another server answers: the question is passed on in the user's name, and the answer
//! comes back as it is.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use http::uri::PathAndQuery;
use http::{StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt, Empty, StreamBody};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;

use super::context::Context;
use super::failure::Failure;
use super::log::{UID, note_read};
use super::metrics::Metrics;
use super::names::Target;
use super::route::log_path;
use super::slots::Slot;
use super::upstream::Upstream;
use super::user::User;

/// Answers. The path is made anew from what was authorised, and of the request's headers nothing is
/// passed on but who asks.
pub(crate) async fn answer(
    cx: &Context,
    upstream: &Upstream,
    (user, target): (&User, &Target),
    query: &str,
    slot: Slot,
) -> Result<Response, Failure> {
    let asked = match question(user, target, query) {
        Ok((path, headers)) => upstream.get(cx.cluster.as_ref(), path, headers).await,
        Err(error) => Err(error.into()),
    };
    let (response, connection) = asked.map_err(|error| away(&error))?;
    if response.status() == StatusCode::UNAUTHORIZED {
        // It is not the user that it does not know.
        return Err(away(&anyhow::anyhow!("it does not know this front")));
    }
    if let (StatusCode::OK, Some(uid)) = (response.status(), response.headers().get(UID)) {
        note_read(user, target, uid.to_str().unwrap_or_default());
    }
    let relay = |body| Relay {
        body,
        whole: false,
        target: target.clone(),
        metrics: Arc::clone(&cx.metrics),
        _slot: slot,
        _connection: connection,
    };
    Ok(passed_on(response, relay))
}

fn question(
    user: &User,
    target: &Target,
    query: &str,
) -> Result<(PathAndQuery, http::HeaderMap), http::Error> {
    let path = log_path(target);
    let path = match query {
        "" => PathAndQuery::try_from(path)?,
        query => PathAndQuery::try_from(format!("{path}?{query}"))?,
    };
    Ok((path, user.headers()?))
}

fn away(error: &anyhow::Error) -> Failure {
    tracing::warn!(
        error = format!("{error:#}"),
        "the reader of the archive gave no answer"
    );
    Failure::out_of_reach("the archive cannot be read now: its reader gives no answer")
}

/// An answer of the reader's, with a body that is watched if it is a log.
fn passed_on(
    response: http::Response<Incoming>,
    relay: impl FnOnce(Incoming) -> Relay,
) -> Response {
    let is_log = response.status() == StatusCode::OK;
    let (mut head, body) = response.into_parts();
    // That of this server's own connection is set by it.
    head.headers.remove(header::DATE);
    let relay = Relay {
        whole: !is_log,
        ..relay(body)
    };
    Response::from_parts(head, relay.into_body())
}

/// A body on its way. It moves only when the client takes.
struct Relay {
    body: Incoming,
    /// Whether the trailers came, which are the end of every log. An end without them is none, whatever
    /// the protocol says: a reset that names no error would look like one.
    whole: bool,
    target: Target,
    metrics: Arc<Metrics>,
    _slot: Slot,
    _connection: SendRequest<Empty<Bytes>>,
}

/// The reader's answer was cut off. It has no source: what the one connection ended with says nothing
/// about the other.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the reader of the archive cut its answer off: {0}")]
struct Severed(String);

impl Relay {
    fn into_body(self) -> Body {
        Body::new(StreamBody::new(stream::try_unfold(self, Self::step)))
    }

    async fn step(mut self) -> Result<Option<(Frame<Bytes>, Self)>, Severed> {
        match self.body.frame().await {
            Some(Ok(frame)) => {
                self.saw(&frame);
                Ok(Some((frame, self)))
            }
            None if self.whole => Ok(None),
            None => Err(self.severed("no trailers")),
            Some(Err(error)) => Err(self.severed(&error.to_string())),
        }
    }

    fn saw(&mut self, frame: &Frame<Bytes>) {
        match frame.data_ref() {
            Some(data) => self.metrics.count_bytes(data.len()),
            None => self.whole = true,
        }
    }

    fn severed(&self, why: &str) -> Severed {
        let cut = Severed(why.to_owned());
        self.metrics.count_cut("reader");
        tracing::warn!(
            namespace = self.target.namespace,
            name = self.target.name,
            error = %cut,
            "a read was cut off"
        );
        cut
    }
}
