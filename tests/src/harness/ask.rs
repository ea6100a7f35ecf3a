//! One request of a controller, as the API server would read it.

use boxes_crds::POD_FINALIZER;
use http::{Method, Uri};
use serde_json::Value;

/// A request to the API server.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// `get`, `list`, `watch`, `create`, `update`, `patch` or `delete`.
    pub verb: &'static str,
    /// `pods`, `boxes/status` and so on.
    pub resource: String,
    /// Empty for what has none.
    pub namespace: String,
    /// The name of the object; empty for a list or a creation.
    pub name: String,
    /// What is to be written; null for a read.
    pub body: Value,
}

impl Ask {
    pub(super) fn read(method: &Method, uri: &Uri, body: &[u8]) -> Self {
        let mut words = uri.path().split('/').filter(|word| !word.is_empty());
        // `/api/v1/…` or `/apis/group/version/…`
        let groups = usize::from(words.next() == Some("apis")) + 1;
        let mut words: Vec<_> = words.skip(groups).collect();
        let mut namespace = String::new();
        if words.len() > 2 && words.first() == Some(&"namespaces") {
            words.remove(0);
            words.remove(0).clone_into(&mut namespace);
        }
        let mut words = words.into_iter();
        let kind = words.next().unwrap_or_default();
        let name = words.next().unwrap_or_default().to_owned();
        let resource = words
            .next()
            .map_or_else(|| kind.to_owned(), |sub| format!("{kind}/{sub}"));
        let watches = uri
            .query()
            .is_some_and(|query| query.split('&').any(|it| it == "watch=true"));
        let verb = match (method.as_str(), watches) {
            ("GET", true) => "watch",
            ("GET", false) if name.is_empty() => "list",
            ("GET", false) => "get",
            ("POST", _) => "create",
            ("PUT", _) => "update",
            ("DELETE", _) => "delete",
            _ => "patch",
        };
        Self {
            verb,
            resource,
            namespace,
            name,
            body: serde_json::from_slice(body).unwrap_or_default(),
        }
    }

    /// Whether it only looks.
    #[must_use]
    pub fn is_read(&self) -> bool {
        matches!(self.verb, "get" | "list" | "watch")
    }

    /// Whether it writes to Boxes or pods, and not to Events or leases.
    #[must_use]
    pub fn is_write_to_boxes_or_pods(&self) -> bool {
        let kind = self.resource.split('/').next().unwrap_or_default();
        !self.is_read() && matches!(kind, "boxes" | "pods")
    }

    /// Whether it writes a status with an ending.
    #[must_use]
    pub fn writes_an_ending(&self) -> bool {
        let reason = self.body.pointer("/status/reason");
        self.resource == "boxes/status" && reason.is_some_and(Value::is_string)
    }

    /// Whether it takes our finalizer off a pod.
    #[must_use]
    pub fn releases_a_pod(&self) -> bool {
        let kept = self.body.pointer("/metadata/finalizers");
        let kept = kept.and_then(Value::as_array);
        self.resource == "pods" && kept.is_some_and(|all| all.iter().all(|it| it != POD_FINALIZER))
    }

    /// Whether it takes something away that a mistake could not give back: a deletion, a stop, a
    /// finalizer, or an ending that is recorded.
    #[must_use]
    pub fn is_destructive(&self) -> bool {
        let takes = match self.resource.as_str() {
            "pods" => matches!(self.verb, "patch" | "update" | "delete"),
            "boxes" => {
                self.verb == "delete"
                    || self
                        .body
                        .pointer("/metadata/finalizers")
                        .and_then(Value::as_array)
                        .is_some_and(|all| all.iter().all(|it| it != boxes_crds::BOX_FINALIZER))
            }
            _ => false,
        };
        takes || self.writes_an_ending()
    }

    /// One line about it, for messages.
    #[must_use]
    pub fn line(&self) -> String {
        let Self {
            verb,
            resource,
            namespace,
            name,
            body,
        } = self;
        format!("{verb} {resource} {namespace}/{name} {body}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(method: &str, uri: &str, body: &str) -> Ask {
        let method = method.parse().unwrap();
        Ask::read(&method, &uri.parse().unwrap(), body.as_bytes())
    }

    #[test]
    fn paths_are_read() {
        let read = |method, uri| {
            let it = ask(method, uri, "");
            (it.verb, it.resource, it.namespace, it.name)
        };
        let expected = |verb, resource: &str, namespace: &str, name: &str| {
            (
                verb,
                resource.to_owned(),
                namespace.to_owned(),
                name.to_owned(),
            )
        };
        for (method, uri, it) in [
            (
                "GET",
                "/api/v1/namespaces/n/pods/p",
                expected("get", "pods", "n", "p"),
            ),
            (
                "GET",
                "/api/v1/namespaces/n",
                expected("get", "namespaces", "", "n"),
            ),
            ("GET", "/api/v1/nodes/n", expected("get", "nodes", "", "n")),
            (
                "GET",
                "/api/v1/pods?limit=500",
                expected("list", "pods", "", ""),
            ),
            (
                "GET",
                "/api/v1/pods?watch=true&x=y",
                expected("watch", "pods", "", ""),
            ),
            (
                "POST",
                "/api/v1/namespaces/n/pods",
                expected("create", "pods", "n", ""),
            ),
            (
                "PATCH",
                "/apis/boxes.run/v1alpha1/namespaces/n/boxes/b/status?force=true",
                expected("patch", "boxes/status", "n", "b"),
            ),
            (
                "DELETE",
                "/apis/boxes.run/v1alpha1/namespaces/n/boxes/b",
                expected("delete", "boxes", "n", "b"),
            ),
        ] {
            assert_eq!(read(method, uri), it, "{method} {uri}");
        }
    }

    #[test]
    fn what_takes_something_away_is_told_from_what_does_not() {
        const POD: &str = "/api/v1/namespaces/n/pods/p";
        const BOX: &str = "/apis/boxes.run/v1alpha1/namespaces/n/boxes/b";
        let status = format!("{BOX}/status");
        for (method, uri, body, expected) in [
            ("DELETE", POD, "{}", true),
            (
                "PATCH",
                POD,
                r#"{"spec":{"activeDeadlineSeconds":1}}"#,
                true,
            ),
            ("PATCH", POD, r#"{"metadata":{"finalizers":[]}}"#, true),
            (
                "PATCH",
                BOX,
                r#"{"metadata":{"finalizers":["boxes.run/record"]}}"#,
                false,
            ),
            ("PATCH", BOX, r#"{"metadata":{"finalizers":[]}}"#, true),
            ("DELETE", BOX, "{}", true),
            ("PATCH", &status, r#"{"status":{"state":"Running"}}"#, false),
            ("PATCH", &status, r#"{"status":{"reason":"Exit"}}"#, true),
            ("GET", POD, "", false),
        ] {
            assert_eq!(
                ask(method, uri, body).is_destructive(),
                expected,
                "{method} {uri} {body}"
            );
        }
    }
}
