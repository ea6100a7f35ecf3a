//! The collector of a node: saves the output of the pod, says so, and lets go.

use boxes_crds::{OUTPUT_ANNOTATION, OUTPUT_FINALIZER, OutputStatus};
use k8s_openapi::api::core::v1::Pod;

use super::api::{Cluster, is_terminal};

#[derive(Clone, Debug, Default)]
pub(crate) struct Collector {
    /// It does nothing.
    pub silent: bool,
    /// How many moments it takes after the end.
    pub takes: usize,
    /// What it said it saved.
    pub said: Option<OutputStatus>,
    /// Its node was given up at some time, perhaps for good.
    pub node_was_lost: bool,
    waited: usize,
}

impl Collector {
    pub(crate) fn that_takes(moments: usize) -> Self {
        Self {
            takes: moments,
            ..Self::default()
        }
    }

    pub(crate) fn step(&mut self, cluster: &mut Cluster, partitioned: bool) {
        self.node_was_lost |= cluster
            .node
            .is_none_or(|node| node.out_of_service && !node.ready);
        let held = cluster.pod.as_ref().is_some_and(holds);
        if self.silent || partitioned || cluster.node.is_none() || !held {
            return;
        }
        let deleted = cluster
            .object
            .as_ref()
            .is_none_or(|object| object.metadata.deletion_timestamp.is_some());
        let unwanted = deleted || cluster.namespace_terminating;
        let pod = cluster.pod.as_ref();
        if unwanted && pod.is_some_and(|pod| pod.metadata.deletion_timestamp.is_some()) {
            cluster.let_output_go(None);
        } else if pod.is_some_and(has_ended) {
            self.waited += 1;
            if self.waited > self.takes {
                self.save(cluster);
            }
        }
    }

    fn save(&mut self, cluster: &mut Cluster) {
        let partial = self.takes % 2 == 1;
        let said = OutputStatus {
            state: if partial { "Partial" } else { "Saved" }.to_owned(),
            bytes: 7,
            truncated: partial,
            message: if partial { "a gap" } else { "" }.to_owned(),
        };
        cluster.let_output_go(Some(&said));
        self.said = Some(said);
    }
}

fn holds(pod: &Pod) -> bool {
    let mut all = pod.metadata.finalizers.iter().flatten();
    all.any(|name| name == OUTPUT_FINALIZER)
}

/// As the kubelet says it.
fn has_ended(pod: &Pod) -> bool {
    let bound = pod
        .spec
        .as_ref()
        .is_some_and(|spec| spec.node_name.is_some());
    let statuses = pod.status.iter().flat_map(|it| &it.container_statuses);
    let mut ours = statuses.flatten().filter(|it| it.name == "box");
    let terminated = ours.any(|it| {
        let state = it.state.as_ref();
        state.is_some_and(|state| state.terminated.is_some())
    });
    bound && (terminated || is_terminal(pod))
}

impl Cluster {
    fn let_output_go(&mut self, said: Option<&OutputStatus>) {
        let Some(pod) = &mut self.pod else { return };
        let finalizers = pod.metadata.finalizers.get_or_insert_default();
        finalizers.retain(|name| name != OUTPUT_FINALIZER);
        if let Some(said) = said {
            let text = serde_json::to_string(said).unwrap();
            let all = pod.metadata.annotations.get_or_insert_default();
            all.insert(OUTPUT_ANNOTATION.to_owned(), text);
        }
        self.touch_pod();
        self.collect();
    }
}
