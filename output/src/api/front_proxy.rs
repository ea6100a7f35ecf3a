//! Who asks, by the word of the server in front: the API server, or our own front.
//!
//! The aggregator of the API server authenticates users, removes any identity headers that they
//! sent, sets its own, and proves itself with a client certificate. So a header counts only if the
//! connection brought a certificate that the request-header CA signed, that is valid now and for
//! clients, and whose common name is allowed. The `client-ca` of the same `ConfigMap` is not read:
//! users never reach this server with certificates of their own, and there are no tokens either.
//!
//! Nothing here is compared with a secret, so nothing needs constant time: TLS proves possession of
//! the certificate's key, and names and CAs are public.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use http::{HeaderMap, HeaderValue};
use percent_encoding::percent_decode_str;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::tls::{provider, roots};
use super::user::{self, User};

/// What is known about the front proxy.
pub(crate) struct FrontProxy {
    verifier: Arc<dyn ClientCertVerifier>,
    allowed_names: Vec<String>,
    name_headers: Vec<String>,
    uid_headers: Vec<String>,
    group_headers: Vec<String>,
    extra_prefixes: Vec<String>,
}

/// Why the `ConfigMap` cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} of the authentication ConfigMap: {problem}")]
pub(crate) struct Unusable {
    key: &'static str,
    problem: String,
}

/// Why nobody is taken for authenticated. For logs; clients are not told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stranger {
    NoCertificate,
    Untrusted,
    OtherName,
    NoUser,
    Unreadable,
}

impl Stranger {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::NoCertificate => "no client certificate",
            Self::Untrusted => {
                "the client certificate is not valid or not of the request-header CA"
            }
            Self::OtherName => "the client certificate's common name is not allowed",
            Self::NoUser => "no user header",
            Self::Unreadable => "an identity header is not UTF-8",
        }
    }
}

const CA: &str = "requestheader-client-ca-file";

/// Common name of the front's client certificate: that of no other which its authority signed.
pub(crate) const FRONT: &str = "boxes-log-api";

impl FrontProxy {
    /// Reads the data of `ConfigMap` `kube-system/extension-apiserver-authentication`.
    ///
    /// # Errors
    /// It has no CA, or something in it cannot be read.
    pub(crate) fn new(data: &BTreeMap<String, String>) -> Result<Self, Unusable> {
        let headers = |key| Ok(lowercase(list(data, key)?));
        let unusable = |problem| Unusable { key: CA, problem };
        Ok(Self {
            verifier: verifier(data.get(CA).map_or("", String::as_str)).map_err(unusable)?,
            allowed_names: list(data, "requestheader-allowed-names")?,
            name_headers: headers("requestheader-username-headers")?,
            uid_headers: headers("requestheader-uid-headers")?,
            group_headers: headers("requestheader-group-headers")?,
            extra_prefixes: headers("requestheader-extra-headers-prefix")?,
        })
    }

    /// Our own front, by the authority (PEM) that signed its certificate: for a server that is behind
    /// no API server.
    ///
    /// # Errors
    /// There is no authority in it, or it cannot be read.
    pub(crate) fn ours(ca: &str) -> Result<Self, String> {
        let only = |name: &str| vec![name.to_owned()];
        Ok(Self {
            verifier: verifier(ca)?,
            allowed_names: only(FRONT),
            name_headers: only(user::NAME),
            uid_headers: only(user::UID),
            group_headers: only(user::GROUP),
            extra_prefixes: only(user::EXTRA),
        })
    }

