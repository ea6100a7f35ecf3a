//! What every request shares.

use std::sync::Arc;

use http::HeaderMap;
use rustls::pki_types::{CertificateDer, UnixTime};
use tokio::sync::watch;

use super::access::Access;
use super::cluster::Cluster;
use super::failure::Failure;
use super::feed::Timing;
use super::front_proxy::FrontProxy;
use super::metrics::Metrics;
use super::slots::Slots;
use super::upstream::Upstream;
use super::user::User;
use crate::archive::Reader;

/// The front proxy as it is known now; `None` before the first answer.
pub(crate) type KnownProxy = watch::Receiver<Option<Arc<FrontProxy>>>;

/// Where output is read.
pub(crate) enum Source {
    /// Here, in the archive.
    Archive {
        archive: Arc<dyn Reader>,
        /// Whether a front passes the reads on. It has noted them in its log.
        behind_front: bool,
    },
    /// By another server, which has the archive.
    Upstream(Box<Upstream>),
}

/// The server's parts.
pub(crate) struct Context {
    pub(crate) cluster: Arc<dyn Cluster>,
    pub(crate) source: Source,
    pub(crate) access: Access,
    pub(crate) proxy: KnownProxy,
    pub(crate) slots: Arc<Slots>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) timing: Timing,
}

impl Context {
    /// Whether a connection with these certificates is that of the server in front.
    pub(crate) fn knows(&self, certificates: &[CertificateDer<'_>]) -> bool {
        let proxy = self.proxy.borrow().clone();
        proxy.is_some_and(|proxy| proxy.verify(certificates, UnixTime::now()).is_ok())
    }

    /// Whose request this is.
    pub(crate) fn identify(
        &self,
        certificates: &[CertificateDer<'_>],
        headers: &HeaderMap,
    ) -> Result<User, Failure> {
        let proxy = self.proxy.borrow().clone();
        let Some(proxy) = proxy else {
            let message = "how users are authenticated is not known yet";
            return Err(Failure::unavailable(message));
        };
        proxy
            .identify(certificates, headers, UnixTime::now())
            .map_err(|stranger| {
                tracing::debug!(why = stranger.as_str(), "a stranger was sent away");
                Failure::unauthorized()
            })
    }
}
