//! What is read.

use http::StatusCode;

use super::super::cluster::FoundBox;
use super::super::fake::{a_box, run_of};
use super::server::TestServer;
use crate::archive::{RunKey, Stream};

/// A server with a Box `b` that wrote to both streams and did not end its last line.
async fn with_output() -> (TestServer, RunKey) {
    let server = TestServer::start().await;
    let run = run_of("one");
    server.cluster.put("ns", "b", a_box("one"));
    server.archive.line(&run, "first");
    server.archive.write(&run, Stream::Stdout, b"long ", false);
    server.archive.write(&run, Stream::Stderr, b"err", true);
    server.archive.write(&run, Stream::Stdout, b"line", true);
    server
        .archive
        .write(&run, Stream::Stdout, b"open end", false);
    (server, run)
}

#[tokio::test]
async fn output_is_given_as_it_was_written() {
    let (server, _) = with_output().await;
    let mut answer = server.log("b", "").await;
    assert_eq!(answer.text().await, "first\nlong err\nline\nopen end");
    assert_eq!(answer.header("content-type"), Some("text/plain"));
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(answer.header("x-boxes-uid"), Some("one"));
    assert_eq!(answer.header("x-boxes-from"), Some("0"));
    assert_eq!(answer.header("x-boxes-output"), Some("Unfinished"));
    assert_eq!(answer.header("x-boxes-next"), Some("5"));
    assert_eq!(answer.header("x-boxes-gaps"), Some("0"));
    assert_eq!(answer.header("warning"), None);
}

#[rstest::rstest]
#[case("stream=stdout", "first\nlong line\nopen end")]
#[case("stream=stderr", "err\n")]
#[case("tailLines=0", "")]
#[case("tailLines=1", "open end")]
#[case("tailLines=2", "line\nopen end")]
#[case("tailLines=99", "first\nlong err\nline\nopen end")]
#[case("tailLines=2&stream=stdout", "long line\nopen end")]
#[case("tailLines=1&stream=stderr", "err\n")]
#[case("sinceTime=1970-01-01T00:00:03Z", "line\nopen end")]
#[case("sinceTime=2970-01-01T00:00:00Z", "")]
#[case("tailLines=2&sinceTime=1970-01-01T00:00:04Z", "open end")]
#[case("limitBytes=5", "first")]
#[case("limitBytes=6", "first\n")]
#[case("from=2", "err\nline\nopen end")]
#[case("from=2&skipBytes=2", "r\nline\nopen end")]
#[case("from=99", "")]
#[case(
    "stream=stderr&timestamps=true",
    "1970-01-01T00:00:02.000000000Z err\n"
)]
#[tokio::test]
async fn output_is_given_as_it_was_asked_for(#[case] query: &str, #[case] expected: &str) {
    let (server, _) = with_output().await;
    assert_eq!(server.log("b", query).await.text().await, expected);
}

#[rstest::rstest]
#[case("limitBytes=3", None)]
#[case("limitBytes=6", Some("1"))]
#[case("limitBytes=8", None)]
#[case("limitBytes=11", Some("2"))]
#[case("limitBytes=15", Some("3"))]
#[case("from=4&limitBytes=99", Some("5"))]
#[case("timestamps=true", None)]
#[case("timestamps=true&limitBytes=37", Some("1"))]
#[tokio::test]
async fn the_next_entry_is_named_where_an_answer_goes_on_with_it(
    #[case] query: &str,
    #[case] next: Option<&str>,
) {
    let (server, _) = with_output().await;
    let mut answer = server.log("b", query).await;
    let first = answer.text().await;
    assert_eq!(answer.header("x-boxes-next"), next);
    if let Some(next) = next {
        let timestamps = query.contains("timestamps");
        let rest = format!("from={next}&timestamps={timestamps}");
        let rest = server.log("b", &rest).await.text().await;
        let begin = query
            .split('&')
            .find(|it| it.starts_with("from"))
            .unwrap_or("from=0");
        let whole = format!("{begin}&timestamps={timestamps}");
        let whole = server.log("b", &whole).await.text().await;
        assert_eq!(first + &rest, whole);
    }
}

