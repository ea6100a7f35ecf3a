//! One request for the output of a Box.

use std::sync::Arc;

use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use jiff::Timestamp;

use super::cluster::FoundBox;
use super::context::{Context, Source};
use super::failure::Failure;
use super::feed::{Cut, Feed, FeedState};
use super::forward;
use super::names::Target;
use super::options::{Gaps, Options};
use super::pump::{END, GAPS, NEXT, OUTPUT, Progress, Pump, saved};
use super::render::Renderer;
use super::slots::Slot;
use super::user::User;
use crate::archive::{Entry, Error, Manifest, Reader, RunKey, Start};

/// Header: the UID of the Box whose output this is.
pub(crate) const UID: HeaderName = HeaderName::from_static("x-boxes-uid");
/// Header: the number of the first entry of this answer.
const FROM: HeaderName = HeaderName::from_static("x-boxes-from");

/// Answers. What can be refused is refused before the first byte; later there is only a cut.
pub(crate) async fn answer(
    cx: &Context,
    user: &User,
    target: &Target,
    query: &str,
) -> Result<Response, Failure> {
    cx.access.check(user, target).await?;
    let options = Options::parse(query, Timestamp::now())?;
    let slot = cx.slots.take(&user.name)?;
    match &cx.source {
        Source::Archive {
            archive,
            behind_front,
        } => {
            let found = find(cx, target, &options).await?;
            if !behind_front {
                note_read(user, target, found.uid.as_str());
            }
            let feed = feed(cx, archive, target, &found, &options);
            read(cx, feed, &found, &options, slot).await
        }
        Source::Upstream(upstream) => {
            forward::answer(cx, upstream, (user, target), query, slot).await
        }
    }
}

async fn read(
    cx: &Context,
    mut feed: Feed,
    found: &FoundBox,
    options: &Options,
    slot: Slot,
) -> Result<Response, Failure> {
    let manifest = manifest(cx, &feed.archive, feed.run.as_ref()).await?;
    let first = first(cx, &mut feed).await?;
    let head = head(found, options, manifest.as_ref(), first.as_deref());
    Ok(response(head, pump(cx, options, feed, first, slot)))
}

/// One line for each read, by the server that the user's request came to.
pub(crate) fn note_read(user: &User, target: &Target, box_uid: &str) {
    tracing::info!(
        namespace = target.namespace,
        name = target.name,
        box_uid,
        user = user.name,
        "output read"
    );
}

async fn find(cx: &Context, target: &Target, options: &Options) -> Result<FoundBox, Failure> {
    let found = cx.cluster.find_box(target).await.map_err(|error| {
        tracing::warn!(error = %error, "a Box could not be read");
        Failure::unavailable("the Box cannot be read now")
    })?;
    let found = found.ok_or_else(|| Failure::no_such_box(target))?;
    match &options.uid {
        Some(uid) if uid != found.uid.as_str() => {
            Err(Failure::another_box(target, found.uid.as_str()))
        }
        _ => Ok(found),
    }
}

fn feed(
    cx: &Context,
    archive: &Arc<dyn Reader>,
    target: &Target,
    found: &FoundBox,
    options: &Options,
) -> Feed {
    let run = |pod_uid: &_| RunKey::first(found.uid.clone(), Clone::clone(pod_uid));
    Feed {
        cluster: cx.cluster.clone(),
        archive: archive.clone(),
        timing: cx.timing,
        target: target.clone(),
        uid: found.uid.clone(),
        run: found.pod_uid.as_ref().map(run),
        follow: options.follow && !(found.ended && found.pod_uid.is_none()),
        start: options.start(),
        state: FeedState::default(),
    }
}

/// The end of the output, if it has one. This is also how an archive that does not answer is
/// noticed while there is still a status to send.
async fn manifest(
    cx: &Context,
    archive: &Arc<dyn Reader>,
    run: Option<&RunKey>,
) -> Result<Option<Manifest>, Failure> {
    let Some(run) = run else {
        return Ok(None);
    };
    let asked = tokio::time::timeout(cx.timing.answer, archive.manifest(run));
    match asked.await {
        Ok(answer) => answer.map_err(|error| refuse(&error)),
        Err(_) => Err(too_slow()),
    }
}

