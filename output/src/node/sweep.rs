//! Deletes the output of Boxes that are gone.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant, SystemTime};

use boxes_crds::BoxObject;
use boxes_program::Election;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};

use super::owner::{Owner, owner};
use super::patience::in_time;
use crate::archive::{Archive, Uid};

/// The time between two passes, and between the two reads that find no Box.
const PACE: Duration = Duration::from_mins(1);
/// How long a collector that sweeps may be silent before another one does.
pub(crate) const SILENT: Duration = Duration::from_mins(5);
/// After so many passes in a row that failed, another one may try.
const TRIES: u32 = 5;
/// How many Boxes a list gives at once.
const PAGE: u32 = 500;
/// How old what nobody owns must be.
const ABANDONED: Duration = Duration::from_hours(24);

/// Sweeps for ever, while the lease is held. What fails is tried in the next pass; a failure deletes
/// nothing. After some of them another collector may try, which perhaps reaches what this one cannot.
pub(crate) async fn sweep(client: Client, archive: Archive, mut election: Election) {
    let (mut absent, mut failures) = (Absent::default(), 0_u32);
    loop {
        tokio::time::sleep(PACE).await;
        let Err(error) = turn(&client, &archive, &mut absent, &mut election).await else {
            failures = 0;
            continue;
        };
        tracing::warn!(error = %error, "the archive was not swept");
        failures += 1;
        if failures.is_multiple_of(TRIES)
            && let Err(error) = in_time(election.release()).await
        {
            tracing::warn!(error = %error, "the sweeper's lease was not given up");
        }
    }
}

/// A pass, if no other collector makes them. Two would do no harm, and a hundred would ask the same
/// questions a hundred times.
pub(crate) async fn turn(
    client: &Client,
    archive: &Archive,
    absent: &mut Absent,
    election: &mut Election,
) -> anyhow::Result<()> {
    if in_time(election.attempt()).await? {
        pass(client, archive, absent).await?;
    }
    Ok(())
}

pub(crate) async fn pass(
    client: &Client,
    archive: &Archive,
    absent: &mut Absent,
) -> anyhow::Result<()> {
    archive.claim().await?;
    let kept = archive.boxes().await?;
    // The list only spares questions: absence is what a live read of each says.
    let listed = listed(client).await?;
    let suspects: Vec<Uid> = kept
        .into_iter()
        .filter(|uid| !listed.contains(uid.as_str()))
        .collect();
    absent.keep_only(&suspects);
    for uid in suspects {
        if let Err(error) = look_at(client, archive, absent, &uid).await {
            tracing::warn!(uid = uid.as_str(), error = %error, "output is kept");
        }
    }
    Ok(())
}

/// Deletes the output of one Box if it is gone.
async fn look_at(
    client: &Client,
    archive: &Archive,
    absent: &mut Absent,
    uid: &Uid,
) -> anyhow::Result<()> {
    let label = archive.label(uid).await?;
    let gone = match &label {
        Some(label) => in_time(owner(client, label)).await? == Owner::Gone,
        None => is_abandoned(archive, uid).await?,
    };
    if absent.seen(uid, gone, Instant::now()) {
        archive.delete(uid).await?;
        tracing::info!(
            namespace = label.as_ref().map(|label| label.namespace.as_str()),
            name = label.as_ref().map(|label| label.name.as_str()),
            uid = uid.as_str(),
            "the output of a deleted box is deleted"
        );
    }
    Ok(())
}

/// Whether nothing was written for long of what nobody says whose it is: a collector wrote on while
/// the output was deleted.
pub(crate) async fn is_abandoned(archive: &Archive, uid: &Uid) -> anyhow::Result<bool> {
    let age = match archive.newest(uid).await? {
        Some(written) => SystemTime::now()
            .duration_since(written)
            .unwrap_or_default(),
        None => Duration::MAX,
    };
    Ok(age >= ABANDONED)
}

async fn listed(client: &Client) -> anyhow::Result<HashSet<String>> {
    let boxes = Api::<BoxObject>::all(client.clone());
    let mut uids = HashSet::new();
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = in_time(boxes.list_metadata(&params)).await?;
        uids.extend(page.items.iter().filter_map(ResourceExt::uid));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(uids),
        }
    }
}

/// Since when Boxes are seen to be gone.
#[derive(Debug, Default)]
pub(crate) struct Absent(HashMap<Uid, Instant>);

impl Absent {
    fn keep_only(&mut self, uids: &[Uid]) {
        self.0.retain(|uid, _| uids.contains(uid));
    }

    /// Whether it was seen to be gone before, long enough ago.
    fn seen(&mut self, uid: &Uid, gone: bool, now: Instant) -> bool {
        if !gone {
            self.0.remove(uid);
            return false;
        }
        let since = *self.0.entry(uid.clone()).or_insert(now);
        now.duration_since(since) >= PACE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_is_gone_when_it_was_seen_to_be_twice() {
        let (mut absent, uid, now) = (Absent::default(), Uid::parse("u").unwrap(), Instant::now());
        assert!(!absent.seen(&uid, true, now));
        assert!(!absent.seen(&uid, true, now + PACE / 2));
        assert!(!absent.seen(&uid, false, now + PACE));
        assert!(!absent.seen(&uid, true, now + PACE), "it begins anew");
        assert!(absent.seen(&uid, true, now + PACE * 2));
        absent.keep_only(&[]);
        assert!(!absent.seen(&uid, true, now + PACE * 3));
    }
}
