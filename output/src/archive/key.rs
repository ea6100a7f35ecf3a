//! Who output belongs to. Keys are UIDs, never names: a second box of the same name is another box.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A UID of the API server, checked before it becomes part of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Uid(String);

/// Longer than any UID that Kubernetes gives.
const LONGEST: usize = 64;

/// A text that is no UID.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no UID: letters, digits and single dashes, at most {LONGEST} characters")]
pub struct InvalidUid(String);

impl Uid {
    /// Takes a UID from a text.
    ///
    /// # Errors
    /// It has characters that no UID has, and that could lead out of a folder.
    pub fn parse(text: &str) -> Result<Self, InvalidUid> {
        let letters = text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let dashes = text.starts_with('-') || text.ends_with('-') || text.contains("--");
        if text.is_empty() || text.len() > LONGEST || !letters || dashes {
            return Err(InvalidUid(text.chars().take(LONGEST).collect()));
        }
        Ok(Self(text.to_owned()))
    }

    /// The UID as Kubernetes writes it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl TryFrom<String> for Uid {
    type Error = InvalidUid;

    fn try_from(text: String) -> Result<Self, InvalidUid> {
        Self::parse(&text)
    }
}

impl From<Uid> for String {
    fn from(uid: Uid) -> Self {
        uid.0
    }
}

/// One start of the box's container.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunKey {
    /// The Box.
    #[serde(rename = "box")]
    pub box_uid: Uid,
    /// Its pod.
    #[serde(rename = "pod")]
    pub pod_uid: Uid,
    /// How often the kubelet had restarted the container: 0 for a Box.
    pub restart: u32,
}

impl RunKey {
    /// The first start of a pod's container.
    #[must_use]
    pub const fn first(box_uid: Uid, pod_uid: Uid) -> Self {
        Self {
            box_uid,
            pod_uid,
            restart: 0,
        }
    }
}

impl fmt::Display for RunKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}/{}", self.box_uid, self.pod_uid, self.restart)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("0a1b2c3d-0000-4000-8000-123456789abc", true)]
    #[case("A", true)]
    #[case("", false)]
    #[case(".", false)]
    #[case("..", false)]
    #[case("a/b", false)]
    #[case("a\\b", false)]
    #[case("-a", false)]
    #[case("a--b", false)]
    #[case("a\0b", false)]
    #[case("ä", false)]
    #[case("a%2e", false)]
    fn only_uids_become_paths(#[case] text: &str, #[case] good: bool) {
        assert_eq!(Uid::parse(text).is_ok(), good, "{text:?}");
        assert!(Uid::parse(&"a".repeat(LONGEST + 1)).is_err());
    }
}
