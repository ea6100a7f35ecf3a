//! Whom the server behind a front believes, and in whose name a front asks.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::{HeaderMap, StatusCode};

use super::super::fake::{a_box, run_of};
use super::super::front_proxy::{FRONT, FrontProxy};
use super::super::test_certificates::{Authority, Identity, Kind};
use super::super::user::User;
use super::client::Client;
use super::fronted::Fronted;
use super::server::{PROXY, TestServer, config_map, front_proxy, log_path};

const ADMIN: [(&str, &str); 2] = [
    ("X-Remote-User", "ann"),
    ("X-Remote-Group", "system:masters"),
];

async fn code(reader: &TestServer, identity: Option<Identity>, two: bool) -> StatusCode {
    let mut client = Client::connect(reader.address, &reader.root, identity, two).await;
    client.get(&log_path("ns", "b", ""), &ADMIN).await.code
}

#[tokio::test]
async fn the_reader_believes_nobody_but_the_front() {
    let it = Fronted::start().await;
    let (reader, other) = (&it.reader, Authority::new("reader CA"));
    for (two, reviews) in [(false, 0), (true, 1)] {
        let strangers = [
            None,
            Some(reader.ca.sign("somebody", Kind::Client)),
            Some(reader.ca.sign("localhost", Kind::Client)),
            Some(reader.ca.sign(FRONT, Kind::Expired)),
            Some(reader.ca.sign(FRONT, Kind::ServerOnly)),
            Some(other.sign(FRONT, Kind::Client)),
            // Also not the API server, to whom the front listens.
            Some(it.front.ca.sign(PROXY, Kind::Client)),
            Some(it.front.ca.sign(FRONT, Kind::Client)),
        ];
        for stranger in strangers {
            assert_eq!(code(reader, stranger, two).await, StatusCode::UNAUTHORIZED);
        }
        assert_eq!(reader.cluster.reviews(), reviews);
        let front = Some(reader.ca.sign(FRONT, Kind::Client));
        assert_eq!(code(reader, front, two).await, StatusCode::OK);
    }
}

