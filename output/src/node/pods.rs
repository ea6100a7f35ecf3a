//! The pods of the node that hold their output for us, from their first event to being let go.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use boxes_crds::OutputStatus;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use tokio::time::sleep;

use super::owner::{Owner, owner};
use super::pod;
use super::release::{release, said};
use crate::archive::RunKey;
use crate::collector::{Assignment, Collector, Ended, Outcome};

/// How long until a call to the API server is tried again.
const AGAIN: Duration = Duration::from_secs(5);

/// A pod that is held.
#[derive(Clone, Debug)]
struct Known {
    pod: Arc<Pod>,
    assignment: Assignment,
    /// Whether the pod is gone from the API server.
    vanished: bool,
}

/// What the collector knows of its node.
pub(crate) struct Pods {
    client: Client,
    collector: Collector,
    known: HashMap<RunKey, Known>,
    /// The runs of a list that is being taken.
    listed: Option<Vec<RunKey>>,
}

impl Pods {
    pub(crate) fn new(client: Client, collector: Collector) -> Self {
        Self {
            client,
            collector,
            known: HashMap::new(),
            listed: None,
        }
    }

    pub(crate) fn begin_list(&mut self) {
        self.listed = Some(Vec::new());
    }

    /// A whole list was taken: what is not on it has vanished.
    pub(crate) fn end_list(&mut self) {
        let listed = self.listed.take().unwrap_or_default();
        let gone = self.known.keys().filter(|run| !listed.contains(run));
        for run in gone.cloned().collect::<Vec<_>>() {
            self.vanish(&run);
        }
    }

    /// A pod as it is now.
    pub(crate) fn see(&mut self, pod: Pod) {
        let Some(assignment) = pod::assignment(&pod) else {
            if pod::holds(&pod) {
                tracing::warn!(
                    namespace = pod.metadata.namespace,
                    pod = pod.metadata.name,
                    "a pod holds output and does not say whose; it is left alone"
                );
            }
            self.let_go(&pod);
            return;
        };
        if let Some(listed) = &mut self.listed {
            listed.push(assignment.run.clone());
        }
        self.collector.assign(assignment.clone());
        let known = Known {
            pod: Arc::new(pod),
            vanished: false,
            assignment,
        };
        self.known.insert(known.assignment.run.clone(), known);
    }

    /// A pod is gone, or our finalizer is.
    fn let_go(&mut self, pod: &Pod) {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let run = self.known.keys().find(|run| run.pod_uid.as_str() == uid);
        if let Some(run) = run.cloned() {
            self.vanish(&run);
        }
    }

    pub(crate) fn delete(&mut self, pod: &Pod) {
        self.let_go(pod);
    }

    /// Somebody else took our finalizer away: what is still there to read is read.
    fn vanish(&mut self, run: &RunKey) {
        let Some(known) = self.known.get_mut(run) else {
            return;
        };
        known.vanished = true;
        if known.assignment.ended == Ended::No {
            known.assignment.ended = Ended::Unknown;
        }
        self.collector.assign(known.assignment.clone());
    }

    /// An output is saved: the pod is let go.
    pub(crate) fn save(&mut self, outcome: &Outcome) {
        let manifest = &outcome.manifest;
        let Some(known) = self.known.remove(&manifest.run) else {
            return;
        };
        tracing::info!(
            namespace = outcome.assignment.namespace,
            name = outcome.assignment.name,
            state = manifest.state.as_str(),
            bytes = manifest.bytes,
            gaps = manifest.gap_count,
            "the output of a box is saved"
        );
        self.collector.forget(&manifest.run);
        if !known.vanished {
            let said = said(manifest);
            tokio::spawn(release_at_last(self.client.clone(), known.pod, Some(said)));
        }
    }

    /// Lets pods go whose Box, or its namespace, is being deleted. Only pods that are being deleted
    /// are asked about: that is what the deletion of a Box comes to.
    pub(crate) async fn let_unwanted_go(&mut self) {
        let leaving =
            |known: &&Known| known.vanished || known.pod.metadata.deletion_timestamp.is_some();
        let asked: Vec<_> = self.known.values().filter(leaving).cloned().collect();
        for known in asked {
            match owner(&self.client, &known.assignment.label()).await {
                Ok(Owner::Wanted) => {}
                Ok(Owner::Leaving | Owner::Gone) => self.drop_unsaved(&known).await,
                Err(error) => tracing::warn!(error = %error, "a box could not be read"),
            }
        }
    }

    async fn drop_unsaved(&mut self, known: &Known) {
        let label = known.assignment.label();
        tracing::info!(
            namespace = label.namespace,
            name = label.name,
            "a box is being deleted; its output is not waited for"
        );
        if !known.vanished
            && let Err(error) = release(&self.client, &known.pod, None).await
        {
            tracing::warn!(error = %error, "a pod could not be let go; trying again");
            return;
        }
        self.known.remove(&known.assignment.run);
        self.collector.forget(&known.assignment.run);
    }
}

/// Until the API server takes it. A restart in between repeats it: the manifest is there.
async fn release_at_last(client: Client, pod: Arc<Pod>, said: Option<OutputStatus>) {
    while let Err(error) = release(&client, &pod, said.as_ref()).await {
        tracing::warn!(error = %error, "a pod could not be let go; trying again");
        sleep(AGAIN).await;
    }
}
