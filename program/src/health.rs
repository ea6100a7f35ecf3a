//! `/livez`, `/readyz` and `/metrics`.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

use crate::door;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What the answers depend on.
pub trait Health: Send + Sync + 'static {
    /// Why the program is not ready.
    fn problem(&self) -> Option<&'static str>;

    /// The text that a scraper reads; `None` while nothing is measured yet.
    ///
    /// # Errors
    /// None that are known.
    fn metrics(&self) -> Option<Result<String, std::fmt::Error>>;
}

impl<T: Health> Health for Arc<T> {
    fn problem(&self) -> Option<&'static str> {
        T::problem(self)
    }

    fn metrics(&self) -> Option<Result<String, std::fmt::Error>> {
        T::metrics(self)
    }
}

/// The text of what is registered.
///
/// # Errors
/// None that are known.
pub fn text(registry: &Registry) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    encode(&mut text, registry)?;
    Ok(text)
}

/// Opens the address that this option of the command line gives and serves in the background. Says at
/// which address that is.
///
/// # Errors
/// The address cannot be listened on.
pub async fn serve(
    option: &str,
    listen: SocketAddr,
    health: impl Health,
) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind(listen)
        .await
        .with_context(|| format!("cannot listen on {listen}: choose another {option}"))?;
    let address = listener.local_addr()?;
    let routes = Router::new()
        .route("/livez", get(|| async { "ok" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(Arc::new(health) as Arc<dyn Health>);
    tokio::spawn(door::serve(listener, routes));
    Ok(address)
}

async fn readyz(State(health): State<Arc<dyn Health>>) -> Response {
    match health.problem() {
        None => "ok".into_response(),
        Some(problem) => (StatusCode::SERVICE_UNAVAILABLE, problem).into_response(),
    }
}

async fn metrics(State(health): State<Arc<dyn Health>>) -> Response {
    match health.metrics() {
        Some(Ok(text)) => ([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Some(Err(_)) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        None => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    struct Told(
        Option<&'static str>,
        Option<Result<String, std::fmt::Error>>,
    );

    impl Health for Told {
        fn problem(&self) -> Option<&'static str> {
            self.0
        }

        fn metrics(&self) -> Option<Result<String, std::fmt::Error>> {
            self.1.clone()
        }
    }

    async fn asked(health: Told, path: &str) -> String {
        let listen = "127.0.0.1:0".parse().unwrap();
        let address = serve("--listen", listen, Arc::new(health)).await.unwrap();
        get(address, path).await
    }

    async fn get(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.0\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn a_problem_makes_it_unready_and_not_dead() {
        let ill = || Told(Some("no lease"), None);
        let answer = asked(ill(), "/readyz").await;
        assert!(
            answer.contains(" 503 ") && answer.ends_with("no lease"),
            "{answer}"
        );
        for (health, path) in [(ill(), "/livez"), (Told(None, None), "/readyz")] {
            let answer = asked(health, path).await;
            assert!(
                answer.contains(" 200 ") && answer.ends_with("ok"),
                "{answer}"
            );
        }
    }

    #[tokio::test]
    async fn what_is_measured_is_told_once_there_is_something() {
        let (none, broken) = (Told(None, None), Told(None, Some(Err(std::fmt::Error))));
        assert!(asked(none, "/metrics").await.contains(" 503 "));
        assert!(asked(broken, "/metrics").await.contains(" 500 "));
        let some = Told(None, Some(Ok("boxes 1".to_owned())));
        let answer = asked(some, "/metrics").await;
        assert!(
            answer.contains(" 200 ") && answer.contains(OPEN_METRICS),
            "{answer}"
        );
        assert!(answer.ends_with("boxes 1"), "{answer}");
    }

    /// A client that begins a request and does not end it.
    async fn begin(address: SocketAddr, head: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let _ = stream.write_all(b"GET /livez HTTP/1.1\r\nx: ").await;
        let _ = stream.write_all(head).await;
        stream
    }

    /// Whether the server has closed a connection.
    async fn is_closed(mut stream: TcpStream) -> bool {
        let mut rest = Vec::new();
        let reading = stream.read_to_end(&mut rest);
        tokio::time::timeout(Duration::from_secs(5), reading)
            .await
            .is_ok()
    }

    #[tokio::test]
    async fn clients_that_stay_make_room_for_new_ones() {
        let listen = "127.0.0.1:0".parse().unwrap();
        let address = serve("--listen", listen, Told(None, None)).await.unwrap();
        let mut stays = Vec::new();
        for _ in 0..door::OPEN + 3 {
            stays.push(begin(address, b"").await);
        }
        let answer = get(address, "/readyz").await;
        assert!(answer.ends_with("ok"), "{answer}");
        // A place was made for each of three, and for the one that was answered.
        for stream in stays.drain(..4) {
            assert!(is_closed(stream).await);
        }
    }

    #[tokio::test]
    async fn a_head_without_an_end_takes_no_memory_without_an_end() {
        let listen = "127.0.0.1:0".parse().unwrap();
        let address = serve("--listen", listen, Told(None, None)).await.unwrap();
        let long = begin(address, &vec![b'x'; door::HEAD * 2]).await;
        assert!(is_closed(long).await);
    }

    #[tokio::test]
    async fn an_address_that_is_taken_is_named_with_its_option() {
        let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let listen = taken.local_addr().unwrap();
        let error = serve("--health-listen", listen, Told(None, None)).await;
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("--health-listen") && error.contains(&listen.to_string()),
            "{error}"
        );
    }
}
