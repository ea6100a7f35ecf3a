//! The binary, between an API server that is made up and an archive that is real.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../src/api/test_certificates.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod test_certificates;

mod api_client;
mod api_process;

use api_process::{Cluster, LogApi};
use boxes_output::archive::{
    Archive, Flushed, LineHead, Options, Resumed, RunKey, Stream, Uid, Writer,
};
use jiff::Timestamp;

const LOG: &str = "/apis/output.boxes.run/v1alpha1/namespaces/ns/boxes/b/log";

async fn writer(cluster: &Cluster) -> Box<Writer> {
    let archive = Archive::open(&cluster.archive_url(), &Options::default()).unwrap();
    let uid = |text| Uid::parse(text).unwrap();
    let run = RunKey::first(uid("box-uid"), uid("pod-uid"));
    match Writer::resume(&archive, &run).await.unwrap() {
        Resumed::At(writer) => writer,
        Resumed::Done(_) => panic!("done"),
    }
}

async fn write(writer: &mut Writer, text: &str) {
    let head = LineHead {
        time: Timestamp::now(),
        stream: Stream::Stdout,
        ends_line: true,
    };
    writer.record(head, text.as_bytes());
    assert_eq!(writer.flush().await.unwrap(), Flushed::Stored);
}

#[tokio::test(flavor = "multi_thread")]
async fn from_the_front_proxy_to_the_archive_and_back() {
    let cluster = Cluster::start().await;
    let api = LogApi::start(&cluster).await;
    api.is_ready().await;

    // The archive is not there yet.
    let down = api.get(LOG, "ann").await;
    assert_eq!(down.code(), 503);
    assert!(down.text().await.contains("the archive is not available"));
    cluster.make_archive();
    let mut writer = writer(&cluster).await;
    write(&mut writer, "a secret line").await;
    let read = api.get(&format!("{LOG}?stream=stdout"), "ann").await;
    assert_eq!(read.text().await, "a secret line\n");

    assert_eq!(api.get(LOG, "bob").await.code(), 403);
    assert_eq!(
        api.get(&LOG.replace("/ns/", "/other/"), "ann").await.code(),
        403
    );
    assert_eq!(api.get(&LOG.replace("/b/", "/c/"), "ann").await.code(), 404);
    assert_eq!(api.get_as_stranger(LOG, "ann").await.code(), 401);
    assert!(
        api.metrics()
            .await
            .contains("boxes_log_api_requests_total{code=\"403\"} 2")
    );
    assert_log(&api.kill());
}

/// One line names each read, and no line has anything of what was read.
fn assert_log(lines: &[String]) {
    let reads: Vec<&String> = lines
        .iter()
        .filter(|line| line.contains("output read"))
        .collect();
    assert_eq!(reads.len(), 2, "{lines:#?}");
    for part in [
        "\"namespace\":\"ns\"",
        "\"name\":\"b\"",
        "\"box_uid\":\"box-uid\"",
        "\"user\":\"ann\"",
    ] {
        assert!(reads.iter().all(|line| line.contains(part)), "{reads:#?}");
    }
    assert!(
        !lines.iter().any(|line| line.contains("secret")),
        "{lines:#?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_of_a_killed_server_goes_on_at_another() {
    let cluster = Cluster::start().await;
    cluster.make_archive();
    let (first, second) = (LogApi::start(&cluster).await, LogApi::start(&cluster).await);
    let mut writer = writer(&cluster).await;
    for number in 0..20 {
        write(&mut writer, &format!("line {number}")).await;
    }
    let mut following = first
        .get(&format!("{LOG}?follow=true&tailLines=10"), "ann")
        .await;
    let from = following.header("x-boxes-from");
    let uid = following.header("x-boxes-uid");
    write(&mut writer, "seen by the first").await;
    let mut got = following.until("seen by the first\n").await;

    first.kill();
    assert!(!following.ends_well().await);
    write(&mut writer, "between").await;
    let query = format!("follow=true&uid={uid}&from={from}&skipBytes={}", got.len());
    let mut resumed = second.get(&format!("{LOG}?{query}"), "ann").await;
    got += &resumed.until("between\n").await;

    write(&mut writer, "seen by the second").await;
    got += &resumed.until("seen by the second\n").await;
    writer.finish().await.unwrap();
    assert!(resumed.ends_well().await);

    let whole: Vec<String> = (10..20).map(|number| format!("line {number}\n")).collect();
    let whole = whole.concat() + "seen by the first\nbetween\nseen by the second\n";
    assert_eq!(got, whole);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_front_and_a_reader_are_one_log_api() {
    let cluster = Cluster::start().await;
    cluster.make_archive();
    let reader = LogApi::start_reader(&cluster, "127.0.0.1:0").await;
    let front = LogApi::start_front(&cluster, reader.address()).await;
    let mut writer = writer(&cluster).await;
    write(&mut writer, "a secret").await;
    let mut following = front.get(&format!("{LOG}?follow=true"), "ann").await;
    assert_eq!(following.until("a secret\n").await, "a secret\n");
    write(&mut writer, "another").await;
    writer.finish().await.unwrap();
    assert_eq!(following.until("another\n").await, "another\n");
    assert!(following.ends_well().await);
    let read = front.get(LOG, "ann").await.text().await;
    assert_eq!(read, "a secret\nanother\n");

    assert_eq!(front.get(LOG, "bob").await.code(), 403);
    assert_eq!(reader.get_as_front(LOG, "bob").await.code(), 403);
    assert_eq!(reader.get_as_front(LOG, "ann").await.code(), 200);
    assert_eq!(reader.get_past_the_front(LOG, "ann").await.code(), 401);
    assert_log(&front.kill());
    let reads = reader.kill();
    assert!(
        !reads.iter().any(|line| line.contains("output read")),
        "{reads:#?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_front_goes_on_when_its_reader_comes_back() {
    let cluster = Cluster::start().await;
    cluster.make_archive();
    let reader = LogApi::start_reader(&cluster, "127.0.0.1:0").await;
    let address = reader.address();
    let front = LogApi::start_front(&cluster, address).await;
    let mut writer = writer(&cluster).await;
    write(&mut writer, "one").await;
    let mut following = front.get(&format!("{LOG}?follow=true"), "ann").await;
    assert_eq!(following.until("one\n").await, "one\n");
    reader.kill();
    assert!(!following.ends_well().await);

    let away = front.get(LOG, "ann").await;
    assert_eq!((away.code(), away.header("retry-after")), (503, "1".into()));
    front.is_ready().await;
    let discovery = front.get("/apis/output.boxes.run/v1alpha1", "ann").await;
    assert_eq!(discovery.code(), 200);

    let _reader = LogApi::start_reader(&cluster, &address.to_string()).await;
    let mut again = front.get(&format!("{LOG}?follow=true"), "ann").await;
    assert_eq!(again.until("one\n").await, "one\n");
    writer.finish().await.unwrap();
    assert!(again.ends_well().await);
}
