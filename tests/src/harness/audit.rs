//! What the API server was asked, by its audit log.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

use super::controller::SERVICE_ACCOUNT;
use crate::cluster::Cluster;

/// The audit log of the test cluster.
#[derive(Debug, Clone)]
pub struct Audit {
    file: PathBuf,
}

/// One request that was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// `create`, `patch`, `get` and so on.
    pub verb: String,
    /// `boxes/status` and so on.
    pub resource: String,
    /// The name of the object; empty for a list.
    pub name: String,
    /// The status of the answer.
    pub code: u16,
}

impl Request {
    /// Whether it asked for a change.
    #[must_use]
    pub fn is_write(&self) -> bool {
        matches!(
            self.verb.as_str(),
            "create" | "update" | "patch" | "delete" | "deletecollection"
        )
    }

    /// Whether it was about a Box or a pod, and not an Event or a Lease.
    #[must_use]
    pub fn is_about_boxes_or_pods(&self) -> bool {
        let resource = self.resource.split('/').next().unwrap_or_default();
        matches!(resource, "boxes" | "pods")
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    stage: String,
    verb: String,
    user: User,
    object_ref: Option<ObjectRef>,
    response_status: Option<ResponseStatus>,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

#[derive(Deserialize)]
struct ObjectRef {
    #[serde(default)]
    resource: String,
    #[serde(default)]
    subresource: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct ResponseStatus {
    #[serde(default)]
    code: u16,
}

impl Audit {
    /// The log of this machine's test cluster, if that is the cluster of this kubeconfig.
    pub(super) fn of_this_machine(kubeconfig: &Path) -> Option<Self> {
        let cluster = Cluster::from_env(PathBuf::new()).ok()?;
        let file = cluster.audit_log();
        let same = cluster.kubeconfig().canonicalize().ok()? == kubeconfig.canonicalize().ok()?;
        (same && file.is_file()).then_some(Self { file })
    }

    /// What the controller asked in a namespace, oldest first.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn of_the_controller(&self, namespace: &str) -> Result<Vec<Request>> {
        let text = std::fs::read_to_string(&self.file).context("cannot read the audit log")?;
        let mentions = text.lines().filter(|line| line.contains(namespace));
        Ok(mentions.filter_map(|line| parse(line, namespace)).collect())
    }
}

/// An answered request of the controller in a namespace.
fn parse(line: &str, namespace: &str) -> Option<Request> {
    let line: Line = serde_json::from_str(line).ok()?;
    let object = line.object_ref?;
    let ours = line.user.username == SERVICE_ACCOUNT && object.namespace == namespace;
    let answered = line.stage == "ResponseComplete";
    let resource = match object.subresource.as_str() {
        "" => object.resource,
        sub => format!("{}/{sub}", object.resource),
    };
    let code = line.response_status.map_or(0, |status| status.code);
    (ours && answered).then_some(Request {
        verb: line.verb,
        resource,
        name: object.name,
        code,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"stage":"ResponseComplete","verb":"patch",
        "user":{"username":"system:serviceaccount:boxes-system:boxes-controller"},
        "objectRef":{"resource":"boxes","subresource":"status","namespace":"n","name":"it"},
        "responseStatus":{"metadata":{},"code":200}}"#;

    #[test]
    fn a_line_is_read() {
        let request = parse(LINE, "n").unwrap();
        assert_eq!(
            (request.resource.as_str(), request.code),
            ("boxes/status", 200)
        );
        assert!(request.is_write() && request.is_about_boxes_or_pods());
    }

    #[test]
    fn others_and_other_namespaces_are_left_out() {
        assert_eq!(parse(LINE, "m"), None);
        assert_eq!(
            parse(&LINE.replace("boxes-controller", "someone"), "n"),
            None
        );
        assert_eq!(
            parse(&LINE.replace("ResponseComplete", "ResponseStarted"), "n"),
            None
        );
    }
}
