//! Who asks.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;

/// Header: the name.
pub(crate) const NAME: &str = "x-remote-user";
/// Header: the UID.
pub(crate) const UID: &str = "x-remote-uid";
/// Header: a group.
pub(crate) const GROUP: &str = "x-remote-group";
/// What the names of headers with everything else begin with.
pub(crate) const EXTRA: &str = "x-remote-extra-";

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

impl User {
    /// The headers that tell the next server who asks: all that is known, and nothing else that came
    /// with the request.
    pub(crate) fn headers(&self) -> Result<HeaderMap, http::Error> {
        let mut headers = HeaderMap::new();
        headers.insert(NAME, value(&self.name)?);
        if !self.uid.is_empty() {
            headers.insert(UID, value(&self.uid)?);
        }
        for group in &self.groups {
            headers.append(GROUP, value(group)?);
        }
        for (key, values) in &self.extra {
            let name = HeaderName::try_from(format!("{EXTRA}{}", encode(key)))?;
            for text in values {
                headers.append(&name, value(text)?);
            }
        }
        Ok(headers)
    }
}

fn value(text: &str) -> Result<HeaderValue, http::Error> {
    Ok(HeaderValue::from_bytes(text.as_bytes())?)
}

/// A key as it may stand in the name of a header, which has no capital letters. Two keys never become
/// one.
fn encode(key: &str) -> String {
    let piece = |byte| match byte {
        b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' => char::from(byte).to_string(),
        _ => format!("%{byte:02x}"),
    };
    key.bytes().map(piece).collect()
}
