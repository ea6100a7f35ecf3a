//! From a URL to an object store.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    BackoffConfig, Certificate, ClientOptions, ObjectStore, ObjectStoreScheme, RetryConfig,
};
use url::Url;

use super::error::{Error, Result};

/// How an archive is reached.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Settings of the backend, under the names that `object_store` gives them, such as
    /// `aws_endpoint` or `aws_access_key_id`. The environment holds for what is not here.
    pub settings: Vec<(String, String)>,
    /// Trust a file system without waiting for its disk. For tests.
    pub no_fsync: bool,
}

/// A store, where in it the archive is, and its folder if it is a file system.
pub(super) struct Opened {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) root: Path,
    pub(super) folder: Option<PathBuf>,
}

/// A request that takes longer has failed; the caller tries again.
const REQUEST: Duration = Duration::from_secs(30);
const CONNECT: Duration = Duration::from_secs(5);

pub(super) fn open(url: &str, options: &Options) -> Result<Opened> {
    let refused = |message: String| Error::Refused { message };
    let parsed = Url::parse(url).map_err(|error| refused(format!("{url:?}: {error}")))?;
    let (scheme, path) =
        ObjectStoreScheme::parse(&parsed).map_err(|error| refused(format!("{url:?}: {error}")))?;
    if scheme == ObjectStoreScheme::Local {
        return open_folder(&parsed, options);
    }
    let store = remote(&scheme, &parsed, options).map_err(Error::from)?;
    Ok(Opened {
        store,
        root: path,
        folder: None,
    })
}

fn open_folder(url: &Url, options: &Options) -> Result<Opened> {
    let refused = |message: String| Error::Refused { message };
    let folder = url
        .to_file_path()
        .map_err(|()| refused(format!("{url} is no folder")))?;
    let store = LocalFileSystem::new_with_prefix(&folder)?.with_fsync(!options.no_fsync);
    Ok(Opened {
        store: Arc::new(store),
        root: Path::default(),
        folder: Some(folder),
    })
}

/// Builds a client from the environment, then from the settings, which win.
macro_rules! build {
    ($builder:ty, $url:expr, $options:expr) => {{
        let mut builder = <$builder>::from_env()
            .with_url($url.to_string())
            .with_retry(retries())
            .with_client_options(client());
        for (key, value) in &$options.settings {
            builder = builder.with_config(key.parse()?, value);
        }
        Ok(Arc::new(builder.build()?))
    }};
}

fn remote(
    scheme: &ObjectStoreScheme,
    url: &Url,
    options: &Options,
) -> object_store::Result<Arc<dyn ObjectStore>> {
    match scheme {
        ObjectStoreScheme::AmazonS3 => build!(AmazonS3Builder, url, options),
        ObjectStoreScheme::GoogleCloudStorage => build!(GoogleCloudStorageBuilder, url, options),
        ObjectStoreScheme::MicrosoftAzure => build!(MicrosoftAzureBuilder, url, options),
        ObjectStoreScheme::Memory => Ok(Arc::new(InMemory::new())),
        _ => Err(object_store::Error::NotSupported {
            source: format!("{url}: file, s3, gs and az are archives").into(),
        }),
    }
}

/// Trusts the public authorities, which an image of one binary does not have, and whomever the system
/// or `SSL_CERT_FILE` names.
fn client() -> ClientOptions {
    let options = ClientOptions::new()
        .with_timeout(REQUEST)
        .with_connect_timeout(CONNECT);
    let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter();
    roots
        .filter_map(|root| Certificate::from_der(root).ok())
        .fold(options, ClientOptions::with_root_certificate)
}

/// Few: callers have their own retries, which see what happens.
fn retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig::default(),
        max_retries: 2,
        retry_timeout: REQUEST,
    }
}

/// Whether a store of this kind can be asked not to overwrite.
pub(super) fn creates_only(options: &Options) -> bool {
    let disabled = |(key, value): &(String, String)| {
        let key = key.parse().ok();
        key == Some(AmazonS3ConfigKey::ConditionalPut) && value == "disabled"
    };
    !options.settings.iter().any(disabled)
}
