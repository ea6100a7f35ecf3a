//! Clients that have not yet said who they are. Anybody can be one, and be silent: a new one is never
//! kept waiting for those before it.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// How long a client may take to say who it is.
const PATIENCE: Duration = Duration::from_secs(10);

/// Handshakes that are under way.
pub(crate) struct Handshakes {
    acceptor: TlsAcceptor,
    most: usize,
    running: JoinSet<Option<TlsStream<TcpStream>>>,
    /// Oldest first.
    order: VecDeque<AbortHandle>,
}

impl Handshakes {
    pub(crate) fn new(acceptor: TlsAcceptor, most: usize) -> Self {
        Self {
            acceptor,
            most,
            running: JoinSet::new(),
            order: VecDeque::new(),
        }
    }

    /// Begins one. If there are too many, the oldest is given up.
    pub(crate) fn begin(&mut self, stream: TcpStream) {
        self.order.retain(|handshake| !handshake.is_finished());
        if self.order.len() >= self.most
            && let Some(oldest) = self.order.pop_front()
        {
            oldest.abort();
        }
        let accepting = self.acceptor.accept(stream);
        let handshake = async { timeout(PATIENCE, accepting).await.ok()?.ok() };
        self.order.push_back(self.running.spawn(handshake));
    }

    /// The next client that came to its end; `None` while there is none under way.
    pub(crate) async fn next(&mut self) -> Option<TlsStream<TcpStream>> {
        loop {
            if let Ok(Some(stream)) = self.running.join_next().await? {
                return Some(stream);
            }
        }
    }
}
