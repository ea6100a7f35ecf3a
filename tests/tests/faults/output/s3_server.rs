//! A server that speaks S3, behind a gate.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::archived::Address;
use super::gate::{Gate, Way};

const KEY: &str = "test-key";
const SECRET: &str = "test-secret";

/// A server over a folder. It goes when it is dropped.
pub(crate) struct S3 {
    _folder: TempDir,
    _server: JoinSet<()>,
    server: SocketAddr,
    gate: Gate,
}

impl S3 {
    /// Starts one with an empty bucket.
    pub(crate) async fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        std::fs::create_dir(folder.path().join("boxes"))?;
        let files = s3s_fs::FileSystem::new(folder.path());
        let files = files.map_err(|error| anyhow::anyhow!("{error:?}"))?;
        let mut service = S3ServiceBuilder::new(files);
        service.set_auth(SimpleAuth::from_single(KEY, SECRET));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let server = listener.local_addr()?;
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, service.build()));
        Ok(Self {
            _folder: folder,
            _server: tasks,
            server,
            gate: Gate::before(server).await.context("no gate")?,
        })
    }

    /// How the network is from now on.
    pub(crate) fn is(&self, way: Way) {
        self.gate.is(way);
    }

    /// The archive, through the gate.
    pub(crate) fn address(&self) -> Address {
        address(self.gate.address())
    }

    /// The archive as others reach it, whatever the gate does.
    pub(crate) fn behind_the_gate(&self) -> Address {
        address(self.server)
    }
}

fn address(server: SocketAddr) -> Address {
    let endpoint = format!("http://{server}");
    let settings = [
        ("aws_endpoint", endpoint.as_str()),
        ("aws_allow_http", "true"),
        ("aws_region", "us-east-1"),
        ("aws_access_key_id", KEY),
        ("aws_secret_access_key", SECRET),
    ];
    Address {
        url: "s3://boxes/output".to_owned(),
        settings: settings
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
    }
}

async fn serve(listener: TcpListener, service: S3Service) {
    let mut connections = JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        let service = service.clone();
        connections.spawn(async move {
            let server = Builder::new(TokioExecutor::new());
            let _ = server.serve_connection(TokioIo::new(socket), service).await;
        });
        while connections.try_join_next().is_some() {}
    }
}
