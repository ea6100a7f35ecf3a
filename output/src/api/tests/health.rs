//! When the server is ready.

use boxes_program::Health as _;
use tokio::sync::watch;

use super::super::health::Health;
use super::server::TestServer;
use crate::archive::Error;

#[tokio::test]
async fn it_is_ready_without_the_archive_but_not_without_the_front_proxy() {
    let server = TestServer::start().await;
    let (stop, stopping) = watch::channel(false);
    let cx = server.cx.clone();
    let health = Health { cx, stopping };
    let message = String::new();
    server.archive.fail(Some(Error::Unavailable { message }));
    assert_eq!(health.problem(), None);
    let known = server.known.send_replace(None);
    assert!(health.problem().is_some());
    server.known.send_replace(known);
    stop.send_replace(true);
    assert_eq!(health.problem(), Some("stopping"));
}

#[tokio::test]
async fn what_happens_is_counted() {
    let server = TestServer::start().await;
    server.log("none", "").await;
    server.get("/nowhere").await;
    let text = server.cx.metrics.text(3).unwrap();
    assert!(
        text.contains("boxes_log_api_requests_total{code=\"404\"} 2"),
        "{text}"
    );
    assert!(text.contains("boxes_log_api_streams 3"), "{text}");
}
