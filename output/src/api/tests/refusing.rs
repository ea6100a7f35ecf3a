//! What is refused, and how; and what the API server asks of every group.

use http::StatusCode;
use serde_json::Value;

use super::super::fake::{a_box, run_of};
use super::server::{TestServer, log_path};
use crate::archive::{Error, Stream};

const GROUP: &str = "/apis/output.boxes.run";

fn unavailable() -> Error {
    Error::Unavailable {
        message: "at https://secret.example".to_owned(),
    }
}

fn assert_status(status: &Value, code: StatusCode, reason: &str) {
    assert_eq!(status["kind"], "Status");
    assert_eq!(status["status"], "Failure");
    assert_eq!(status["code"], code.as_u16());
    assert_eq!(status["reason"], reason);
}

#[tokio::test]
async fn without_the_right_nothing_is_told_not_even_what_exists() {
    let server = TestServer::start().await;
    server.cluster.put("other", "b", a_box("one"));
    for name in ["b", "none"] {
        let mut answer = server.get(&log_path("other", name, "")).await;
        assert_eq!(answer.code, StatusCode::FORBIDDEN);
        let status = answer.json().await;
        assert_status(&status, StatusCode::FORBIDDEN, "Forbidden");
        let message = format!(
            "boxes.output.boxes.run \"{name}\" is forbidden: User \"ann\" cannot get resource \
             \"boxes/log\" in API group \"output.boxes.run\" in the namespace \"other\""
        );
        assert_eq!(status["message"], message);
    }
}

#[tokio::test]
async fn a_cluster_that_does_not_answer_lets_nobody_read() {
    let server = TestServer::start().await;
    server.cluster.put("ns", "b", a_box("one"));
    server.cluster.fall_silent();
    let mut answer = server.log("b", "").await;
    assert_status(
        &answer.json().await,
        StatusCode::SERVICE_UNAVAILABLE,
        "ServiceUnavailable",
    );
}

#[tokio::test]
async fn a_box_that_does_not_exist_is_not_found() {
    let server = TestServer::start().await;
    let mut answer = server.log("none", "").await;
    let status = answer.json().await;
    assert_status(&status, StatusCode::NOT_FOUND, "NotFound");
    assert_eq!(status["message"], "boxes.boxes.run \"none\" not found");
}

#[tokio::test]
async fn a_wrong_parameter_is_named() {
    let server = TestServer::start().await;
    let mut answer = server.log("b", "tailLines=-1").await;
    let status = answer.json().await;
    assert_status(&status, StatusCode::BAD_REQUEST, "BadRequest");
    assert_eq!(status["message"], "tailLines: must be at least 0");
    assert_eq!(status["details"]["causes"][0]["field"], "tailLines");
}

#[tokio::test]
async fn an_archive_that_is_down_is_said_for_each_request() {
    let server = TestServer::start().await;
    server.cluster.put("ns", "b", a_box("one"));
    for query in ["", "follow=true"] {
        server.archive.fail(Some(unavailable()));
        let mut answer = server.log("b", query).await;
        let status = answer.json().await;
        assert_status(
            &status,
            StatusCode::SERVICE_UNAVAILABLE,
            "ServiceUnavailable",
        );
        assert_eq!(status["message"], "the archive is not available");
        server.archive.fail(None);
        server.archive.end(&run_of("one"));
        assert_eq!(server.log("b", query).await.code, StatusCode::OK);
    }
    assert_eq!(server.get(GROUP).await.code, StatusCode::OK);
}

#[tokio::test]
async fn an_archive_that_hangs_or_is_corrupt_is_said() {
    let server = TestServer::start().await;
    server.cluster.put("ns", "b", a_box("one"));
    let corrupt = Error::Corrupt {
        what: "x".to_owned(),
        message: "y".to_owned(),
    };
    server.archive.fail(Some(corrupt));
    let mut answer = server.log("b", "").await;
    assert_status(
        &answer.json().await,
        StatusCode::INTERNAL_SERVER_ERROR,
        "InternalError",
    );
    let newer = Error::UnknownVersion {
        what: "x".to_owned(),
        version: 2,
    };
    server.archive.fail(Some(newer));
    let status = server.log("b", "").await.json().await;
    assert_status(&status, StatusCode::INTERNAL_SERVER_ERROR, "InternalError");
    let message = status["message"].as_str().unwrap();
    assert!(message.contains("another version of Boxes"), "{message}");
    server.archive.fail(None);
    server.archive.hang();
    let mut answer = server.log("b", "").await;
    assert_status(
        &answer.json().await,
        StatusCode::SERVICE_UNAVAILABLE,
        "ServiceUnavailable",
    );
    assert_eq!((server.cx.slots.taken(), server.archive.reads()), (0, 0));
}