/// The first entries. A follower does not wait for them beyond a moment.
async fn first(cx: &Context, feed: &mut Feed) -> Result<Option<Vec<Entry>>, Failure> {
    let longest = if feed.follow {
        cx.timing.first
    } else {
        cx.timing.answer
    };
    match tokio::time::timeout(longest, feed.next()).await {
        Ok(Ok(entries)) => Ok(entries),
        Ok(Err(Cut::Archive(error))) => Err(refuse(&error)),
        Ok(Err(Cut::BoxGone)) => Err(Failure::no_such_box(&feed.target)),
        Err(_) if feed.follow => Ok(None),
        Err(_) => Err(too_slow()),
    }
}

/// Clients learn what kind of failure it was, and nothing about how the archive is reached.
fn refuse(error: &Error) -> Failure {
    tracing::warn!(error = %error, class = error.class(), "the archive gave no answer");
    match error {
        Error::Corrupt { .. } => Failure::internal("the output in the archive is corrupt"),
        Error::UnknownVersion { .. } => Failure::internal(
            "the output was written by another version of Boxes, which this one cannot read",
        ),
        Error::NotFound { .. } => Failure::unavailable("the output is not in the archive any more"),
        Error::Unavailable { .. }
        | Error::Full { .. }
        | Error::Refused { .. }
        | Error::Foreign { .. } => Failure::unavailable("the archive is not available"),
    }
}

fn too_slow() -> Failure {
    tracing::warn!(class = "timeout", "the archive gave no answer");
    Failure::unavailable("the archive did not answer in time")
}

fn pump(
    cx: &Context,
    options: &Options,
    feed: Feed,
    first: Option<Vec<Entry>>,
    slot: Slot,
) -> Pump {
    Pump {
        feed,
        renderer: Renderer::new(options),
        batch: first.unwrap_or_default().into_iter(),
        metrics: Arc::clone(&cx.metrics),
        _slot: slot,
        progress: Progress::default(),
    }
}

fn response(head: HeaderMap, pump: Pump) -> Response {
    let mut response = Response::new(pump.into_body());
    *response.headers_mut() = head;
    response
}

fn head(
    found: &FoundBox,
    options: &Options,
    manifest: Option<&Manifest>,
    first: Option<&[Entry]>,
) -> HeaderMap {
    let saved = saved(manifest, found.pod_uid.is_some());
    let fixed = [
        (header::CONTENT_TYPE, content_type(options.gaps)),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (OUTPUT, saved),
    ];
    let mut head: HeaderMap = fixed
        .map(|(name, value)| (name, HeaderValue::from_static(value)))
        .into_iter()
        .collect();
    for name in [NEXT, GAPS, END] {
        head.append(header::TRAILER, name.into());
    }
    if let Ok(uid) = HeaderValue::from_str(found.uid.as_str()) {
        head.insert(UID, uid);
    }
    if let Some(from) = begins(options, first) {
        head.insert(FROM, from.into());
    }
    if let Some(warning) = warning(found, options, manifest) {
        head.insert(header::WARNING, warning);
    }
    head
}

const fn content_type(gaps: Gaps) -> &'static str {
    match gaps {
        Gaps::Aside | Gaps::Inline => "text/plain",
        Gaps::Only => "application/x-ndjson",
    }
}

/// The number of the first entry, if it is known by now.
fn begins(options: &Options, first: Option<&[Entry]>) -> Option<u64> {
    match options.start() {
        Start::Beginning => Some(0),
        Start::Entry(number) => Some(number),
        Start::Time(_) | Start::TailLines { .. } => Some(first?.first()?.number),
    }
}

/// What a person is to know before reading. `kubectl` prints it.
fn warning(
    found: &FoundBox,
    options: &Options,
    manifest: Option<&Manifest>,
) -> Option<HeaderValue> {
    let text = match (manifest, &found.pod_uid) {
        (Some(manifest), _) => missing(manifest)?,
        (None, None) if found.ended => "the box ended without having run: it has no output".into(),
        (None, None) if !options.follow => "the box has not started yet".to_owned(),
        (None, Some(_)) if found.cleaned_up => "the output was not saved to its end".to_owned(),
        (None, Some(_)) if found.unsaved => "the output of this box is not being saved".to_owned(),
        (None, _) => return None,
    };
    HeaderValue::from_str(&format!("299 - \"{text}\"")).ok()
}

fn missing(manifest: &Manifest) -> Option<String> {
    let gap = manifest.gaps.first();
    let reason = gap.map(|gap| format!(" ({})", gap.reason));
    let reason = reason.unwrap_or_default();
    match manifest.gap_count {
        0 if manifest.state == crate::archive::Saved::Saved => None,
        0 | 1 => Some(format!("output is missing{reason}: see gaps=inline")),
        count => Some(format!(
            "output is missing in {count} places, at first{reason}: see gaps=inline"
        )),
    }
}
