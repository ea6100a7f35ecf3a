//! Who is believed.

use http::{Method, StatusCode};
use serde_json::json;

use super::super::fake::a_box;
use super::super::test_certificates::{Authority, Identity, Kind};
use super::client::Client;
use super::server::{PROXY, TestServer, config_map, front_proxy, log_path};

const ANN: [(&str, &str); 2] = [("X-Remote-User", "ann"), ("X-Remote-Group", "staff")];
const DISCOVERY: &str = "/apis/output.boxes.run/v1alpha1";

async fn code(server: &TestServer, identity: Option<Identity>) -> StatusCode {
    server
        .connect(identity)
        .await
        .get(DISCOVERY, &ANN)
        .await
        .code
}

#[tokio::test]
async fn only_the_api_servers_certificate_speaks_for_users() {
    let server = TestServer::start().await;
    let other = Authority::new("request header CA");
    let strangers = [
        None,
        Some(server.ca.sign("somebody", Kind::Client)),
        Some(server.ca.sign("", Kind::Client)),
        Some(other.sign(PROXY, Kind::Client)),
        Some(server.ca.sign(PROXY, Kind::Expired)),
        Some(server.ca.sign(PROXY, Kind::NotYet)),
        Some(server.ca.sign(PROXY, Kind::ServerOnly)),
    ];
    assert_eq!(code(&server, Some(server.proxy())).await, StatusCode::OK);
    for stranger in strangers {
        assert_eq!(code(&server, stranger).await, StatusCode::UNAUTHORIZED);
    }
}

#[tokio::test]
async fn a_stranger_gets_a_status_and_nothing_else() {
    let server = TestServer::start().await;
    server.cluster.put("ns", "b", a_box("one"));
    let mut client = server.connect(None).await;
    for path in [
        log_path("ns", "b", ""),
        "/".into(),
        "/apis".into(),
        "/openapi/v2".into(),
    ] {
        let mut answer = client.get(&path, &ANN).await;
        let expected = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "Unauthorized", "reason": "Unauthorized", "code": 401,
        });
        assert_eq!(answer.json().await, expected);
        assert_eq!(answer.header("content-type"), Some("application/json"));
    }
    assert_eq!(server.cluster.reviews(), 0);
}

#[tokio::test]
async fn a_proxy_that_names_nobody_is_refused() {
    let server = TestServer::start().await;
    let mut client = server.connect(Some(server.proxy())).await;
    for headers in [
        &[][..],
        &[("X-Remote-User", "")],
        &[("X-Remote-Group", "system:masters")],
    ] {
        let answer = client.get(DISCOVERY, headers).await;
        assert_eq!(answer.code, StatusCode::UNAUTHORIZED);
    }
}

#[tokio::test]
async fn without_allowed_names_any_name_of_the_ca_is_good() {
    let server = TestServer::start().await;
    let mut data = config_map(&server.ca);
    data.insert("requestheader-allowed-names".into(), "[]".into());
    server.known.send_replace(Some(front_proxy(&data)));
    let somebody = server.ca.sign("somebody", Kind::Client);
    assert_eq!(code(&server, Some(somebody)).await, StatusCode::OK);
    let other = Authority::new("other").sign("somebody", Kind::Client);
    assert_eq!(code(&server, Some(other)).await, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_new_ca_holds_for_connections_that_are_open() {
    let server = TestServer::start().await;
    let mut old = server.connect(Some(server.proxy())).await;
    assert_eq!(old.get(DISCOVERY, &ANN).await.code, StatusCode::OK);
    let next = Authority::new("next");
    server
        .known
        .send_replace(Some(front_proxy(&config_map(&next))));
    assert_eq!(
        old.get(DISCOVERY, &ANN).await.code,
        StatusCode::UNAUTHORIZED
    );
    let new = next.sign(PROXY, Kind::Client);
    assert_eq!(code(&server, Some(new)).await, StatusCode::OK);
}

#[tokio::test]
async fn two_cas_may_stand_side_by_side() {
    let server = TestServer::start().await;
    let next = Authority::new("next");
    let mut data = config_map(&server.ca);
    data.insert(
        "requestheader-client-ca-file".into(),
        server.ca.pem() + &next.pem(),
    );
    server.known.send_replace(Some(front_proxy(&data)));
    for ca in [&server.ca, &next] {
        let identity = ca.sign(PROXY, Kind::Client);
        assert_eq!(code(&server, Some(identity)).await, StatusCode::OK);
    }
}

#[tokio::test]
async fn before_the_config_map_is_known_nobody_is_let_in() {
    let server = TestServer::start().await;
    server.known.send_replace(None);
    let refused = code(&server, Some(server.proxy())).await;
    assert_eq!(refused, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn both_versions_of_http_are_spoken() {
    let server = TestServer::start().await;
    for two in [false, true] {
        let proxy = Some(server.proxy());
        let mut client = Client::connect(server.address, &server.root, proxy, two).await;
        let mut answer = client.get(DISCOVERY, &ANN).await;
        assert_eq!(answer.json().await["resources"][0]["name"], "boxes/log");
        let put = client.send(Method::PUT, DISCOVERY, &ANN).await;
        assert_eq!(put.code, StatusCode::METHOD_NOT_ALLOWED);
    }
}

#[tokio::test]
async fn the_whole_identity_is_asked_about() {
    let server = TestServer::start().await;
    let headers = [
        ("x-remote-user", "ann"),
        ("x-remote-uid", "7"),
        ("x-remote-group", "a"),
        ("x-remote-group", "b"),
        ("x-remote-extra-example.org%2fscope", "one"),
        ("x-remote-extra-example.org%2fscope", "two"),
        ("x-remote-extrapolation", "no"),
    ];
    let identity = server.proxy();
    let mut map = http::HeaderMap::new();
    for (name, value) in headers {
        map.append(name, value.parse().unwrap());
    }
    let user = server.cx.identify(&identity.chain, &map).unwrap();
    assert_eq!((user.name.as_str(), user.uid.as_str()), ("ann", "7"));
    assert_eq!(user.groups, ["a", "b"]);
    let extra = vec!["one".to_owned(), "two".to_owned()];
    assert_eq!(user.extra, [("example.org/scope".to_owned(), extra)].into());
}

#[tokio::test]
async fn a_name_that_is_not_text_is_nobody() {
    let server = TestServer::start().await;
    let mut map = http::HeaderMap::new();
    map.insert(
        "x-remote-user",
        http::HeaderValue::from_bytes(b"ann\xff").unwrap(),
    );
    assert!(server.cx.identify(&server.proxy().chain, &map).is_err());
    map.insert(
        "x-remote-user",
        http::HeaderValue::from_bytes("änn".as_bytes()).unwrap(),
    );
    assert_eq!(
        server
            .cx
            .identify(&server.proxy().chain, &map)
            .unwrap()
            .name,
        "änn"
    );
}

#[tokio::test]
async fn a_user_may_be_in_very_many_groups() {
    let server = TestServer::start().await;
    let groups: Vec<String> = (0..2000)
        .map(|number| format!("{number}-{}", "g".repeat(60)))
        .collect();
    let mut headers = vec![("x-remote-user", "ann")];
    headers.extend(
        groups
            .iter()
            .map(|group| ("x-remote-group", group.as_str())),
    );
    for two in [false, true] {
        let proxy = Some(server.proxy());
        let mut client = Client::connect(server.address, &server.root, proxy, two).await;
        assert_eq!(client.get(DISCOVERY, &headers).await.code, StatusCode::OK);
    }
}
