//! The serving certificate: from files, which may change, or made at start.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use anyhow::Context as _;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::tls::provider;

/// How often the files are looked at. A mounted Secret follows within about a minute anyway.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(10);

/// The certificate in force. New connections get the newest.
pub(crate) struct Serving(RwLock<Arc<CertifiedKey>>);

/// Where the certificate comes from.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// The two files as they were read.
type Pair = (Vec<u8>, Vec<u8>);

/// What is in them.
type Parsed = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

impl Serving {
    /// Reads the files, and goes on reading them in the background.
    pub(crate) async fn from_files(files: Files) -> anyhow::Result<Arc<Self>> {
        let pair = files.read().await?;
        let serving = Arc::new(Self(RwLock::new(load(&pair)?)));
        tokio::spawn(serving.clone().keep_up(files, pair, LOOK_EVERY));
        Ok(serving)
    }

    /// Makes a certificate for these names. Nobody can know it before: clients must not verify it.
    pub(crate) fn self_made(names: &[String]) -> anyhow::Result<Arc<Self>> {
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new(names)?.self_signed(&key)?;
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let pair = certified(vec![certificate.der().clone()], key)?;
        Ok(Arc::new(Self(RwLock::new(pair))))
    }

    async fn keep_up(self: Arc<Self>, files: Files, mut seen: Pair, every: Duration) {
        loop {
            tokio::time::sleep(every).await;
            match self.look(&files, &mut seen).await {
                Ok(false) => {}
                Ok(true) => tracing::info!("the serving certificate was read again"),
                Err(error) => {
                    tracing::warn!(
                        error = format!("{error:#}"),
                        "the new serving certificate cannot be used; the old one stays"
                    );
                }
            }
        }
    }

    /// Takes a changed certificate into use. A pair caught half changed is an error, and is looked
    /// at again.
    async fn look(&self, files: &Files, seen: &mut Pair) -> anyhow::Result<bool> {
        let pair = files.read().await?;
        if pair == *seen {
            return Ok(false);
        }
        let loaded = load(&pair)?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = loaded;
        *seen = pair;
        Ok(true)
    }

    /// The certificate that clients are shown, for tests that trust it.
    #[cfg(test)]
    pub(crate) fn certificate(&self) -> CertificateDer<'static> {
        self.current().cert[0].clone()
    }

    fn current(&self) -> Arc<CertifiedKey> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl ResolvesServerCert for Serving {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

impl fmt::Debug for Serving {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Serving")
    }
}

impl Files {
    /// What is in them now.
    pub(crate) async fn parsed(&self) -> anyhow::Result<Parsed> {
        parse(&self.read().await?)
    }

    async fn read(&self) -> anyhow::Result<Pair> {
        Ok((read(&self.certificate).await?, read(&self.key).await?))
    }
}

pub(crate) async fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let path = path.to_owned();
    tokio::task::spawn_blocking(move || {
        std::fs::read(&path).with_context(|| format!("reading {}", path.display()))
    })
    .await?
}

fn load(pair: &Pair) -> anyhow::Result<Arc<CertifiedKey>> {
    let (chain, key) = parse(pair)?;
    certified(chain, key)
}

fn parse((certificate, key): &Pair) -> anyhow::Result<Parsed> {
    let chain = CertificateDer::pem_slice_iter(certificate)
        .collect::<Result<Vec<_>, _>>()
        .context("the certificate file")?;
    let key = PrivateKeyDer::from_pem_slice(key).context("the key file")?;
    Ok((chain, key))
}

fn certified(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> anyhow::Result<Arc<CertifiedKey>> {
    let pair = CertifiedKey::from_der(chain, key, &provider())
        .context("the certificate and the key do not make a pair")?;
    Ok(Arc::new(pair))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, host: &str, with_key: bool) -> Files {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([host.to_owned()]).unwrap();
        let files = Files {
            certificate: folder.join("tls.crt"),
            key: folder.join("tls.key"),
        };
        std::fs::write(&files.certificate, params.self_signed(&key).unwrap().pem()).unwrap();
        if with_key {
            std::fs::write(&files.key, key.serialize_pem()).unwrap();
        }
        files
    }

    #[tokio::test]
    async fn changed_files_are_taken_into_use_once_they_are_a_pair() {
        let folder = tempfile::tempdir().unwrap();
        let files = write(folder.path(), "one", true);
        let mut seen = files.read().await.unwrap();
        let serving = Serving(RwLock::new(load(&seen).unwrap()));
        let first = serving.current();
        assert!(!serving.look(&files, &mut seen).await.unwrap());

        write(folder.path(), "two", false);
        assert!(serving.look(&files, &mut seen).await.is_err());
        assert_eq!(serving.current().cert, first.cert);

        write(folder.path(), "three", true);
        assert!(serving.look(&files, &mut seen).await.unwrap());
        assert_ne!(serving.current().cert, first.cert);
    }

    #[test]
    fn a_certificate_can_be_made() {
        let names = ["boxes-log-api.boxes.svc".to_owned()];
        assert_eq!(Serving::self_made(&names).unwrap().current().cert.len(), 1);
    }
}
