//! A network that fails: a gate on loopback before a server, which passes bytes on, late or not at all.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// What becomes of what comes to the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// It is passed on.
    Open,
    /// Connections are closed, those that there are and new ones.
    Closed,
    /// Nothing passes, either way, and nothing is said.
    Silent,
    /// Every answer comes so much later.
    Late(Duration),
}

/// The gate. It goes, with all connections, when it is dropped.
pub(crate) struct Gate {
    address: SocketAddr,
    way: watch::Sender<Way>,
    _server: JoinSet<()>,
}

impl Gate {
    /// Opens a gate before this server.
    pub(crate) async fn before(server: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (way, seen) = watch::channel(Way::Open);
        let mut tasks = JoinSet::new();
        tasks.spawn(take_in(listener, server, seen));
        Ok(Self {
            address,
            way,
            _server: tasks,
        })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on it is so, also for connections that there are.
    pub(crate) fn is(&self, way: Way) {
        self.way.send_replace(way);
    }
}

async fn take_in(listener: TcpListener, server: SocketAddr, way: watch::Receiver<Way>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        connections.spawn(connect(client, server, way.clone()));
        while connections.try_join_next().is_some() {}
    }
}

/// One connection, until either side or the gate closes it.
async fn connect(client: TcpStream, server: SocketAddr, mut way: watch::Receiver<Way>) {
    let Ok(server) = TcpStream::connect(server).await else {
        return;
    };
    let ((from_client, to_client), (from_server, to_server)) =
        (client.into_split(), server.into_split());
    let asked = Arc::new(AtomicBool::new(false));
    let (questions, answers) = (way.clone(), way.clone());
    tokio::select! {
        _ = way.wait_for(|way| *way == Way::Closed) => {}
        _ = ask(from_client, to_server, questions, &asked) => {}
        _ = answer(from_server, to_client, answers, &asked) => {}
    }
}

type Passed = std::io::Result<()>;

async fn ask(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut way: watch::Receiver<Way>,
    asked: &AtomicBool,
) -> Passed {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let length = from.read(&mut buffer).await?;
        passes(&mut way).await;
        asked.store(true, Ordering::Relaxed);
        to.write_all(&buffer[..length]).await?;
        if length == 0 {
            return Ok(());
        }
    }
}

async fn answer(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut way: watch::Receiver<Way>,
    asked: &AtomicBool,
) -> Passed {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let length = from.read(&mut buffer).await?;
        let way = passes(&mut way).await;
        if let Way::Late(by) = way
            && asked.swap(false, Ordering::Relaxed)
        {
            tokio::time::sleep(by).await;
        }
        to.write_all(&buffer[..length]).await?;
        if length == 0 {
            return Ok(());
        }
    }
}

/// Waits until something passes.
async fn passes(way: &mut watch::Receiver<Way>) -> Way {
    match way.wait_for(|way| *way != Way::Silent).await {
        Ok(way) => *way,
        // The gate is gone, and this connection goes with it.
        Err(_) => Way::Closed,
    }
}
