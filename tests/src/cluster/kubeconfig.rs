//! Kubeconfig files that carry their certificates.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::layout::Layout;
use super::pki::{Authority, Pki, USERS, write_secret};
use super::{address, yaml};

/// The file of one of the cluster's own users.
pub(crate) fn path(layout: &Layout, user: &str) -> PathBuf {
    match user {
        "admin" => layout.kubeconfig(),
        other => layout.config().join(format!("{other}.kubeconfig")),
    }
}

/// Writes the kubeconfig of every user that has a certificate.
pub(crate) fn create_all(layout: &Layout, pki: &Pki) -> Result<()> {
    let authority = read(&pki.certificate(Authority::Cluster.name()))?;
    for user in USERS {
        let certificate = read(&pki.certificate(user))?;
        let key = read(&pki.key(user))?;
        let config = render(&address::api_url(), user, &authority, &certificate, &key);
        write_secret(&path(layout, user), &yaml(&config)?)?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<ByteString> {
    fs::read(path)
        .map(ByteString)
        .with_context(|| format!("cannot read {}", path.display()))
}

fn render(
    server: &str,
    user: &str,
    authority: &ByteString,
    certificate: &ByteString,
    key: &ByteString,
) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": "boxes",
            "cluster": {"server": server, "certificate-authority-data": authority},
        }],
        "users": [{
            "name": user,
            "user": {"client-certificate-data": certificate, "client-key-data": key},
        }],
        "contexts": [{"name": "boxes", "context": {"cluster": "boxes", "user": user}}],
        "current-context": "boxes",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_library_reads_it_back() {
        let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
        let config = render(
            "https://127.0.0.1:1",
            "admin",
            &bytes("CA"),
            &bytes("CRT"),
            &bytes("KEY"),
        );
        let read = kube::config::Kubeconfig::from_yaml(&yaml(&config).unwrap()).unwrap();
        let cluster = read.clusters[0].cluster.as_ref().unwrap();
        assert_eq!(cluster.server.as_deref(), Some("https://127.0.0.1:1"));
        assert_eq!(cluster.certificate_authority_data.as_deref(), Some("Q0E="));
        assert_eq!(read.current_context.as_deref(), Some("boxes"));
        let user = read.auth_infos[0].auth_info.as_ref().unwrap();
        assert_eq!(user.client_certificate_data.as_deref(), Some("Q1JU"));
    }
}
