//! Makes Boxes.

use std::time::Duration;

use anyhow::Result;
use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use tokio::time::Instant;

use super::cluster_access::{boxes_in, create};
use super::manifest::{Place, a_box};
use super::observer::Observer;

/// How many requests are under way at once in a burst.
const PARALLEL: usize = 32;

/// Makes Boxes as fast as the API server takes them.
pub(super) async fn burst(
    client: &Client,
    namespace: &str,
    observer: &Observer,
    count: usize,
) -> Result<()> {
    stream::iter(0..count)
        .map(|number| make(client, namespace, observer, number))
        .buffer_unordered(PARALLEL)
        .try_collect()
        .await
}

/// Makes Boxes at a pace, whatever becomes of them.
pub(super) async fn steady(
    client: &Client,
    namespace: &str,
    observer: &Observer,
    count: usize,
    each: Duration,
) -> Result<()> {
    let begin = Instant::now();
    let numbers = stream::iter(0..count).then(|number| async move {
        let number_32 = u32::try_from(number).unwrap_or(u32::MAX);
        tokio::time::sleep_until(begin + each * number_32).await;
        number
    });
    numbers
        .map(|number| make(client, namespace, observer, number))
        .buffer_unordered(PARALLEL)
        .try_collect()
        .await
}

async fn make(client: &Client, namespace: &str, observer: &Observer, number: usize) -> Result<()> {
    let name = format!("task-{number}");
    let manifest = a_box(&name, Place::Kwok);
    observer.create(&name);
    create(client, &boxes_in(namespace), &manifest)
        .await
        .map(drop)
}
