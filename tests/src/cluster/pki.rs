//! The cluster's certificates.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};

use super::address::{API_SERVICE_IP, LOOPBACK, NODE, NODE_IP};

/// Who signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Authority {
    /// Everyone whom the API server knows by certificate.
    Cluster,
    /// The API server in front of extension API servers.
    FrontProxy,
    /// etcd and its one client.
    Etcd,
}

impl Authority {
    /// The file name of its certificate, without its ending.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cluster => "ca",
            Self::FrontProxy => "front-proxy-ca",
            Self::Etcd => "etcd-ca",
        }
    }
}

/// One certificate to be made.
struct Leaf {
    authority: Authority,
    name: &'static str,
    common_name: &'static str,
    organization: Option<&'static str>,
    alternative_names: &'static [&'static str],
}

const API_SERVER_NAMES: &[&str] = &[
    LOOPBACK,
    NODE_IP,
    API_SERVICE_IP,
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// Those with a kubeconfig of their own come first: see [`USERS`].
const LEAVES: [Leaf; 9] = [
    user("admin", "boxes-admin", Some("system:masters")),
    user(
        "kube-controller-manager",
        "system:kube-controller-manager",
        None,
    ),
    user("kube-scheduler", "system:kube-scheduler", None),
    user("kube-proxy", "system:kube-proxy", None),
    Leaf {
        authority: Authority::Cluster,
        name: "kubelet",
        common_name: "system:node:boxes",
        organization: Some("system:nodes"),
        alternative_names: &[LOOPBACK, NODE_IP, NODE],
    },
    Leaf {
        authority: Authority::Cluster,
        name: "kube-apiserver",
        common_name: "kube-apiserver",
        organization: None,
        alternative_names: API_SERVER_NAMES,
    },
    user(
        "apiserver-kubelet-client",
        "apiserver-kubelet-client",
        Some("system:masters"),
    ),
    Leaf {
        authority: Authority::FrontProxy,
        name: "front-proxy-client",
        common_name: "front-proxy-client",
        organization: None,
        alternative_names: &[],
    },
    Leaf {
        authority: Authority::Etcd,
        name: "etcd",
        common_name: "etcd",
        organization: None,
        alternative_names: &[LOOPBACK, "localhost"],
    },
];

/// Who gets a kubeconfig.
pub(crate) const USERS: [&str; 5] = [
    "admin",
    "kube-controller-manager",
    "kube-scheduler",
    "kube-proxy",
    "kubelet",
];

const fn user(
    name: &'static str,
    common_name: &'static str,
    organization: Option<&'static str>,
) -> Leaf {
    Leaf {
        authority: Authority::Cluster,
        name,
        common_name,
        organization,
        alternative_names: &[],
    }
}

/// A folder of certificates and keys.
#[derive(Debug, Clone)]
pub(crate) struct Pki {
    folder: PathBuf,
}

impl Pki {
    /// The certificates in `folder`, made or not.
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    pub(crate) fn certificate(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.crt"))
    }

    pub(crate) fn key(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.key"))
    }

    /// The public half of the key that signs service account tokens.
    pub(crate) fn service_account_public_key(&self) -> PathBuf {
        self.folder.join("service-account.pub")
    }

    /// The key that signs service account tokens.
    pub(crate) fn service_account_key(&self) -> PathBuf {
        self.key("service-account")
    }

    /// Makes all of them anew.
    pub(crate) fn create(&self) -> Result<()> {
        for authority in [Authority::Cluster, Authority::FrontProxy, Authority::Etcd] {
            let issuer = self.create_authority(authority)?;
            for leaf in LEAVES.iter().filter(|leaf| leaf.authority == authority) {
                self.create_leaf(&issuer, leaf)
                    .with_context(|| format!("cannot make the certificate {}", leaf.name))?;
            }
        }
        let key = KeyPair::generate()?;
        write_secret(&self.service_account_key(), &key.serialize_pem())?;
        write_secret(&self.service_account_public_key(), &key.public_key_pem())
    }

    fn create_authority(&self, authority: Authority) -> Result<Issuer<'static, KeyPair>> {
        let mut params = CertificateParams::default();
        params.distinguished_name = subject(&format!("boxes-{}", authority.name()), None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        write_secret(&self.certificate(authority.name()), &certificate.pem())?;
        write_secret(&self.key(authority.name()), &key.serialize_pem())?;
        Ok(Issuer::new(params, key))
    }

    fn create_leaf(&self, issuer: &Issuer<'static, KeyPair>, leaf: &Leaf) -> Result<()> {
        let names: Vec<String> = leaf
            .alternative_names
            .iter()
            .map(ToString::to_string)
            .collect();
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = subject(leaf.common_name, leaf.organization);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, issuer)?;
        write_secret(&self.certificate(leaf.name), &certificate.pem())?;
        write_secret(&self.key(leaf.name), &key.serialize_pem())
    }
}

fn subject(common_name: &str, organization: Option<&str>) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    if let Some(organization) = organization {
        subject.push(DnType::OrganizationName, organization);
    }
    subject.push(DnType::CommonName, common_name);
    subject
}

/// Writes a file that only its owner reads.
pub(crate) fn write_secret(path: &Path, text: &str) -> Result<()> {
    fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_user_has_a_certificate() {
        for user in USERS {
            assert!(LEAVES.iter().any(|leaf| leaf.name == user), "{user}");
        }
    }

    #[test]
    fn the_kubelet_is_its_node() {
        let kubelet = LEAVES.iter().find(|leaf| leaf.name == "kubelet").unwrap();
        assert_eq!(kubelet.common_name, format!("system:node:{NODE}"));
    }

    #[test]
    fn all_are_written_and_closed_to_others() {
        use std::os::unix::fs::PermissionsExt;
        let folder = std::env::temp_dir().join(format!("bx-pki-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Pki::new(folder.clone()).create().unwrap();
        let files: Vec<_> = fs::read_dir(&folder).unwrap().map(Result::unwrap).collect();
        let open = files
            .iter()
            .filter(|file| file.metadata().unwrap().permissions().mode() & 0o077 != 0)
            .count();
        fs::remove_dir_all(&folder).unwrap();
        // A certificate and a key for each authority and each leaf, and the token key's two halves.
        assert_eq!(files.len(), 2 * (3 + LEAVES.len()) + 2);
        assert_eq!(open, 0);
    }
}
