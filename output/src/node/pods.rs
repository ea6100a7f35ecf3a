//! The pods of the node that hold their output for us, from their first event to being let go.
//!
//! Nothing here waits for the API server: calls are errands, at most one for a pod at a time, and
//! what came of them is heard later.

use std::collections::HashMap;

use boxes_crds::OutputStatus;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::errand::{Errand, News, Told};
use super::known::{Known, Stage};
use super::owner::Owner;
use super::pod;
use super::release::said;
use crate::archive::RunKey;
use crate::collector::{Collector, Outcome};

/// What the collector knows of its node.
pub(crate) struct Pods {
    client: Client,
    collector: Collector,
    known: HashMap<RunKey, Known>,
    /// The runs of a list that is being taken.
    listed: Option<Vec<RunKey>>,
    errands: JoinSet<News>,
    /// Whether a whole list was taken.
    complete: bool,
}

impl Pods {
    pub(crate) fn new(client: Client, collector: Collector) -> Self {
        Self {
            client,
            collector,
            known: HashMap::new(),
            listed: None,
            errands: JoinSet::new(),
            complete: false,
        }
    }

    /// How many pods are known.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.known.len()
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
        self.complete = true;
    }

    /// Whether the files of all pods are held.
    pub(crate) fn is_ready(&self) -> bool {
        self.complete && self.collector.holds_all()
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
        let run = assignment.run.clone();
        match self.known.get_mut(&run) {
            Some(known) => known.update(pod, assignment),
            None => drop(self.known.insert(run.clone(), Known::new(pod, assignment))),
        }
        self.assign(&run);
    }

    /// Tells the collector what is known of a run.
    fn assign(&mut self, run: &RunKey) {
        if let Some(known) = self.known.get(run).filter(|known| known.is_collected()) {
            self.collector.assign(known.assignment.clone());
        }
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
        if known.is_collected() {
            known.vanish();
            self.assign(run);
        } else {
            self.known.remove(run);
        }
    }

    /// An output is saved: the pod is let go.
    pub(crate) fn save(&mut self, outcome: &Outcome) {
        let manifest = &outcome.manifest;
        if !self.known.contains_key(&manifest.run) {
            return;
        }
        tracing::info!(
            namespace = outcome.assignment.namespace,
            name = outcome.assignment.name,
            state = manifest.state.as_str(),
            bytes = manifest.bytes,
            gaps = manifest.gap_count,
            "the output of a box is saved"
        );
        self.release(&manifest.run, Some(said(manifest)));
    }

    /// Collects no more of a pod, and lets it go. It stays known until that is done.
    fn release(&mut self, run: &RunKey, said: Option<OutputStatus>) {
        self.collector.forget(run);
        match self.known.get_mut(run) {
            Some(known) if !known.vanished => known.enter(Stage::Releasing(said)),
            Some(_) | None => drop(self.known.remove(run)),
        }
    }

    /// Asks what is to be asked by now.
    pub(crate) fn send_out(&mut self) {
        let now = Instant::now();
        for (run, known) in &mut self.known {
            if known.is_due(now) {
                known.out = true;
                let errand = Errand::of(run, known);
                self.errands.spawn(errand.run(self.client.clone()));
            }
        }
    }

    /// What came of an errand; `None` while none is out.
    pub(crate) async fn news(&mut self) -> Option<News> {
        // An errand does not panic.
        self.errands.join_next().await?.ok()
    }

    /// Takes what came of an errand.
    pub(crate) fn hear(&mut self, news: News) {
        let Some(known) = self.known.get_mut(&news.run) else {
            return;
        };
        known.out = false;
        match news.told {
            Ok(Told::Released) => drop(self.known.remove(&news.run)),
            Ok(Told::Owner(owner)) if known.is_collected() => self.hear_of_owner(&news.run, owner),
            // It was saved meanwhile.
            Ok(Told::Owner(_)) => {}
            Err(error) => {
                self.collector.stats().count_error("api");
                tracing::warn!(error = %error, "a call on the API server failed; trying again");
                known.again();
            }
        }
    }

    fn hear_of_owner(&mut self, run: &RunKey, owner: Owner) {
        let Some(known) = self.known.get_mut(run) else {
            return;
        };
        // The Box of a pod that runs on may be being deleted: until its pod is, it can be read.
        if owner == Owner::Wanted || (owner == Owner::Leaving && !known.is_leaving()) {
            known.confirm();
            return self.assign(run);
        }
        let label = known.assignment.label();
        tracing::info!(
            namespace = label.namespace,
            name = label.name,
            "a box is deleted or is being deleted; its output is not waited for"
        );
        self.release(run, None);
    }
}
