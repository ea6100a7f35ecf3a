//! Which cluster an archive belongs to. Of two clusters on one archive, each would take the other's
//! boxes for deleted ones.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;

use super::error::{Error, Result};
use super::key::Uid;
use super::layout;
use super::store::{Archive, Put, json};

/// What the archive says.
#[derive(Debug, Serialize, Deserialize)]
struct Owner {
    /// The UID of the cluster's namespace `kube-system`.
    uid: Uid,
}

/// A cluster that an archive is used by.
#[derive(Clone, Debug)]
pub(crate) struct Cluster {
    uid: Uid,
    claimed: Arc<OnceCell<()>>,
}

impl Archive {
    /// The archive as used by one cluster, known by the UID of its namespace `kube-system`. No output
    /// is written before [`Archive::claim`] succeeded, which the first writer sees to.
    #[must_use]
    pub fn of_cluster(mut self, uid: Uid) -> Self {
        let claimed = Arc::default();
        self.cluster = Some(Cluster { uid, claimed });
        self
    }

    /// Makes the archive the cluster's, for good. Asks anew each time.
    ///
    /// # Errors
    /// It is another cluster's, or does not answer.
    pub async fn claim(&self) -> Result<()> {
        match &self.cluster {
            Some(cluster) => self.claim_for(&cluster.uid).await,
            None => Ok(()),
        }
    }

    /// Claims it once: what the archive said holds for as long as this process runs.
    pub(crate) async fn claimed(&self) -> Result<()> {
        let Some(cluster) = &self.cluster else {
            return Ok(());
        };
        let claim = || self.claim_for(&cluster.uid);
        cluster.claimed.get_or_try_init(claim).await.copied()
    }

    /// Reads before it writes: of an archive that is full, the output of deleted boxes is to go.
    async fn claim_for(&self, uid: &Uid) -> Result<()> {
        let path = layout::cluster(&self.root);
        if let Some(owner) = self.get_json::<Owner>(&path).await? {
            return owner.is(uid);
        }
        let owner = Owner { uid: uid.clone() };
        if self.create(&path, &json(&owner)?).await? == Put::Done {
            return Ok(());
        }
        match self.get_json::<Owner>(&path).await? {
            Some(owner) => owner.is(uid),
            None => Err(Error::NotFound {
                what: path.to_string(),
            }),
        }
    }
}

impl Owner {
    fn is(&self, uid: &Uid) -> Result<()> {
        if self.uid == *uid {
            return Ok(());
        }
        Err(Error::Foreign {
            cluster: self.uid.to_string(),
        })
    }
}
