//! Certificates for tests.

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// A certificate authority.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
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
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            issuer: Issuer::new(params, key),
            pem,
        }
    }

    pub(crate) fn pem(&self) -> String {
        self.pem.clone()
    }

    pub(crate) fn sign(&self, name: &str, kind: Kind) -> Identity {
        let key = KeyPair::generate().unwrap();
        let mut params = params(name);
        params.extended_key_usages = vec![match kind {
            Kind::ServerOnly => ExtendedKeyUsagePurpose::ServerAuth,
            Kind::Client | Kind::Expired | Kind::NotYet => ExtendedKeyUsagePurpose::ClientAuth,
        }];
        match kind {
            Kind::Expired => params.not_after = date_time_ymd(2020, 1, 1),
            Kind::NotYet => params.not_before = date_time_ymd(2999, 1, 1),
            Kind::Client | Kind::ServerOnly => {}
        }
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Identity {
            chain: vec![certificate.der().clone()],
            key: PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der())),
        }
    }
}

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}