#[tokio::test]
async fn there_is_room_for_so_many_reads() {
    let server = TestServer::start().await;
    server.cluster.put("ns", "b", a_box("one"));
    server
        .archive
        .write(&run_of("one"), Stream::Stdout, b"x", false);
    let _first = server.log("b", "follow=true").await;
    let _second = server.log("b", "follow=true").await;
    let mut third = server.log("b", "").await;
    assert_eq!(third.header("retry-after"), Some("1"));
    let status = third.json().await;
    assert_status(&status, StatusCode::TOO_MANY_REQUESTS, "TooManyRequests");
    assert_eq!(status["details"]["retryAfterSeconds"], 1);
}

#[tokio::test]
async fn forged_names_lead_nowhere() {
    let server = TestServer::start().await;
    server.cluster.put("ns", "b", a_box("one"));
    let long = "a".repeat(5000);
    let names = [
        "..",
        "%2e%2e",
        "..%2F..%2Fother",
        "b%2F..%2Fb",
        "b%00",
        "%00",
        "B",
        "b%0a",
        &long,
    ];
    for name in names {
        for path in [log_path("ns", name, ""), log_path(name, "b", "")] {
            let mut answer = server.get(&path).await;
            assert_status(&answer.json().await, StatusCode::NOT_FOUND, "NotFound");
        }
    }
    assert_eq!(server.cluster.reviews(), 0);
}

#[tokio::test]
async fn the_group_lists_one_subresource() {
    let server = TestServer::start().await;
    let list = server
        .get("/apis/output.boxes.run/v1alpha1")
        .await
        .json()
        .await;
    let resources = list["resources"].as_array().unwrap();
    assert_eq!(resources.len(), 1);
    assert_eq!(resources[0]["name"], "boxes/log");
    assert_eq!(resources[0]["verbs"], serde_json::json!(["get"]));
    assert_eq!(resources[0]["namespaced"], true);
    let group = server.get(GROUP).await.json().await;
    assert_eq!(
        group["preferredVersion"]["groupVersion"],
        "output.boxes.run/v1alpha1"
    );
    let groups = server.get("/apis").await.json().await;
    assert_eq!(groups["kind"], "APIGroupList");
}

#[tokio::test]
async fn aggregated_discovery_is_given_to_those_who_ask() {
    let server = TestServer::start().await;
    let mut client = server.connect(Some(server.proxy())).await;
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let headers = [
        ("X-Remote-User", "system:kube-aggregator"),
        ("Accept", accept),
    ];
    let mut answer = client.get("/apis", &headers).await;
    assert_eq!(answer.header("content-type"), Some(accept));
    let list = answer.json().await;
    let resource = &list["items"][0]["versions"][0]["resources"][0];
    assert_eq!(resource["verbs"], serde_json::json!([]));
    assert_eq!(resource["subresources"][0]["subresource"], "log");
}

#[tokio::test]
async fn open_api_documents_name_one_path() {
    let server = TestServer::start().await;
    let path = "/apis/output.boxes.run/v1alpha1/namespaces/{namespace}/boxes/{name}/log";
    let two = server.get("/openapi/v2").await.json().await;
    assert!(two["paths"][path]["get"]["operationId"].is_string());
    let root = server.get("/openapi/v3").await.json().await;
    let url = &root["paths"]["apis/output.boxes.run/v1alpha1"]["serverRelativeURL"];
    let three = server.get(url.as_str().unwrap()).await.json().await;
    assert!(three["paths"][path]["parameters"].as_array().unwrap().len() > 10);
    let mut nothing = server.get("/openapi/v3/apis/boxes.run/v1alpha1").await;
    let status = nothing.json().await;
    assert_status(&status, StatusCode::NOT_FOUND, "NotFound");
    assert_eq!(
        status["message"],
        "the server could not find the requested resource"
    );
}
