//! Answers that say no, each a `metav1.Status`.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};

use super::names::Target;
use super::route::GROUP;
use super::user::User;

/// How long a client that was refused for what soon passes is to wait.
const RETRY_SECONDS: u32 = 1;

/// A request that is not fulfilled.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    code: StatusCode,
    reason: &'static str,
    message: String,
    details: Option<Value>,
    retry: bool,
}

impl Failure {
    fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: None,
            retry: false,
        }
    }

    /// Nothing proves who asks. The answer does not say what was wrong.
    pub(crate) fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    /// The user may not read this output, whether or not it exists.
    pub(crate) fn forbidden(user: &User, target: &Target, why: Option<&str>) -> Self {
        let Target { namespace, name } = target;
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        let message = format!(
            "boxes.{GROUP} {name:?} is forbidden: User {:?} cannot get resource \"boxes/log\" in API \
             group \"{GROUP}\" in the namespace {namespace:?}{why}",
            user.name
        );
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message).about(GROUP, name)
    }

    /// There is no such path.
    pub(crate) fn no_such_path() -> Self {
        let message = "the server could not find the requested resource";
        Self::new(StatusCode::NOT_FOUND, "NotFound", message)
    }

    /// There is no such Box.
    pub(crate) fn no_such_box(target: &Target) -> Self {
        let message = format!("boxes.boxes.run {:?} not found", target.name);
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).about("boxes.run", &target.name)
    }

    /// There is a Box of this name, but not the one that was meant.
    pub(crate) fn another_box(target: &Target, uid: &str) -> Self {
        let message = format!(
            "the Box {:?} is not the one that was asked for: its UID is {uid}",
            target.name
        );
        Self::new(StatusCode::CONFLICT, "Conflict", message).about("boxes.run", &target.name)
    }

    /// Only reading is possible.
    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
    }

    /// A query parameter is wrong.
    pub(crate) fn parameter(name: &str, problem: &str) -> Self {
        let mut failure = Self::new(
            StatusCode::BAD_REQUEST,
            "BadRequest",
            format!("{name}: {problem}"),
        );
        failure.details = Some(json!({"causes": [
            {"reason": "FieldValueInvalid", "message": problem, "field": name}
        ]}));
        failure
    }

    /// Something that is needed cannot be reached now.
    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "ServiceUnavailable",
            message,
        )
    }

    /// The server that has the output cannot be reached now. Another of its replicas may answer soon.
    pub(crate) fn out_of_reach(message: impl Into<String>) -> Self {
        Self::unavailable(message).soon()
    }

    /// What is there cannot be used.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
    }

    /// As much is being read as this server allows.
    pub(crate) fn too_many(whose: &str) -> Self {
        let message = format!("too many logs are being read {whose}, please try again later");
        Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message).soon()
    }

    /// Says when to try again.
    fn soon(mut self) -> Self {
        self.details = Some(json!({"retryAfterSeconds": RETRY_SECONDS}));
        self.retry = true;
        self
    }

    fn about(mut self, group: &str, name: &str) -> Self {
        self.details = Some(json!({"name": name, "group": group, "kind": "boxes"}));
        self
    }

    /// The HTTP status.
    pub(crate) const fn code(&self) -> StatusCode {
        self.code
    }

    fn body(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "code": self.code.as_u16(),
        });
        if let Some(details) = &self.details {
            status["details"] = details.clone();
        }
        status
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.body().to_string()));
        *response.status_mut() = self.code;
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if self.retry {
            headers.insert(header::RETRY_AFTER, RETRY_SECONDS.into());
        }
        response
    }
}
