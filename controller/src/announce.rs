//! Says what happened to a Box: a log line and a Kubernetes Event each. Events are a courtesy: they
//! are sent beside the work and are never waited for; the history is the record.

use std::time::Duration;

use boxes_crds::BoxStatus;
use boxes_lifecycle::{Announcement, BoxView, Severity, announcements};
use futures::{StreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::PostParams;
use kube::{Api, Client, Resource};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::context::MANAGER;
use crate::metrics::EventCounts;

/// How many Events may wait to be sent. Past that they are dropped, and counted.
const WAITING: usize = 4096;

/// How long one may take: a connection that died says nothing.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many are sent at once.
const AT_ONCE: usize = 8;

/// The API server's bound for the note of an Event.
const LONGEST_NOTE: usize = 1024;

/// Sends announcements.
pub(crate) struct Announcer {
    queue: mpsc::Sender<Event>,
    instance: String,
    counts: EventCounts,
}

impl Announcer {
    /// An announcer and the task that sends its Events.
    pub(crate) fn start(client: Client, instance: String, counts: EventCounts) -> Self {
        let (queue, events) = mpsc::channel(WAITING);
        tokio::spawn(send_all(client, events, counts.clone()));
        Self {
            queue,
            instance,
            counts,
        }
    }

    /// Says what is new in a status that the API server has acknowledged.
    pub(crate) fn announce(&self, object: &BoxView, recorded: &BoxStatus, status: &BoxStatus) {
        for news in announcements(recorded, status) {
            log(object, status, &news);
            if self.queue.try_send(self.event(object, &news)).is_err() {
                self.counts.dropped.inc();
                tracing::debug!("an Event was dropped: too many are waiting");
            }
        }
    }

    /// The name is derived, so that a repeated announcement is the same Event.
    fn event(&self, object: &BoxView, news: &Announcement) -> Event {
        let reason = news.reason.to_ascii_lowercase();
        let name = format!("{}.{reason}", object.uid());
        Event {
            metadata: ObjectMeta {
                name: Some(name),
                namespace: Some(object.namespace().to_owned()),
                ..ObjectMeta::default()
            },
            event_time: Some(MicroTime(Timestamp::now())),
            reporting_controller: Some(format!("boxes.run/{MANAGER}")),
            reporting_instance: Some(self.instance.clone()),
            action: Some("Record".to_owned()),
            reason: Some(news.reason.clone()),
            note: Some(news.message.chars().take(LONGEST_NOTE / 4).collect()),
            type_: Some(severity(news.severity).to_owned()),
            regarding: Some(reference(object)),
            ..Event::default()
        }
    }
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Normal => "Normal",
        Severity::Warning => "Warning",
    }
}

fn reference(object: &BoxView) -> ObjectReference {
    ObjectReference {
        api_version: Some(BoxView::api_version(&()).into_owned()),
        kind: Some(BoxView::kind(&()).into_owned()),
        name: Some(object.name().to_owned()),
        namespace: Some(object.namespace().to_owned()),
        uid: Some(object.uid().to_owned()),
        ..ObjectReference::default()
    }
}

fn log(object: &BoxView, status: &BoxStatus, news: &Announcement) {
    let (namespace, name, uid) = (object.namespace(), object.name(), object.uid());
    if news.reason == "Exited" {
        tracing::info!(
            namespace,
            name,
            uid,
            state = status.state,
            reason = status.reason,
            exit_code = status.exit_code,
            signal = status.signal,
            evidence = status.evidence,
            "the box ended"
        );
        return;
    }
    match news.severity {
        Severity::Normal => {
            tracing::debug!(
                namespace,
                name,
                uid,
                event = news.reason,
                note = news.message,
                "the box went on"
            );
        }
        Severity::Warning => {
            tracing::warn!(
                namespace,
                name,
                uid,
                event = news.reason,
                note = news.message,
                "the box needs a look"
            );
        }
    }
}

async fn send_all(client: Client, mut events: mpsc::Receiver<Event>, counts: EventCounts) {
    stream::poll_fn(move |cx| events.poll_recv(cx))
        .for_each_concurrent(AT_ONCE, |event| send(&client, event, &counts))
        .await;
}

async fn send(client: &Client, event: Event, counts: &EventCounts) {
    let namespace = event.metadata.namespace.as_deref().unwrap_or_default();
    let api: Api<Event> = Api::namespaced(client.clone(), namespace);
    // In a namespace that is being deleted, and for one already sent, this fails, and may.
    let params = PostParams::default();
    match timeout(PATIENCE, api.create(&params, &event)).await {
        Ok(Ok(_)) => {
            counts.sent.inc();
        }
        Ok(Err(error)) => refused(counts, &error),
        Err(late) => refused(counts, &late),
    }
}

fn refused(counts: &EventCounts, error: &dyn std::error::Error) {
    tracing::debug!(error = %error, "an Event was not accepted");
    counts.refused.inc();
}

#[cfg(test)]
mod tests {
    use kube::client::Body;
    use serde_json::json;
    use tower_test::mock;

    use super::*;
    use crate::fake::a_box;

    /// Says that a Box runs, which is one Event.
    fn say_that_it_runs(announcer: &Announcer) {
        let status = json!({
            "state": "Running",
            "history": [{"type": "Started", "time": "2026-01-01T00:00:00Z"}],
        });
        let status = serde_json::from_value(status).unwrap();
        announcer.announce(&a_box(&json!({})), &BoxStatus::default(), &status);
    }

    #[tokio::test]
    async fn an_event_that_is_not_answered_keeps_no_other_one_from_being_sent() {
        let (service, mut server) = mock::pair::<http::Request<Body>, http::Response<Body>>();
        let counts = EventCounts::default();
        let client = Client::new(service, "default");
        let announcer = Announcer::start(client, "test".to_owned(), counts.clone());
        say_that_it_runs(&announcer);
        let silent = server.next_request().await.unwrap();
        say_that_it_runs(&announcer);
        let (_, second) = server.next_request().await.unwrap();
        second.send_error("refused");
        drop(silent);
        let both = async {
            while counts.refused.get() < 2 {
                tokio::task::yield_now().await;
            }
        };
        let patience = Duration::from_mins(1);
        timeout(patience, both).await.unwrap();
        assert_eq!((counts.sent.get(), counts.dropped.get()), (0, 0));
    }

    #[tokio::test]
    async fn events_that_too_many_wait_before_are_dropped_and_counted() {
        let (service, _never_answers) = mock::pair::<http::Request<Body>, http::Response<Body>>();
        let counts = EventCounts::default();
        let client = Client::new(service, "default");
        let announcer = Announcer::start(client, "test".to_owned(), counts.clone());
        for _ in 0..WAITING + 3 {
            say_that_it_runs(&announcer);
        }
        assert_eq!(counts.dropped.get(), 3);
    }
}