#[tokio::test]
async fn any_bytes_are_given_back() {
    let server = TestServer::start().await;
    let run = run_of("one");
    server.cluster.put("ns", "b", a_box("one"));
    let mut all = Vec::new();
    for round in 0..2000_u32 {
        let line: Vec<u8> = (0..=u8::MAX)
            .map(|byte| byte.wrapping_mul(u8::try_from(round % 251).unwrap()))
            .filter(|byte| *byte != b'\n')
            .collect();
        server.archive.write(&run, Stream::Stdout, &line, true);
        all.extend_from_slice(&line);
        all.push(b'\n');
    }
    assert_eq!(server.log("b", "").await.bytes().await, all);
}

#[tokio::test]
async fn what_is_missing_is_said() {
    let (server, run) = with_output().await;
    server.archive.gap(&run);
    server.archive.line(&run, "after");
    server.archive.end(&run);
    let mut exact = server.log("b", "stream=stdout&tailLines=1").await;
    assert_eq!(exact.text().await, "open endafter\n");
    assert_eq!(exact.header("x-boxes-output"), Some("Partial"));
    assert_eq!(exact.header("x-boxes-gaps"), Some("1"));
    let warning = exact.header("warning").unwrap();
    let reason = "a log file was rotated away before it was read";
    assert_eq!(
        warning,
        format!("299 - \"output is missing ({reason}): see gaps=inline\"")
    );
    let marked = server
        .log("b", "stream=stdout&tailLines=1&gaps=inline")
        .await
        .text()
        .await;
    assert_eq!(
        marked,
        format!("open end\n[boxes: output is missing here: {reason}]\nafter\n")
    );
    let mut only = server.log("b", "gaps=only").await;
    assert_eq!(only.header("content-type"), Some("application/x-ndjson"));
    assert_eq!(only.json().await["entry"], 5);
}

#[tokio::test]
async fn a_box_without_a_run_has_no_output() {
    let server = TestServer::start().await;
    let waiting = FoundBox {
        pod_uid: None,
        ..a_box("one")
    };
    let never = FoundBox {
        ended: true,
        ..waiting.clone()
    };
    server.cluster.put("ns", "waiting", waiting);
    server.cluster.put("ns", "never", never);
    for (name, query, warning) in [
        ("waiting", "", "299 - \"the box has not started yet\""),
        (
            "never",
            "",
            "299 - \"the box ended without having run: it has no output\"",
        ),
        (
            "never",
            "follow=true",
            "299 - \"the box ended without having run: it has no output\"",
        ),
    ] {
        let mut answer = server.log(name, query).await;
        assert_eq!(answer.code, StatusCode::OK);
        assert_eq!(answer.text().await, "");
        assert_eq!(answer.header("x-boxes-output"), Some("None"));
        assert_eq!(answer.header("warning"), Some(warning));
    }
}

#[tokio::test]
async fn two_boxes_of_one_name_never_mix() {
    let server = TestServer::start().await;
    for (text, line) in [("one", "of the first"), ("two", "of the second")] {
        server.cluster.put("ns", "b", a_box(text));
        server.archive.line(&run_of(text), line);
        server.archive.end(&run_of(text));
        let mut answer = server.log("b", "").await;
        assert_eq!(answer.text().await, format!("{line}\n"));
        assert_eq!(answer.header("x-boxes-uid"), Some(text));
    }
    assert_eq!(server.log("b", "uid=two").await.code, StatusCode::OK);
    assert_eq!(server.log("b", "uid=one").await.code, StatusCode::CONFLICT);
    server.cluster.put("ns", "b", a_box("three"));
    assert_eq!(server.log("b", "").await.text().await, "");
}

#[tokio::test]
async fn an_end_that_was_never_saved_is_said() {
    let (server, _) = with_output().await;
    let found = FoundBox {
        ended: true,
        cleaned_up: true,
        ..a_box("one")
    };
    server.cluster.put("ns", "b", found);
    let answer = server.log("b", "").await;
    assert_eq!(
        answer.header("warning"),
        Some("299 - \"the output was not saved to its end\"")
    );
    let mut followed = server.log("b", "follow=true").await;
    assert!(followed.text().await.ends_with("open end"));
}

#[tokio::test]
async fn output_that_nobody_saves_is_said() {
    let server = TestServer::start().await;
    let found = FoundBox {
        unsaved: true,
        ..a_box("one")
    };
    server.cluster.put("ns", "b", found);
    let mut answer = server.log("b", "").await;
    assert_eq!(answer.text().await, "");
    assert_eq!(
        answer.header("warning"),
        Some("299 - \"the output of this box is not being saved\"")
    );
}
