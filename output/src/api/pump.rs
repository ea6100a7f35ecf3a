//! The body of an answer. It moves only when the client takes: one batch of entries and one chunk of
//! bytes are in memory, and the archive is asked for no more.

use std::sync::Arc;
use std::vec;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures::stream;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::Frame;
use http_body_util::StreamBody;

use super::feed::{Cut, Feed};
use super::metrics::Metrics;
use super::render::Renderer;
use super::slots::Slot;
use crate::archive::{Entry, Manifest, Start};

/// Trailer: the number of the entry to go on with, if there is one that does.
pub(crate) const NEXT: HeaderName = HeaderName::from_static("x-boxes-next");
/// Trailer: how many gaps were passed.
pub(crate) const GAPS: HeaderName = HeaderName::from_static("x-boxes-gaps");
/// Trailer of a follower: whether all of the output was saved.
pub(crate) const END: HeaderName = HeaderName::from_static("x-boxes-end");
/// Header: whether all of the output was saved by then.
pub(crate) const OUTPUT: HeaderName = HeaderName::from_static("x-boxes-output");

/// A chunk is sent once it has this many bytes.
const CHUNK: usize = 64 * 1024;

/// From a feed to a body.
pub(crate) struct Pump {
    pub(crate) feed: Feed,
    pub(crate) renderer: Renderer,
    pub(crate) batch: vec::IntoIter<Entry>,
    pub(crate) metrics: Arc<Metrics>,
    /// Given back when the body is dropped: at its end, or when the client went away.
    pub(crate) _slot: Slot,
    pub(crate) progress: Progress,
}

/// How far a body is.
#[derive(Default)]
pub(crate) struct Progress {
    /// The last entry that was rendered.
    last: Option<u64>,
    finished: bool,
}

impl Pump {
    /// The body. If it is cut off it ends in an error, so that nobody takes it for whole.
    pub(crate) fn into_body(self) -> Body {
        Body::new(StreamBody::new(stream::try_unfold(self, Self::step)))
    }

    async fn step(mut self) -> Result<Option<(Frame<Bytes>, Self)>, Cut> {
        if self.progress.finished {
            return Ok(None);
        }
        let chunk = self.chunk().await.inspect_err(|cut| self.note(cut))?;
        let frame = match chunk {
            Some(bytes) => {
                self.metrics.count_bytes(bytes.len());
                Frame::data(bytes)
            }
            None => Frame::trailers(self.finish().await),
        };
        Ok(Some((frame, self)))
    }

    /// The next bytes, never none; `None` at the end.
    async fn chunk(&mut self) -> Result<Option<Bytes>, Cut> {
        let mut out = BytesMut::new();
        loop {
            self.render(&mut out);
            if !out.is_empty() {
                return Ok(Some(out.freeze()));
            }
            if self.renderer.is_full() {
                return Ok(None);
            }
            let Some(entries) = self.feed.next().await? else {
                return Ok(None);
            };
            self.batch = entries.into_iter();
        }
    }

    /// Renders what is there, up to one chunk.
    fn render(&mut self, out: &mut BytesMut) {
        while out.len() < CHUNK && !self.renderer.is_full() {
            let Some(entry) = self.batch.next() else {
                return;
            };
            self.renderer.write(&entry, out);
            self.progress.last = Some(entry.number);
        }
    }

    async fn finish(&mut self) -> HeaderMap {
        self.progress.finished = true;
        let mut trailers = HeaderMap::new();
        if let Some(next) = self.next() {
            trailers.insert(NEXT, next.into());
        }
        trailers.insert(GAPS, self.renderer.gap_count().into());
        if self.feed.follow {
            trailers.insert(END, HeaderValue::from_static(self.saved().await));
        }
        trailers
    }

    fn next(&self) -> Option<u64> {
        if let Some(last) = self.progress.last {
            return self.renderer.ends_well().then_some(last + 1);
        }
        match self.feed.start {
            Start::Entry(number) => Some(number),
            Start::Beginning => Some(0),
            Start::Time(_) | Start::TailLines { .. } => None,
        }
    }

    async fn saved(&mut self) -> &'static str {
        match &self.feed.run {
            None => saved(None, false),
            Some(run) => {
                let manifest = self.feed.archive.manifest(run).await.ok().flatten();
                saved(manifest.as_ref(), true)
            }
        }
    }

    fn note(&self, cut: &Cut) {
        self.metrics.count_cut(cut.class());
        tracing::warn!(
            namespace = self.feed.target.namespace,
            name = self.feed.target.name,
            box_uid = %self.feed.uid,
            error = %cut,
            "a read was cut off"
        );
    }
}

/// The word for how much of an output is in the archive.
pub(crate) fn saved(manifest: Option<&Manifest>, has_run: bool) -> &'static str {
    match (manifest, has_run) {
        (Some(manifest), _) => manifest.state.as_str(),
        (None, true) => "Unfinished",
        (None, false) => "None",
    }
}
