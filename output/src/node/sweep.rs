//! Deletes the output of Boxes that are gone.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use boxes_crds::BoxObject;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};

use super::owner::{Owner, owner};
use crate::archive::{Archive, Uid};

/// The time between two passes, and between the two reads that find no Box.
const PACE: Duration = Duration::from_mins(1);
/// How many Boxes a list gives at once.
const PAGE: u32 = 500;

/// Sweeps for ever. What fails is tried in the next pass; a failure deletes nothing.
pub(crate) async fn sweep(client: Client, archive: Archive) {
    let mut absent = Absent::default();
    loop {
        tokio::time::sleep(PACE).await;
        if let Err(error) = pass(&client, &archive, &mut absent).await {
            tracing::warn!(error = %error, "the archive was not swept");
        }
    }
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
        let Some(label) = archive.label(&uid).await? else {
            tracing::warn!(
                uid = uid.as_str(),
                "the archive does not say whose output this is; it is kept"
            );
            continue;
        };
        let gone = owner(client, &label).await? == Owner::Gone;
        if absent.seen(&uid, gone, Instant::now()) {
            archive.delete(&uid).await?;
            tracing::info!(
                namespace = label.namespace,
                name = label.name,
                uid = uid.as_str(),
                "the output of a deleted box is deleted"
            );
        }
    }
    Ok(())
}

async fn listed(client: &Client) -> Result<HashSet<String>, kube::Error> {
    let boxes = Api::<BoxObject>::all(client.clone());
    let mut uids = HashSet::new();
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = boxes.list_metadata(&params).await?;
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
