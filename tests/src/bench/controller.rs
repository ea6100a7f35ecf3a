//! The controller that is measured: a process of this machine.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use kube::Client;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::child::Child;
use super::cluster_access::get;
use super::processes::{self, Memory};
use crate::harness::{DEPLOYMENT, NAMESPACE};

/// How long it may take to be ready, and to fall silent.
const PATIENCE: Duration = Duration::from_mins(1);
/// Between two looks.
const PACE: Duration = Duration::from_millis(10);
/// It is idle when it used next to no CPU for so long.
const SILENCE: Duration = Duration::from_millis(500);
/// Next to no CPU: a tick of the kernel's accounting.
const NEXT_TO_NOTHING: Duration = Duration::from_millis(10);

/// A controller that runs.
#[derive(Debug)]
pub(super) struct Controller {
    child: Child,
    address: SocketAddr,
    started: Instant,
}

impl Controller {
    /// Starts it as the chart does, with the same lease.
    pub(super) fn start(
        program: &Path,
        kubeconfig: &Path,
        supervisor: &[String],
        log: &Path,
    ) -> Result<Self> {
        let address = free_address()?;
        let mut arguments = vec![
            "--log-level=info".to_owned(),
            "--log-format=json".to_owned(),
            format!("--lease-namespace={NAMESPACE}"),
            format!("--lease-name={DEPLOYMENT}"),
            format!("--identity={}", identity(address)),
            format!("--listen={address}"),
        ];
        arguments.extend_from_slice(supervisor);
        let started = Instant::now();
        let variable = ("KUBECONFIG", kubeconfig);
        let child = Child::start("the controller", program, &arguments, variable, log)?;
        Ok(Self {
            child,
            address,
            started,
        })
    }

    /// Waits until it says that it is ready; the time since its start.
    pub(super) async fn ready(&mut self) -> Result<Duration> {
        while self.started.elapsed() < PATIENCE {
            self.child.check()?;
            if let Ok((200, _)) = self.get("/readyz").await {
                return Ok(self.started.elapsed());
            }
            tokio::time::sleep(PACE).await;
        }
        bail!("the controller is not ready after {} s", PATIENCE.as_secs())
    }

    /// Waits until it leads. One that was killed before it holds the lease for a while.
    pub(super) async fn leads(&mut self, client: &Client) -> Result<()> {
        let path =
            format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{DEPLOYMENT}");
        while self.started.elapsed() < PATIENCE {
            self.child.check()?;
            let lease = get::<Value>(client, &path).await.unwrap_or_default();
            if lease["spec"]["holderIdentity"] == identity(self.address) {
                return Ok(());
            }
            tokio::time::sleep(PACE).await;
        }
        bail!("the controller does not get its lease")
    }

    /// Waits until it does nothing any more; when that began, as time since its start.
    pub(super) async fn idle(&mut self) -> Result<Duration> {
        let began = Instant::now();
        let mut since = (self.started.elapsed(), self.cpu()?);
        while began.elapsed() < PATIENCE {
            self.child.check()?;
            tokio::time::sleep(PACE).await;
            let used = self.cpu()?;
            if used > since.1 + NEXT_TO_NOTHING {
                since = (self.started.elapsed(), used);
            } else if self.started.elapsed() > since.0 + SILENCE {
                return Ok(since.0);
            }
        }
        bail!("the controller is busy for {} s", PATIENCE.as_secs())
    }

    pub(super) fn cpu(&self) -> Result<Duration> {
        processes::cpu(self.child.pid())
    }

    pub(super) fn pid(&self) -> i32 {
        self.child.pid()
    }

    pub(super) fn memory(&self) -> Result<Memory> {
        processes::memory(self.child.pid())
    }

    /// One of the figures that it counts itself.
    pub(super) async fn counted(&self, name: &str) -> Result<f64> {
        let (_, text) = self.get("/metrics").await?;
        Ok(sum_of(&text, name))
    }

    pub(super) async fn stop(self) -> Result<()> {
        self.child.stop().await
    }

    async fn get(&self, path: &str) -> Result<(u16, String)> {
        let mut stream = TcpStream::connect(self.address).await?;
        let request = format!("GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", self.address);
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let code = answer
            .split(' ')
            .nth(1)
            .and_then(|code| code.parse().ok())
            .context("the controller's answer is no HTTP")?;
        Ok((code, answer))
    }
}

fn identity(address: SocketAddr) -> String {
    format!("boxes-bench-{}", address.port())
}

/// A port of loopback that nobody uses.
fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port")?;
    listener.local_addr().context("a listener has no address")
}

/// The sum of a metric's samples, whatever their labels.
fn sum_of(text: &str, name: &str) -> f64 {
    let samples = text.lines().filter_map(|line| {
        let (series, value) = line.rsplit_once(' ')?;
        let (known, _) = series.split_once('{').unwrap_or((series, ""));
        (known == name).then(|| value.parse::<f64>().ok())?
    });
    samples.fold(0.0, |sum, value| sum + value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_added_up() {
        let text = "# HELP a b\na_total{x=\"1\"} 2\na_total{x=\"2\"} 3\na 9\n";
        let sums = ["a_total", "b"].map(|name| format!("{:.0}", sum_of(text, name)));
        assert_eq!(sums, ["5", "0"]);
    }
}
