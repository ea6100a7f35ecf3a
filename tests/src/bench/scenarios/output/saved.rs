//! What the Boxes of a namespace say about themselves and their output.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use boxes_crds::{BoxObject, OutputState, OutputStatus, State};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};

/// How long boxes may take to start, or to be saved.
const PATIENCE: Duration = Duration::from_mins(3);
const PACE: Duration = Duration::from_millis(200);

/// Waits until so many run.
pub(super) async fn all_run(client: &Client, namespace: &str, count: usize) -> Result<()> {
    let run = |object: &BoxObject| {
        let state = object.status.as_ref()?.state.as_deref()?;
        (state == State::Running.as_str()).then_some(())
    };
    all(client, namespace, count, "run", run).await.map(drop)
}

/// Waits until the output of so many is final; by name.
pub(super) async fn all_saved(
    client: &Client,
    namespace: &str,
    count: usize,
) -> Result<BTreeMap<String, OutputStatus>> {
    let saved = |object: &BoxObject| {
        let output = object.status.as_ref()?.output.as_ref()?;
        let is_final = OutputState::parse(&output.state)?.is_final();
        is_final.then(|| (object.name_any(), output.clone()))
    };
    let found = all(client, namespace, count, "are saved", saved).await?;
    Ok(found.into_iter().collect())
}

async fn all<T>(
    client: &Client,
    namespace: &str,
    count: usize,
    what: &str,
    find: impl Fn(&BoxObject) -> Option<T>,
) -> Result<Vec<T>> {
    let boxes: Api<BoxObject> = Api::namespaced(client.clone(), namespace);
    let began = Instant::now();
    loop {
        let list = boxes.list(&ListParams::default()).await;
        let list = list.context("cannot list the boxes")?;
        let found: Vec<_> = list.iter().filter_map(&find).collect();
        if found.len() >= count {
            return Ok(found);
        }
        if began.elapsed() > PATIENCE {
            bail!("{} of {count} boxes {what}", found.len());
        }
        tokio::time::sleep(PACE).await;
    }
}
