//! A played node with a folder of logs, the archive of its collector, and the boxes that run on it.

use anyhow::{Context, Result, ensure};
use boxes_crds::{OutputState, OutputStatus};
use boxes_output::archive::{Archive, RunKey, Uid};
use boxes_tests::harness::{
    HostCollector, LiveBox, PlayedLog, PlayedNode, Reason, State, World, a_box,
};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::archived::{Address, Archived};

/// A played node whose kubelet says that it lives for as long as this does.
pub(crate) struct Machine<'a> {
    pub(crate) world: &'a World,
    node: PlayedNode,
    logs: TempDir,
    address: Address,
    read_at: Address,
    _beats: JoinSet<()>,
}

/// A box that runs there.
pub(crate) struct Running {
    pub(crate) it: LiveBox,
    pub(crate) pod: Pod,
    pub(crate) log: PlayedLog,
    pub(crate) node: PlayedNode,
    pub(crate) archive: Archive,
    run: RunKey,
}

impl<'a> Machine<'a> {
    /// A node of the test's own, without a collector.
    pub(crate) async fn new(world: &'a World, address: Address) -> Result<Self> {
        let node = world.played_node().await?;
        let mut beats = JoinSet::new();
        let beating = node.clone();
        beats.spawn(async move { beating.beats().await });
        Ok(Self {
            world,
            node,
            logs: tempfile::tempdir()?,
            read_at: address.clone(),
            address,
            _beats: beats,
        })
    }

    /// The test itself reaches the archive in another way than the collector.
    pub(crate) fn read_at(self, read_at: Address) -> Self {
        Self { read_at, ..self }
    }

    /// Starts its collector.
    pub(crate) fn collector(&self) -> Result<HostCollector> {
        let Address { url, settings } = &self.address;
        self.world
            .host_collector(&self.node, self.logs.path(), url, settings)
    }

    /// A box that runs here and has written nothing.
    pub(crate) async fn runs(&self, name: &str) -> Result<Running> {
        let it = self.node.takes(a_box(name)).runs(["true"]);
        let it = it.create(self.world).await?;
        let pod = self.node.runs(&it).await?;
        it.is(State::Running).await?;
        let uid = pod.uid().context("a pod without a UID")?;
        Ok(Running {
            run: RunKey::first(Uid::parse(it.uid())?, Uid::parse(&uid)?),
            log: PlayedLog::open(self.logs.path(), &pod)?,
            archive: self.read_at.open()?,
            node: self.node.clone(),
            it,
            pod,
        })
    }
}

impl Running {
    /// Its command returns 3, and that is recorded.
    pub(crate) async fn ends(&mut self) -> Result<()> {
        self.log.close();
        self.node.ends(&self.pod, 3).await?;
        let ended = self.it.ends_as(State::Exited, Reason::Exit).with_code(3);
        ended.await.map(drop)
    }

    /// It ended while its node was down.
    pub(crate) async fn ends_unseen(&mut self) -> Result<()> {
        self.log.close();
        self.node.ends_unseen(&self.pod).await.map(drop)
    }

    /// What is in the archive now.
    pub(crate) async fn archived(&self) -> Result<Archived> {
        Archived::read(&self.archive, &self.run).await
    }

    /// Waits until everything that was written so far is in the archive.
    pub(crate) async fn is_stored(&self) -> Result<()> {
        let length = self.log.written().both.len();
        Archived::reaches(&self.archive, &self.run, length).await
    }

    /// Its record says that the pod waits for its output.
    pub(crate) async fn waits_for_its_output(&self) -> Result<String> {
        let pending = self.it.wait_for("CleanedUp=False/OutputPending", |object| {
            pending(object).is_some()
        });
        pending_message(&pending.await?)
    }

    /// Exactly what was written is in the archive, the record says so, and the pod is gone.
    pub(crate) async fn is_saved_whole(&self) -> Result<()> {
        let said = self.is_final(OutputState::Saved).await?;
        ensure!(!said.truncated && said.message.is_empty(), "{said:?}");
        self.it.has_condition("OutputSaved", "True").await?;
        let archived = self.archived().await?;
        ensure!(archived.gaps.is_empty(), "{:?}", archived.gaps);
        archived.is_of(&said)?;
        archived.holds(self.log.written())
    }

    /// The record says that some is missing and what, the pod is gone, and what is there is given.
    pub(crate) async fn is_saved_in_part(&self) -> Result<(OutputStatus, Archived)> {
        let said = self.is_final(OutputState::Partial).await?;
        ensure!(said.truncated && !said.message.is_empty(), "{said:?}");
        self.it.has_condition("OutputSaved", "False").await?;
        let archived = self.archived().await?;
        archived.is_of(&said)?;
        Ok((said, archived))
    }

    /// Nobody said what was saved, the record says so, and the pod is gone.
    pub(crate) async fn is_unavailable(&self, because: &str) -> Result<()> {
        let said = self.is_final(OutputState::Unavailable).await?;
        ensure!(
            said.truncated && said.message.contains(because),
            "{said:?} does not say {because:?}"
        );
        self.it.has_condition("OutputSaved", "False").await?;
        Ok(())
    }

    async fn is_final(&self, expected: OutputState) -> Result<OutputStatus> {
        let said = self.it.has_output(expected).await?;
        self.it.is_cleaned_up().await?;
        self.it.has_no_pod_left(&self.pod).await?;
        Ok(said)
    }
}

fn pending(object: &boxes_crds::BoxObject) -> Option<&str> {
    let mut known = object.status.as_ref()?.conditions.iter();
    let said = known.find(|it| it.type_ == "CleanedUp" && it.status == "False")?;
    (said.reason == "OutputPending").then_some(&said.message)
}

fn pending_message(object: &boxes_crds::BoxObject) -> Result<String> {
    let message = pending(object).context("what was just there")?;
    Ok(message.to_owned())
}