#[tokio::test]
async fn a_reader_that_does_not_know_the_front_does_not_make_its_user_a_stranger() {
    let it = Fronted::start().await;
    let next = FrontProxy::ours(&Authority::new("next").pem()).unwrap();
    it.reader.known.send_replace(Some(Arc::new(next)));
    let answer = it.front.log("b", "").await;
    assert_eq!(answer.code, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn new_files_count_at_once() {
    let it = Fronted::start().await;
    let good = std::fs::read(it.secret.path().join("ca.crt")).unwrap();
    for (ca, expected) in [
        (Vec::new(), StatusCode::SERVICE_UNAVAILABLE),
        (
            Authority::new("reader CA").pem().into_bytes(),
            StatusCode::SERVICE_UNAVAILABLE,
        ),
        (good, StatusCode::OK),
    ] {
        std::fs::write(it.secret.path().join("ca.crt"), ca).unwrap();
        assert_eq!(it.front.log("b", "").await.code, expected);
    }
    std::fs::remove_file(it.secret.path().join("tls.key")).unwrap();
    let answer = it.front.log("b", "").await;
    assert_eq!(answer.code, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn both_ask_whether_the_user_may_read() {
    let it = Fronted::start().await;
    let bob = [("X-Remote-User", "bob")];
    let mut client = it.front.connect(Some(it.front.proxy())).await;
    let path = log_path("ns", "b", "");
    assert_eq!(client.get(&path, &bob).await.code, StatusCode::FORBIDDEN);
    assert_eq!(it.reader.cluster.reviews(), 0);
    it.front.cluster.allow("bob", "ns");
    assert_eq!(client.get(&path, &bob).await.code, StatusCode::FORBIDDEN);
    it.reader.cluster.allow("bob", "ns");
    assert_eq!(client.get(&path, &bob).await.code, StatusCode::OK);
}

/// The API server of this cluster tells users by other headers, and passes on what a client says in
/// those that the reader listens to.
#[tokio::test]
async fn nobody_becomes_another_by_headers_of_his_own() {
    let it = Fronted::start().await;
    it.reader.archive.line(&run_of("one"), "one");
    let mut data = config_map(&it.front.ca);
    for (key, header) in [
        ("requestheader-username-headers", "X-Their-User"),
        ("requestheader-uid-headers", "X-Their-Uid"),
        ("requestheader-group-headers", "X-Their-Group"),
        ("requestheader-extra-headers-prefix", "X-Their-Extra-"),
    ] {
        data.insert(key.to_owned(), format!("[{header:?}]"));
    }
    it.front.known.send_replace(Some(front_proxy(&data)));
    let mut client = it.front.connect(Some(it.front.proxy())).await;
    let headers = [
        ("X-Their-User", "ann"),
        ("X-Their-Group", "staff"),
        ("X-Their-Extra-Scopes", "few"),
        ("X-Remote-User", "admin"),
        ("X-Remote-Uid", "0"),
        ("X-Remote-Group", "system:masters"),
        ("X-Remote-Extra-Scopes", "all"),
        ("X-Remote-Extra-More", "all"),
    ];
    let mut answer = client.get(&log_path("ns", "b", ""), &headers).await;
    assert_eq!(answer.text().await, "one\n");
    let ann = User {
        name: "ann".to_owned(),
        uid: String::new(),
        groups: vec!["staff".to_owned()],
        extra: [("scopes".to_owned(), vec!["few".to_owned()])].into(),
    };
    assert_eq!(it.reader.cluster.asked_for(), [ann]);
}

#[tokio::test]
async fn a_query_does_not_lead_to_another_log() {
    let it = Fronted::start().await;
    it.reader.archive.line(&run_of("one"), "one");
    it.reader.cluster.put("ns", "other", a_box("two"));
    for query in [
        "/../../other/log",
        "&x=%0d%0aX-Remote-User:admin",
        "?/apis/output.boxes.run/v1alpha1/namespaces/ns/boxes/other/log",
    ] {
        assert_eq!(it.front.log("b", query).await.text().await, "one\n");
    }
}

#[test]
fn a_user_is_the_same_behind_a_front() {
    let ca = Authority::new("reader CA");
    let proxy = FrontProxy::ours(&ca.pem()).unwrap();
    let extra = |key: &str| (key.to_owned(), vec!["one".to_owned(), "änd two".to_owned()]);
    let keys = ["", "a", "A", "example.org/scope", "100%", "%2f", "ä", "x y"];
    let user = User {
        name: "änn: of/all".to_owned(),
        uid: "7".to_owned(),
        groups: vec!["b".to_owned(), "a".to_owned(), "b".to_owned()],
        extra: keys.map(extra).into(),
    };
    let seen = |headers: &HeaderMap| {
        let shown = ca.sign(FRONT, Kind::Client).chain;
        let now = rustls::pki_types::UnixTime::now();
        proxy.identify(&shown, headers, now).unwrap()
    };
    assert_eq!(seen(&user.headers().unwrap()), user);
    let plain = User {
        name: "ann".to_owned(),
        extra: BTreeMap::new(),
        ..User::default()
    };
    assert_eq!(plain.headers().unwrap().len(), 1);
    assert_eq!(seen(&plain.headers().unwrap()), plain);
}

#[test]
fn a_name_that_no_header_can_have_is_not_passed_on() {
    let user = User {
        name: "ann\r\nX-Remote-Group: system:masters".to_owned(),
        ..User::default()
    };
    assert!(user.headers().is_err());
}

#[tokio::test]
async fn a_user_may_be_in_very_many_groups() {
    let it = Fronted::start().await;
    let groups: Vec<String> = (0..2000)
        .map(|number| format!("{number}-{}", "g".repeat(60)))
        .collect();
    let mut headers = vec![("x-remote-user", "ann")];
    headers.extend(
        groups
            .iter()
            .map(|group| ("x-remote-group", group.as_str())),
    );
    let mut client = it.front.connect(Some(it.front.proxy())).await;
    let answer = client.get(&log_path("ns", "b", ""), &headers).await;
    assert_eq!(answer.code, StatusCode::OK);
    assert_eq!(it.reader.cluster.asked_for()[0].groups, groups);
}
