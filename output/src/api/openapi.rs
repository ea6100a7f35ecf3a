//! The group's `OpenAPI` documents: one path.

use serde_json::{Value, json};

use super::route::{GROUP, VERSION};

/// The query parameters of a log request.
const PARAMETERS: [(&str, &str, &str); 13] = [
    ("follow", "boolean", "Go on until the output has ended."),
    ("stream", "string", "stdout, stderr or all."),
    ("tailLines", "integer", "Only so many lines from the end."),
    (
        "sinceTime",
        "string",
        "Begin at the first record logged at this time or later.",
    ),
    ("sinceSeconds", "integer", "Begin so many seconds ago."),
    (
        "timestamps",
        "boolean",
        "Begin each line with the time that it was logged at.",
    ),
    ("limitBytes", "integer", "End after so many bytes."),
    (
        "gaps",
        "string",
        "inline: a line of text where output is missing. only: the gaps as JSON lines.",
    ),
    (
        "from",
        "integer",
        "Begin at the entry of this number: the header X-Boxes-From of an earlier answer.",
    ),
    (
        "skipBytes",
        "integer",
        "Leave out so many bytes: what was received of an earlier answer.",
    ),
    ("uid", "string", "Answer only for the Box of this UID."),
    ("container", "string", "box, or absent."),
    ("previous", "boolean", "Refused: a Box has one run."),
];

const ABOUT: &str = "read the output of the specified Box";

/// `/openapi/v2`
pub(crate) fn v2() -> Value {
    let parameter = |name: &str, place: &str, type_: &str, about: &str| json!({"name": name, "in": place, "type": type_, "description": about, "required": place == "path", "uniqueItems": true});
    json!({
        "swagger": "2.0", "info": info(),
        "paths": {path(): {
            "get": operation(&json!({
                "produces": ["text/plain"],
                "responses": {"200": {"description": "OK", "schema": {"type": "string"}}},
            })),
            "parameters": parameters(parameter),
        }},
    })
}

/// `/openapi/v3`
pub(crate) fn v3_root() -> Value {
    let path = format!("apis/{GROUP}/{VERSION}");
    json!({"paths": {path.clone(): {"serverRelativeURL": format!("/openapi/v3/{path}")}}})
}

/// `/openapi/v3/apis/output.boxes.run/v1alpha1`
pub(crate) fn v3() -> Value {
    let parameter = |name: &str, place: &str, type_: &str, about: &str| json!({"name": name, "in": place, "schema": {"type": type_}, "description": about, "required": place == "path"});
    let content = json!({"text/plain": {"schema": {"type": "string"}}});
    json!({
        "openapi": "3.0.0", "info": info(),
        "paths": {path(): {
            "get": operation(&json!({"responses": {"200": {"description": "OK", "content": content}}})),
            "parameters": parameters(parameter),
        }},
    })
}

fn info() -> Value {
    json!({"title": "Output of Boxes", "version": VERSION})
}

fn path() -> String {
    format!("/apis/{GROUP}/{VERSION}/namespaces/{{namespace}}/boxes/{{name}}/log")
}

fn operation(rest: &Value) -> Value {
    let mut operation = rest.clone();
    operation["description"] = json!(ABOUT);
    operation["operationId"] = json!("readOutputBoxesRunV1alpha1NamespacedBoxLog");
    operation["tags"] = json!(["outputBoxesRun_v1alpha1"]);
    operation
}

fn parameters(parameter: impl Fn(&str, &str, &str, &str) -> Value) -> Vec<Value> {
    let path = [("name", "The Box."), ("namespace", "Its namespace.")];
    let path = path.map(|(name, about)| parameter(name, "path", "string", about));
    let query = PARAMETERS.map(|(name, type_, about)| parameter(name, "query", type_, about));
    path.into_iter().chain(query).collect()
}
