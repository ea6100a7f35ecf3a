//! The collectors of the cluster under test, to be disturbed.

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::controller::{NAMESPACE, is_ready};
use super::watch::{PATIENCE, first, gone, until};
use super::world::World;

const DAEMON_SET: &str = "boxes-collector";
/// What the collectors' pods are found by.
pub(crate) const COLLECTOR: &str =
    "app.kubernetes.io/name=boxes,app.kubernetes.io/component=collector";

/// A label that no node has.
const NOWHERE: &str = "example.org/no-such-node";

/// The collectors.
#[derive(Clone)]
pub struct Collectors {
    client: Client,
}

impl Collectors {
    /// Those of the cluster under test.
    #[must_use]
    pub fn of(world: &World) -> Self {
        Self {
            client: world.client(),
        }
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    async fn list(&self) -> Result<Vec<Pod>> {
        let list = self
            .pods()
            .list(&ListParams::default().labels(COLLECTOR))
            .await;
        Ok(list.context("cannot list the collectors")?.items)
    }

    /// Kills the processes of this machine's collectors at once, and their pods with them: the kubelet
    /// would take longer each time to start them again. Waits until others work. How many there were.
    ///
    /// # Errors
    /// When they cannot be listed, or no others come.
    pub async fn kill(&self) -> Result<usize> {
        let mut killed = 0;
        let all = self.list().await?;
        for pod in &all {
            let uid = pod.uid().context("a pod without a UID")?;
            for pid in processes(&uid, "boxes-collector") {
                killed += usize::from(kill_process(pid, Signal::KILL).is_ok());
            }
            let at_once = DeleteParams::default().grace_period(0);
            self.pods().delete(&pod.name_any(), &at_once).await?;
        }
        for pod in &all {
            self.is_followed(pod).await?;
        }
        Ok(killed)
    }

    /// Waits until another collector works where this one did.
    async fn is_followed(&self, old: &Pod) -> Result<()> {
        let node = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
        let (there, uid) = (node(old), old.uid());
        first(&self.pods(), COLLECTOR, "another collector", |pod| {
            let is = is_ready(pod) && pod.uid() != uid && node(pod) == there;
            is.then_some(())
        })
        .await
    }

    /// Takes them all away, and waits until they are gone.
    ///
    /// # Errors
    /// When they stay.
    pub async fn pause(&self) -> Result<()> {
        let old = self.list().await?;
        self.select(json!({NOWHERE: "true"})).await?;
        for pod in old {
            gone(&self.pods(), &pod.name_any(), pod.metadata.uid.as_deref()).await?;
        }
        Ok(())
    }

    /// Brings them back, and waits until they work.
    ///
    /// # Errors
    /// When they do not come.
    pub async fn resume(&self) -> Result<()> {
        self.select(json!({NOWHERE: null})).await?;
        self.are_ready().await
    }

    pub(super) async fn are_ready(&self) -> Result<()> {
        let ready = |set: Option<&DaemonSet>| {
            let (set, status) = (set?, set?.status.as_ref()?);
            let seen = status.observed_generation == set.metadata.generation;
            let wanted = status.desired_number_scheduled;
            (seen && wanted > 0 && status.number_ready == wanted).then_some(())
        };
        until(
            &self.sets(),
            DAEMON_SET,
            "ready collectors",
            PATIENCE,
            ready,
        )
        .await
    }

    fn sets(&self) -> Api<DaemonSet> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    async fn select(&self, labels: Value) -> Result<()> {
        let patch = json!({"spec": {"template": {"spec": {"nodeSelector": labels}}}});
        let params = PatchParams::default();
        let (sets, patch) = (self.sets(), Patch::Merge(patch));
        let patched = sets.patch(DAEMON_SET, &params, &patch).await;
        patched.map(drop).context("cannot move the collectors")
    }
}

/// The processes of a program in a pod on this machine, by the pod's UID in their control groups.
pub(crate) fn processes(pod_uid: &str, program: &str) -> Vec<Pid> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter(|entry| {
        let read = |file| std::fs::read_to_string(entry.path().join(file)).unwrap_or_default();
        read("cgroup").contains(pod_uid) && read("cmdline").contains(program)
    })
    .filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
    .collect()
}
