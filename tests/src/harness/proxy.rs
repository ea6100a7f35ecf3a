//! A proxy in front of the API server that can answer in its place: what a controller meets when the
//! cluster is not well.
//!
//! Guarantees: it listens on loopback alone; every request is noted in the order in which it came,
//! with the fault that it met; a change of the rule ends all watches and all requests that hang, so
//! that the new rule holds for everything from then on.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use futures::StreamExt;
use http::{HeaderMap, StatusCode, header};
use kube::Client;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::ask::Ask;
use super::watch::PATIENCE;

/// Larger than any object that the API server takes.
const LARGEST: usize = 4 << 20;

/// What a request meets instead of the API server's own answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The API server's typed failure of this status code. It never sees the request.
    Refused(u16),
    /// A 404 page of something in between that knows nothing of the API.
    Page404,
    /// No answer.
    Hangs,
    /// The API server does it, and the answer says 500.
    DoneAndRefused,
}

/// A request that came.
#[derive(Debug, Clone, PartialEq)]
pub struct Met {
    /// The request.
    pub ask: Ask,
    /// What it met, if not the API server.
    pub fault: Option<Fault>,
}

type Rule = Arc<dyn Fn(&Ask) -> Option<Fault> + Send + Sync>;

/// The proxy. It ends when it is dropped.
pub struct Proxy {
    url: String,
    shared: Arc<Shared>,
    _server: JoinSet<()>,
}

struct Shared {
    client: Client,
    rule: Mutex<Option<Rule>>,
    rules: watch::Sender<usize>,
    met: Mutex<Vec<Met>>,
    count: watch::Sender<usize>,
}

impl Proxy {
    /// A proxy that passes everything on as this client.
    pub(super) async fn start(client: Client) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let shared = Arc::new(Shared {
            client,
            rule: Mutex::default(),
            rules: watch::channel(0).0,
            met: Mutex::default(),
            count: watch::channel(0).0,
        });
        let routes = Router::new().fallback(meet).with_state(Arc::clone(&shared));
        let mut server = JoinSet::new();
        server.spawn(async move { axum::serve(listener, routes).await.unwrap_or_default() });
        Ok(Self {
            url,
            shared,
            _server: server,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// From now on these requests meet these faults.
    pub fn fails(&self, rule: impl Fn(&Ask) -> Option<Fault> + Send + Sync + 'static) {
        self.set(Some(Arc::new(rule)));
    }

    /// From now on everything is passed on.
    pub fn heals(&self) {
        self.set(None);
    }

    fn set(&self, rule: Option<Rule>) {
        *lock(&self.shared.rule) = rule;
        self.shared.rules.send_modify(|count| *count += 1);
    }

    /// How many requests have come.
    #[must_use]
    pub fn count(&self) -> usize {
        *self.shared.count.borrow()
    }

    /// What has come since there were so many.
    #[must_use]
    pub fn since(&self, count: usize) -> Vec<Met> {
        lock(&self.shared.met)
            .get(count..)
            .unwrap_or_default()
            .to_vec()
    }

    /// Waits until so many have come in all.
    pub async fn reaches(&self, count: usize) {
        let mut news = self.shared.count.subscribe();
        // It fails only when the proxy is dropped.
        let _ = news.wait_for(|seen| *seen >= count).await;
    }

    /// Waits until what came since then is as described.
    ///
    /// # Errors
    /// When it is not in time.
    pub async fn until(
        &self,
        since: usize,
        what: &str,
        is: impl Fn(&[Met]) -> bool,
    ) -> Result<Vec<Met>> {
        let mut news = self.shared.count.subscribe();
        let search = async {
            loop {
                let met = self.since(since);
                if is(&met) {
                    return Ok(met);
                }
                news.changed().await.context("the proxy ended")?;
            }
        };
        match tokio::time::timeout(PATIENCE, search).await {
            Ok(found) => found,
            Err(_) => bail!("waited for {what}; came:\n{}", list(&self.since(since))),
        }
    }

    /// Watches for a while that nothing comes of this kind.
    ///
    /// # Errors
    /// When it does.
    pub async fn never(&self, what: &str, time: Duration, is: impl Fn(&Met) -> bool) -> Result<()> {
        let since = self.count();
        tokio::time::sleep(time).await;
        let bad: Vec<_> = self.since(since).into_iter().filter(is).collect();
        if bad.is_empty() {
            return Ok(());
        }
        bail!("{what}:\n{}", list(&bad))
    }
}

/// Requests in lines, for messages.
fn list(all: &[Met]) -> String {
    let line = |met: &Met| format!("{} {:?}", met.ask.line(), met.fault);
    all.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn lock<T>(it: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn meet(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    match answer(&shared, request).await {
        Ok(response) => response,
        Err(error) => plain(StatusCode::BAD_GATEWAY, "text/plain", format!("{error:#}")),
    }
}

async fn answer(shared: &Shared, request: Request) -> Result<Response> {
    let mut rules = shared.rules.subscribe();
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, LARGEST).await.context("no body")?;
    let ask = Ask::read(&parts.method, &parts.uri, &body);
    let rule = lock(&shared.rule).clone();
    let fault = rule.and_then(|rule| rule(&ask));
    lock(&shared.met).push(Met { ask, fault });
    shared.count.send_modify(|count| *count += 1);
    let forward = async {
        let mut request = http::Request::new(kube::client::Body::from(body));
        *request.method_mut() = parts.method.clone();
        *request.uri_mut() = parts
            .uri
            .path_and_query()
            .context("no path")?
            .clone()
            .into();
        *request.headers_mut() = kept(&parts.headers);
        shared.client.send(request).await.context("no answer")
    };
    match fault {
        Some(Fault::Refused(code)) => refusal(code),
        Some(Fault::Page404) => Ok(plain(
            StatusCode::NOT_FOUND,
            "text/html",
            "<html><body>404 page not found</body></html>".to_owned(),
        )),
        Some(Fault::Hangs) => {
            let _ = rules.changed().await;
            bail!("it hung")
        }
        Some(Fault::DoneAndRefused) => {
            forward.await?;
            refusal(500)
        }
        None => {
            let (mut parts, body) = forward.await?.into_parts();
            parts.headers.remove(header::TRANSFER_ENCODING);
            let changed = async move { drop(rules.changed().await) };
            let stream = Body::new(body).into_data_stream();
            let stream = stream.take_until(Box::pin(changed));
            Ok(Response::from_parts(parts, Body::from_stream(stream)))
        }
    }
}

/// The headers that mean something to the API server.
fn kept(all: &HeaderMap) -> HeaderMap {
    let mut kept = HeaderMap::new();
    for name in [header::ACCEPT, header::CONTENT_TYPE, header::USER_AGENT] {
        if let Some(value) = all.get(&name) {
            kept.insert(name, value.clone());
        }
    }
    kept
}

/// A failure as the API server words it.
fn refusal(code: u16) -> Result<Response> {
    let reason = match code {
        403 => "Forbidden",
        404 => "NotFound",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        _ => "InternalError",
    };
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code,
        "reason": reason, "message": format!("the test's proxy answers {code}"),
    });
    let code = StatusCode::from_u16(code)?;
    let mut response = plain(code, "application/json", status.to_string());
    if code == StatusCode::TOO_MANY_REQUESTS {
        let headers = response.headers_mut();
        headers.insert(header::RETRY_AFTER, http::HeaderValue::from_static("1"));
    }
    Ok(response)
}

fn plain(code: StatusCode, kind: &'static str, text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, http::HeaderValue::from_static(kind));
    response
}
