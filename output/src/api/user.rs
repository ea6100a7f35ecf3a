//! Who asks.

use std::collections::BTreeMap;

use serde::Serialize;

/// A user, as the API server authenticated it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct User {
    /// The name.
    pub(crate) name: String,
    /// The UID; often empty.
    pub(crate) uid: String,
    /// The groups.
    pub(crate) groups: Vec<String>,
    /// What else the authenticator said.
    pub(crate) extra: BTreeMap<String, Vec<String>>,
}