    /// The user of a request that came over a connection with these certificates.
    pub(crate) fn identify(
        &self,
        certificates: &[CertificateDer<'_>],
        headers: &HeaderMap,
        now: UnixTime,
    ) -> Result<User, Stranger> {
        self.verify(certificates, now)?;
        let name = first(headers, &self.name_headers)?;
        if name.is_empty() {
            return Err(Stranger::NoUser);
        }
        Ok(User {
            name,
            uid: first(headers, &self.uid_headers)?,
            groups: self.groups(headers)?,
            extra: self.extra(headers)?,
        })
    }

    /// Whether these certificates prove that somebody is the front proxy.
    pub(crate) fn verify(
        &self,
        certificates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Stranger> {
        let (own, between) = certificates.split_first().ok_or(Stranger::NoCertificate)?;
        self.verifier
            .verify_client_cert(own, between, now)
            .map_err(|_| Stranger::Untrusted)?;
        if self.allowed_names.is_empty() {
            return Ok(());
        }
        let name = common_name(own).ok_or(Stranger::OtherName)?;
        if self.allowed_names.contains(&name) {
            Ok(())
        } else {
            Err(Stranger::OtherName)
        }
    }

    fn groups(&self, headers: &HeaderMap) -> Result<Vec<String>, Stranger> {
        let values = self
            .group_headers
            .iter()
            .flat_map(|header| headers.get_all(header));
        values.filter(|value| !value.is_empty()).map(text).collect()
    }

    fn extra(&self, headers: &HeaderMap) -> Result<BTreeMap<String, Vec<String>>, Stranger> {
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for prefix in &self.extra_prefixes {
            for (header, value) in headers {
                if let Some(key) = header.as_str().strip_prefix(prefix) {
                    extra.entry(decode(key)).or_default().push(text(value)?);
                }
            }
        }
        Ok(extra)
    }
}

impl fmt::Debug for FrontProxy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("FrontProxy")
            .field("allowed_names", &self.allowed_names)
            .finish_non_exhaustive()
    }
}

fn verifier(pem: &str) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let roots = Arc::new(roots(pem.as_bytes())?);
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider()).build();
    verifier.map_err(|error| error.to_string())
}

/// A list that the `ConfigMap` holds as JSON; empty if it has no such key.
fn list(data: &BTreeMap<String, String>, key: &'static str) -> Result<Vec<String>, Unusable> {
    match data.get(key).map(String::as_str) {
        None | Some("") => Ok(Vec::new()),
        Some(json) => serde_json::from_str(json).map_err(|error| Unusable {
            key,
            problem: error.to_string(),
        }),
    }
}

fn lowercase(names: Vec<String>) -> Vec<String> {
    let lower = |name: String| name.trim().to_ascii_lowercase();
    // An empty prefix would take every header for an identity's.
    names
        .into_iter()
        .map(lower)
        .filter(|name| !name.is_empty())
        .collect()
}

fn common_name(certificate: &CertificateDer<'_>) -> Option<String> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let name = parsed.subject().iter_common_name().last()?;
    name.as_str().ok().map(str::to_owned)
}

/// The first of these headers that has a value.
fn first(headers: &HeaderMap, names: &[String]) -> Result<String, Stranger> {
    let mut values = names.iter().filter_map(|name| headers.get(name));
    let value = values.find(|value| !value.is_empty());
    value.map_or_else(|| Ok(String::new()), text)
}

/// Bytes that are not UTF-8 could make two users one, so they are nobody's name.
fn text(value: &HeaderValue) -> Result<String, Stranger> {
    let text = std::str::from_utf8(value.as_bytes()).map_err(|_| Stranger::Unreadable)?;
    Ok(text.to_owned())
}

/// The key of an extra header; as it stands, if it is not well encoded.
fn decode(key: &str) -> String {
    let escapes = key.split('%').skip(1);
    let hex = |escape: &str| {
        let digits = escape.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    if !escapes.into_iter().all(hex) {
        return key.to_owned();
    }
    let decoded = percent_decode_str(key).decode_utf8();
    decoded.map_or_else(|_| key.to_owned(), Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("scopes", "scopes")]
    #[case("example.org%2fscope", "example.org/scope")]
    #[case("100%", "100%")]
    #[case("%2f%zz", "%2f%zz")]
    #[case("%ff", "%ff")]
    fn keys_of_extra_headers(#[case] key: &str, #[case] decoded: &str) {
        assert_eq!(decode(key), decoded);
    }

    #[test]
    fn a_config_map_without_a_ca_lets_nobody_in() {
        let problem = FrontProxy::new(&BTreeMap::new()).unwrap_err();
        assert_eq!(problem.key, CA);
    }

    #[test]
    fn an_empty_header_name_is_none() {
        assert_eq!(
            lowercase(vec![" ".into(), "X-Remote-User".into()]),
            ["x-remote-user"]
        );
    }
}
