//! A client that follows a box through the API server.

use std::time::Duration;

use anyhow::{Context, Result};
use futures::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};
use kube::Client;
use tokio::task::JoinSet;

use super::clock;

/// No stream is longer.
const PATIENCE: Duration = Duration::from_mins(4);

/// Clients that follow, one for each box.
#[derive(Debug)]
pub(super) struct Followers {
    streams: JoinSet<Result<Vec<Duration>>>,
}

impl Followers {
    /// Begins to follow, each box by its own client.
    pub(super) fn begin(
        client: &Client,
        namespace: &str,
        names: impl Iterator<Item = String>,
    ) -> Self {
        let mut streams = JoinSet::new();
        for name in names {
            let (client, path) = (client.clone(), log_of(namespace, &name));
            streams.spawn(async move {
                let lags = tokio::time::timeout(PATIENCE, follow(&client, &path)).await;
                lags.with_context(|| format!("{path} did not come to its end"))?
            });
        }
        Self { streams }
    }

    /// Waits until all output came to its end. How long each line took from its writing to a client.
    pub(super) async fn end(mut self) -> Result<Vec<Duration>> {
        let mut all = Vec::new();
        while let Some(lags) = self.streams.join_next().await {
            all.append(&mut lags??);
        }
        Ok(all)
    }
}

/// The output of a box in the log API.
pub(super) fn log_of(namespace: &str, name: &str) -> String {
    format!("/apis/output.boxes.run/v1alpha1/namespaces/{namespace}/boxes/{name}/log")
}

/// Reads output whole that is short.
pub(super) async fn read(client: &Client, path: &str) -> Result<String> {
    let mut text = String::new();
    let mut stream = open(client, path).await?;
    let read = stream.read_to_string(&mut text).await;
    read.with_context(|| format!("{path} was cut off"))?;
    Ok(text)
}

async fn open(client: &Client, path: &str) -> Result<impl AsyncBufRead + Unpin + use<>> {
    let request = http::Request::get(path).body(Vec::new())?;
    let stream = client.request_stream(request).await;
    Ok(Box::pin(stream.with_context(|| format!("GET {path}"))?))
}

async fn follow(client: &Client, path: &str) -> Result<Vec<Duration>> {
    let mut stream = open(client, &format!("{path}?follow=true")).await?;
    let (mut lags, mut line) = (Vec::new(), String::new());
    while stream.read_line(&mut line).await.context("cut off")? > 0 {
        lags.push(clock::now()?.saturating_sub(clock::parse(&line)?));
        line.clear();
    }
    Ok(lags)
}
