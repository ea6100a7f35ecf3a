//! What the API server asks about the group: one subresource and nothing else, so that no client
//! takes `boxes` for a resource of this group.

use axum::body::Body;
use axum::response::Response;
use http::{HeaderMap, HeaderValue, header};
use serde_json::{Value, json};

use super::route::{GROUP, VERSION};

/// The kind that `boxes/log` is listed with. There are no objects of it.
const KIND: &str = "BoxLog";
const JSON: &str = "application/json";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// `/apis`, in the form that is asked for.
pub(crate) fn groups(headers: &HeaderMap) -> Response {
    if wants_aggregated(headers) {
        return answer(AGGREGATED, &aggregated());
    }
    let list = json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [the_group()]});
    answer(JSON, &list)
}

/// `/apis/output.boxes.run`
pub(crate) fn group() -> Response {
    let mut group = the_group();
    group["kind"] = json!("APIGroup");
    group["apiVersion"] = json!("v1");
    answer(JSON, &group)
}

/// `/apis/output.boxes.run/v1alpha1`
pub(crate) fn resources() -> Response {
    let list = json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version(),
        "resources": [
            {"name": "boxes/log", "singularName": "", "namespaced": true, "kind": KIND, "verbs": ["get"]},
        ],
    });
    answer(JSON, &list)
}

/// An answer of this content.
pub(crate) fn answer(content_type: &'static str, content: &Value) -> Response {
    let mut response = Response::new(Body::from(content.to_string()));
    let content_type = HeaderValue::from_static(content_type);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type);
    response
}

/// An answer in plain JSON.
pub(crate) fn json_answer(content: &Value) -> Response {
    answer(JSON, content)
}

fn group_version() -> String {
    format!("{GROUP}/{VERSION}")
}

fn the_group() -> Value {
    let version = json!({"groupVersion": group_version(), "version": VERSION});
    json!({"name": GROUP, "versions": [version], "preferredVersion": version})
}

/// This form has no subresource without a resource around it; one without a kind is not listed.
fn aggregated() -> Value {
    let log = json!({
        "subresource": "log", "verbs": ["get"],
        "responseKind": {"group": GROUP, "version": VERSION, "kind": KIND},
    });
    let around = json!({
        "resource": "boxes", "scope": "Namespaced", "singularResource": "", "verbs": [],
        "responseKind": {"group": "", "version": "", "kind": ""}, "subresources": [log],
    });
    let version = json!({"version": VERSION, "freshness": "Current", "resources": [around]});
    let group =
        json!({"metadata": {"name": GROUP, "creationTimestamp": null}, "versions": [version]});
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {},
        "items": [group],
    })
}

fn wants_aggregated(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(is_aggregated)
}

fn is_aggregated(media: &str) -> bool {
    let parts: Vec<&str> = media.split(';').map(str::trim).collect();
    AGGREGATED.split(';').all(|part| parts.contains(&part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("application/json", false)]
    #[case("*/*", false)]
    #[case(
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        true
    )]
    #[case(
        "application/json; as=APIGroupDiscoveryList; v=v2; g=apidiscovery.k8s.io; profile=nopeer, application/json",
        true
    )]
    #[case(
        "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
        false
    )]
    #[case(
        "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        false
    )]
    fn the_aggregated_form_is_for_those_who_ask(
        #[case] accept: &'static str,
        #[case] wanted: bool,
    ) {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        assert_eq!(wants_aggregated(&headers), wanted);
    }
}
