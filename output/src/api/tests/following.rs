//! Following, being cut off, and going on.

use std::time::{Duration, Instant};

use super::super::cluster::FoundBox;
use super::super::fake::{a_box, run_of};
use super::client::Client;
use super::server::{TestServer, log_path};
use crate::archive::{Error, RunKey, Stream};

const ANN: [(&str, &str); 1] = [("X-Remote-User", "ann")];

async fn with_box() -> (TestServer, RunKey) {
    let server = TestServer::start().await;
    server.cluster.put("ns", "b", a_box("one"));
    (server, run_of("one"))
}

fn unavailable() -> Error {
    let message = "down".to_owned();
    Error::Unavailable { message }
}

/// Waits until something holds.
async fn until(what: impl Fn() -> bool) {
    let began = Instant::now();
    while !what() {
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "it never happened"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn lines_are_seen_as_they_are_written() {
    let (server, run) = with_box().await;
    let mut answer = server.log("b", "follow=true").await;
    for line in ["one", "two", "three"] {
        server.archive.line(&run, line);
        assert_eq!(answer.piece().await.unwrap(), format!("{line}\n"));
    }
    server.archive.end(&run);
    assert_eq!(answer.text().await, "");
    assert_eq!(answer.header("x-boxes-next"), Some("3"));
    assert_eq!(answer.trailers.get("x-boxes-end").unwrap(), "Saved");
    // The API server in front would add a trailer to the header of its name.
    assert_eq!(answer.trailers.get("x-boxes-output"), None);
}

#[tokio::test]
async fn following_an_output_that_has_ended_ends() {
    let (server, run) = with_box().await;
    server.archive.line(&run, "all");
    server.archive.end(&run);
    assert_eq!(server.log("b", "follow=true").await.text().await, "all\n");
    assert_eq!(
        server
            .log("b", "follow=true&tailLines=0")
            .await
            .text()
            .await,
        ""
    );
}

#[tokio::test]
async fn a_limit_ends_following() {
    let (server, run) = with_box().await;
    let mut answer = server.log("b", "follow=true&limitBytes=4").await;
    server.archive.line(&run, "one");
    assert_eq!(answer.text().await, "one\n");
}

#[tokio::test]
async fn a_follower_waits_for_the_pod_and_for_the_first_line() {
    let (server, run) = with_box().await;
    let waiting = FoundBox {
        pod_uid: None,
        ..a_box("one")
    };
    server.cluster.put("ns", "b", waiting);
    let mut answer = server.log("b", "follow=true").await;
    assert_eq!(answer.header("x-boxes-output"), Some("None"));
    server.cluster.put("ns", "b", a_box("one"));
    server.archive.line(&run, "at last");
    server.archive.end(&run);
    assert_eq!(answer.text().await, "at last\n");
}

#[tokio::test]
async fn a_follower_of_a_box_that_never_runs_is_let_go() {
    let (server, _) = with_box().await;
    let waiting = FoundBox {
        pod_uid: None,
        ..a_box("one")
    };
    server.cluster.put("ns", "b", waiting.clone());
    let mut answer = server.log("b", "follow=true").await;
    server.cluster.put(
        "ns",
        "b",
        FoundBox {
            ended: true,
            ..waiting
        },
    );
    assert_eq!(answer.text().await, "");
}

#[tokio::test]
async fn a_deleted_box_cuts_its_followers_off() {
    let (server, run) = with_box().await;
    server.archive.line(&run, "one");
    let mut answer = server.log("b", "follow=true").await;
    server.cluster.delete("ns", "b");
    assert_eq!(answer.rest().await, (b"one\n".to_vec(), false));
}

#[tokio::test]
async fn another_box_of_the_name_is_not_followed() {
    let (server, run) = with_box().await;
    server.archive.line(&run, "one");
    let mut answer = server.log("b", "follow=true").await;
    server.cluster.put("ns", "b", a_box("two"));
    server.archive.line(&run_of("two"), "two");
    assert_eq!(answer.rest().await, (b"one\n".to_vec(), false));
}

#[tokio::test]
async fn a_follower_of_a_box_that_is_over_without_an_end_is_let_go() {
    let (server, run) = with_box().await;
    server.archive.line(&run, "one");
    let mut answer = server.log("b", "follow=true").await;
    let over = FoundBox {
        ended: true,
        cleaned_up: true,
        ..a_box("one")
    };
    server.cluster.put("ns", "b", over);
    assert_eq!(answer.text().await, "one\n");
    assert_eq!(answer.header("x-boxes-output"), Some("Unfinished"));
}

#[tokio::test]
async fn an_archive_that_fails_for_a_moment_is_waited_for() {
    let (server, run) = with_box().await;
    for line in ["one", "two", "three", "four"] {
        server.archive.line(&run, line);
    }
    let mut answer = server.log("b", "follow=true").await;
    server.archive.fail(Some(unavailable()));
    server.archive.line(&run, "five");
    tokio::time::sleep(Duration::from_millis(100)).await;
    server.archive.fail(None);
    server.archive.end(&run);
    assert_eq!(answer.text().await, "one\ntwo\nthree\nfour\nfive\n");
}

#[tokio::test]
async fn an_archive_that_stays_down_cuts_off() {
    let (server, run) = with_box().await;
    server.archive.line(&run, "one");
    let mut answer = server.log("b", "follow=true").await;
    server.archive.fail(Some(unavailable()));
    assert_eq!(answer.rest().await, (b"one\n".to_vec(), false));
    until(|| server.cx.slots.taken() == 0).await;
}

#[tokio::test]
async fn a_corrupt_archive_cuts_off_at_once() {
    let (server, run) = with_box().await;
    server.archive.line(&run, "one");
    let mut answer = server.log("b", "follow=true").await;
    let (what, message) = (String::new(), String::new());
    server.archive.fail(Some(Error::Corrupt { what, message }));
    assert_eq!(answer.rest().await, (b"one\n".to_vec(), false));
}

#[tokio::test]
async fn a_client_that_goes_away_frees_everything() {
    let (server, run) = with_box().await;
    for two in [false, true] {
        let proxy = Some(server.proxy());
        let mut client = Client::connect(server.address, &server.root, proxy, two).await;
        let mut answer = client.get(&log_path("ns", "b", "follow=true"), &ANN).await;
        server.archive.line(&run, "one");
        assert!(answer.piece().await.is_some());
        assert_eq!((server.cx.slots.taken(), server.archive.reads()), (1, 1));
        drop(answer);
        drop(client);
        until(|| server.cx.slots.taken() == 0 && server.archive.reads() == 0).await;
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_costs_little() {
    let (server, run) = with_box().await;
    let big = vec![b'x'; 64 * 1024];
    for _ in 0..600 {
        server.archive.write(&run, Stream::Stdout, &big, true);
    }
    for two in [false, true] {
        let before = server.archive.batches();
        let proxy = Some(server.proxy());
        let mut client = Client::connect(server.address, &server.root, proxy, two).await;
        let mut answer = client.get(&log_path("ns", "b", ""), &ANN).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        // The rest waits in the archive, not in the server: what left is in the kernel's buffers.
        assert!(server.archive.batches() - before < 120);
        assert_eq!(answer.bytes().await.len(), 600 * (64 * 1024 + 1));
    }
}

#[tokio::test]
async fn a_client_goes_on_where_it_was_cut_off() {
    let (first, run) = with_box().await;
    let second = TestServer::start().await;
    second.cluster.put("ns", "b", a_box("one"));
    for text in ["zero", "one", "two", "three", "four"] {
        first.archive.line(&run, text);
        second.archive.line(&run, text);
    }
    let mut answer = first
        .log("b", "follow=true&tailLines=3&timestamps=true")
        .await;
    let from = answer.header("x-boxes-from").unwrap().to_owned();
    assert_eq!(from, "2");
    first.stop.send_replace(true);
    let (got, whole) = answer.rest().await;
    assert!(!whole || got.is_empty());

    second.archive.line(&run, "five");
    second.archive.end(&run);
    let everything = second
        .log("b", "tailLines=4&timestamps=true")
        .await
        .bytes()
        .await;
    for received in [0, 1, 40, got.len()] {
        let query = format!("uid=one&from={from}&skipBytes={received}&follow=true&timestamps=true");
        let rest = second.log("b", &query).await.bytes().await;
        assert_eq!(rest, everything[received..]);
    }
}

#[tokio::test]
async fn a_server_that_stops_lets_short_answers_end() {
    let (server, run) = with_box().await;
    server.archive.line(&run, "one");
    let mut answer = server.log("b", "").await;
    server.stop.send_replace(true);
    assert_eq!(answer.text().await, "one\n");
}
