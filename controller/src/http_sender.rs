//! The HTTP client of the exporter of traces: HTTP/1.1, over the libraries that kube brings. That of
//! `opentelemetry-http` would bring HTTP/2.

use std::time::Duration;

use async_trait::async_trait;
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};

/// An answer of OTLP is a few bytes; one that is larger is not read to its end.
const LARGEST: usize = 64 << 10;

/// Sends requests, each within a time.
#[derive(Debug)]
pub(crate) struct HttpSender {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    timeout: Duration,
}

impl HttpSender {
    pub(crate) fn new(connector: HttpsConnector<HttpConnector>, timeout: Duration) -> Self {
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Self { client, timeout }
    }

    async fn answer(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let response = self.client.request(request.map(Full::new)).await?;
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, LARGEST).collect().await?;
        Ok(Response::from_parts(parts, body.to_bytes()))
    }
}

#[async_trait]
impl HttpClient for HttpSender {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        tokio::time::timeout(self.timeout, self.answer(request)).await?
    }
}
