//! Who asked the API server for what, counted from its audit log.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::harness::SERVICE_ACCOUNT;

/// The controller, as the counts name it.
pub(super) const CONTROLLER: &str = "controller";

/// How often each was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Requests(BTreeMap<Kind, Count>);

/// One kind of request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    /// `controller`, `scheduler` and so on.
    pub(super) who: &'static str,
    /// `create`, `patch`, `get` and so on.
    pub(super) verb: String,
    /// `boxes/status` and so on.
    pub(super) resource: String,
}

/// How often.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct Count {
    pub(super) asked: usize,
    /// Of these, answered with an error.
    pub(super) refused: usize,
}

impl Kind {
    pub(super) fn is_write(&self) -> bool {
        matches!(
            self.verb.as_str(),
            "create" | "update" | "patch" | "delete" | "deletecollection"
        )
    }
}

impl Requests {
    /// Those of the controller anywhere, and those of the others in a namespace, from a place in the
    /// log on.
    pub(super) fn read(log: &Path, from: u64, namespace: &str) -> Result<Self> {
        let mut file = File::open(log).context("cannot open the audit log")?;
        // A log that was begun anew is read from its start.
        let from = if file.metadata()?.len() < from {
            0
        } else {
            from
        };
        file.seek(SeekFrom::Start(from))?;
        let mut requests = Self::default();
        for line in BufReader::new(file).lines() {
            requests.count(&line?, namespace);
        }
        Ok(requests)
    }

    fn count(&mut self, line: &str, namespace: &str) {
        let Ok(line) = serde_json::from_str::<Line>(line) else {
            return;
        };
        let who = line.who();
        let object = line.object_ref.unwrap_or_default();
        let counts = who == CONTROLLER || object.namespace == namespace;
        if !counts || line.stage != "ResponseComplete" || line.verb == "watch" {
            return;
        }
        let kind = Kind {
            who,
            verb: line.verb,
            resource: match object.subresource.as_str() {
                "" => object.resource,
                sub => format!("{}/{sub}", object.resource),
            },
        };
        let count = self.0.entry(kind).or_default();
        count.asked += 1;
        count.refused += usize::from(line.response_status.code >= 400);
    }

    /// Every kind with its count.
    pub(super) fn all(&self) -> impl Iterator<Item = (&Kind, Count)> {
        self.0.iter().map(|(kind, count)| (kind, *count))
    }

    /// The controller's writes, but for its lease, which it renews by the clock.
    pub(super) fn writes(&self) -> impl Iterator<Item = (&Kind, Count)> {
        self.all().filter(|(kind, _)| {
            kind.who == CONTROLLER && kind.is_write() && kind.resource != "leases"
        })
    }
}

/// Where the audit log ends now.
pub(super) fn end_of(log: &Path) -> Result<u64> {
    let metadata = std::fs::metadata(log).context("there is no audit log")?;
    Ok(metadata.len())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    stage: String,
    verb: String,
    user: User,
    #[serde(default)]
    user_agent: String,
    object_ref: Option<ObjectRef>,
    #[serde(default)]
    response_status: ResponseStatus,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ObjectRef {
    resource: String,
    subresource: String,
    namespace: String,
}

#[derive(Deserialize, Default)]
struct ResponseStatus {
    #[serde(default)]
    code: u16,
}

impl Line {
    fn who(&self) -> &'static str {
        match self.user.username.as_str() {
            SERVICE_ACCOUNT => CONTROLLER,
            "system:kube-scheduler" => "scheduler",
            "system:kube-controller-manager" => "controller manager",
            "system:apiserver" => "API server",
            name if name.starts_with("system:serviceaccount:kube-system:") => "controller manager",
            name if name.starts_with("system:node:") => "kubelet",
            _ if self.user_agent.starts_with("kwok/") => "kwok",
            _ => "benchmark",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(user: &str, verb: &str, code: u16) -> String {
        format!(
            r#"{{"stage":"ResponseComplete","verb":"{verb}","user":{{"username":"{user}"}},
            "objectRef":{{"resource":"boxes","subresource":"status","namespace":"n"}},
            "responseStatus":{{"code":{code}}}}}"#
        )
    }

    #[test]
    fn the_controllers_writes_are_counted_apart() {
        let mut requests = Requests::default();
        requests.count(&line(SERVICE_ACCOUNT, "patch", 200), "n");
        requests.count(&line(SERVICE_ACCOUNT, "patch", 409), "n");
        requests.count(&line(SERVICE_ACCOUNT, "get", 200), "n");
        requests.count(&line("admin", "patch", 200), "n");
        let writes: Vec<_> = requests.writes().map(|(_, count)| count).collect();
        let expected = Count {
            asked: 2,
            refused: 1,
        };
        assert_eq!(writes, [expected]);
        assert_eq!(requests.all().count(), 3);
    }

    #[test]
    fn other_namespaces_are_left_out() {
        let mut requests = Requests::default();
        requests.count(&line("admin", "patch", 200), "m");
        assert_eq!(requests.all().count(), 0);
    }
}
