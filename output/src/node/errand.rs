//! One call on the API server about a pod.

use std::sync::Arc;

use boxes_crds::OutputStatus;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;

use super::known::{Known, Stage};
use super::owner::{Owner, owner};
use super::patience::in_time;
use super::release::release;
use crate::archive::{Label, RunKey};

/// What is to be done.
#[derive(Debug)]
pub(crate) struct Errand {
    run: RunKey,
    what: What,
}

#[derive(Debug)]
enum What {
    Ask(Label),
    Release(Arc<Pod>, Option<OutputStatus>),
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct News {
    pub(crate) run: RunKey,
    pub(crate) told: anyhow::Result<Told>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Owner(Owner),
    /// The pod is not held any more.
    Released,
}

impl Errand {
    pub(crate) fn of(run: &RunKey, known: &Known) -> Self {
        let what = match &known.stage {
            Stage::Collecting => What::Ask(known.assignment.label()),
            Stage::Releasing(said) => What::Release(known.pod.clone(), said.clone()),
        };
        Self {
            run: run.clone(),
            what,
        }
    }

    pub(crate) async fn run(self, client: Client) -> News {
        let told = match &self.what {
            What::Ask(label) => in_time(owner(&client, label)).await.map(Told::Owner),
            What::Release(pod, said) => in_time(release(&client, pod, said.as_ref()))
                .await
                .map(|()| Told::Released),
        };
        News {
            run: self.run,
            told,
        }
    }
}
