//! Certificates for tests.

use std::path::Path;

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, SanType, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// A certificate authority.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: Certificate,
}

/// A certificate and its key.
pub(crate) struct Identity {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
}

/// What is special about a certificate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Client,
    Expired,
    NotYet,
    ServerOnly,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = params(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        Self {
            issuer: Issuer::new(params, key),
            certificate,
        }
    }

    pub(crate) fn pem(&self) -> String {
        self.certificate.pem()
    }

    pub(crate) fn der(&self) -> CertificateDer<'static> {
        self.certificate.der().clone()
    }

    pub(crate) fn sign(&self, name: &str, kind: Kind) -> Identity {
        let (certificate, key) = self.signed(params(name), kind);
        Identity {
            chain: vec![certificate.der().clone()],
            key: PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der())),
        }
    }

    /// Writes what a Secret has: a pair for this host or client, and the authority.
    pub(crate) fn write(&self, folder: &Path, name: &str, kind: Kind) {
        let mut params = params(name);
        params.subject_alt_names = vec![SanType::DnsName(name.try_into().unwrap())];
        let (certificate, key) = self.signed(params, kind);
        for (file, content) in [
            ("ca.crt", self.pem()),
            ("tls.crt", certificate.pem()),
            ("tls.key", key.serialize_pem()),
        ] {
            std::fs::write(folder.join(file), content).unwrap();
        }
    }

    fn signed(&self, mut params: CertificateParams, kind: Kind) -> (Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        params.extended_key_usages = vec![match kind {
            Kind::ServerOnly => ExtendedKeyUsagePurpose::ServerAuth,
            Kind::Client | Kind::Expired | Kind::NotYet => ExtendedKeyUsagePurpose::ClientAuth,
        }];
        match kind {
            Kind::Expired => params.not_after = date_time_ymd(2020, 1, 1),
            Kind::NotYet => params.not_before = date_time_ymd(2999, 1, 1),
            Kind::Client | Kind::ServerOnly => {}
        }
        (params.signed_by(&key, &self.issuer).unwrap(), key)
    }
}

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}
