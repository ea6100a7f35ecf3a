//! A whole run: prepare, measure, clean up, report.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use boxes_program::asked_to_stop;
use kube::Client;

use super::child::Child;
use super::cluster_access::{core, create, get};
use super::controller::Controller;
use super::manifest::LABEL;
use super::report::Report;
use super::scenarios::{self, Scenario};
use super::{cleanup, installed, kubeconfig, kwok};
use crate::cluster::{Cluster, Progress};
use crate::harness::chart_arguments;

/// What to run, and on what.
#[derive(Debug, Clone)]
pub struct Options {
    /// Only these scenarios; all when empty.
    pub only: Vec<Scenario>,
    /// The controller's program.
    pub controller: PathBuf,
    /// The file for the figures.
    pub output: PathBuf,
    /// The figures to compare with.
    pub last: PathBuf,
    /// What was built, for the file.
    pub revision: String,
}

/// What scenarios work with.
pub(super) struct Bench {
    pub(super) client: Client,
    pub(super) admin: PathBuf,
    pub(super) audit_log: PathBuf,
    /// The cluster's programs and their process numbers.
    pub(super) programs: BTreeMap<String, i32>,
    /// For logs and what is removed in the end.
    pub(super) folder: PathBuf,
    program: Option<PathBuf>,
    kubeconfig: Option<PathBuf>,
    pub(super) controller: Option<Controller>,
    pub(super) kwok: Option<Child>,
    /// How many installed controllers there are to be afterwards.
    pub(super) installed: Option<i32>,
    /// The namespace with the finished Boxes of the big burst, and how many they are.
    pub(super) finished: Option<(String, usize)>,
    pub(super) report: Report,
    pub(super) progress: Progress,
}

/// Runs the scenarios and reports. `cluster` must be up, with Boxes installed.
///
/// # Errors
/// When the cluster is not as expected, something does not work, or Ctrl-C is pressed; everything is
/// cleaned up then, too.
pub async fn run(cluster: &Cluster, options: &Options) -> Result<()> {
    let mut bench = Bench::open(cluster, options).await?;
    let measured = tokio::select! {
        done = measure(&mut bench, options) => done,
        () = asked_to_stop() => bail!("stopped as asked"),
    };
    let clean = bench
        .progress
        .step("cleaning up", cleanup::all(&mut bench))
        .await;
    measured.and(clean)?;
    bench.report.finish(options)
}

async fn measure(bench: &mut Bench, options: &Options) -> Result<()> {
    cleanup::nobody_tests(&bench.client).await?;
    let chosen = options.chosen();
    if chosen.iter().any(|it| it.is_of_the_controller()) {
        bench.prepare_controller(&options.controller).await?;
    }
    bench.prepare().await?;
    for scenario in chosen {
        scenarios::run(scenario, bench)
            .await
            .with_context(|| format!("in the scenario {scenario}"))?;
    }
    Ok(())
}

impl Options {
    fn chosen(&self) -> Vec<Scenario> {
        let is_chosen = |it: &Scenario| self.only.is_empty() || self.only.contains(it);
        Scenario::ALL.into_iter().filter(is_chosen).collect()
    }
}

impl Bench {
    async fn open(cluster: &Cluster, options: &Options) -> Result<Self> {
        let status = cluster.status().await;
        if let Some(trouble) = status.trouble {
            bail!("{trouble}");
        }
        let folder = options.output.with_extension("");
        fs::create_dir_all(&folder).context("cannot make the folder for logs")?;
        let admin = cluster.kubeconfig();
        let pids = status.components.into_iter();
        Ok(Self {
            client: kubeconfig::client(&admin).await?,
            audit_log: cluster.audit_log(),
            programs: pids.filter_map(|(name, pid)| Some((name, pid?))).collect(),
            folder: folder.canonicalize()?,
            admin,
            program: None,
            kubeconfig: None,
            controller: None,
            kwok: None,
            installed: None,
            finished: None,
            report: Report::default(),
            progress: Progress::default(),
        })
    }

    /// Puts a controller that can be measured in the place of the installed one.
    async fn prepare_controller(&mut self, program: &Path) -> Result<()> {
        let (progress, client) = (self.progress, self.client.clone());
        let program = program.canonicalize().with_context(|| {
            let path = program.display();
            format!("there is no controller at {path}: `make image` builds it")
        })?;
        self.program = Some(program);
        self.installed = progress
            .step(
                "pausing the installed controller",
                installed::pause(&client),
            )
            .await?;
        let config = kubeconfig::for_the_controller(&client, &self.admin, &self.folder).await?;
        self.kubeconfig = Some(config);
        let kwok = progress
            .step("starting kwok with its nodes", kwok::start(self))
            .await?;
        self.kwok = Some(kwok);
        self.fresh_controller().await.map(drop)
    }

    async fn prepare(&mut self) -> Result<()> {
        self.progress
            .step(
                "removing what an earlier run left",
                cleanup::namespaces(self),
            )
            .await?;
        self.warn_of_others().await
    }

    /// Starts the controller anew and waits until it does nothing.
    pub(super) async fn fresh_controller(&mut self) -> Result<&mut Controller> {
        let client = self.client.clone();
        let started = self.new_controller().await?;
        started.ready().await?;
        started.leads(&client).await?;
        started.idle().await?;
        Ok(started)
    }

    /// Starts the controller and does not wait for anything.
    pub(super) async fn new_controller(&mut self) -> Result<&mut Controller> {
        self.stop_controller().await?;
        let program = self.program.as_ref().context("no program")?;
        let config = self.kubeconfig.as_ref().context("no kubeconfig")?;
        let log = self.folder.join("controller.log");
        let arguments = chart_arguments(&self.client).await?;
        let started = Controller::start(program, config, &arguments, &log)?;
        Ok(self.controller.insert(started))
    }

    pub(super) async fn stop_controller(&mut self) -> Result<()> {
        match self.controller.take() {
            Some(controller) => controller.stop().await,
            None => Ok(()),
        }
    }

    /// The controller that runs.
    pub(super) fn controller(&mut self) -> Result<&mut Controller> {
        self.controller.as_mut().context("no controller runs")
    }

    /// A new namespace for a scenario.
    pub(super) async fn namespace(&self, scenario: &str) -> Result<String> {
        let asked = serde_json::json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "generateName": format!("bench-{scenario}-"),
                "labels": {LABEL: "true"},
            },
        });
        let made = create(&self.client, &core("namespaces"), &asked).await?;
        let name = made
            .pointer("/metadata/name")
            .and_then(|name| name.as_str());
        let name = name.context("a namespace without a name")?.to_owned();
        kwok::default_account(&self.client, &name).await?;
        Ok(name)
    }

    /// Others' Boxes are in the controller's caches, and others' work is on the same CPUs.
    async fn warn_of_others(&mut self) -> Result<()> {
        let list: serde_json::Value = get(&self.client, "/apis/boxes.run/v1alpha1/boxes").await?;
        let others = list["items"].as_array().map_or(0, Vec::len);
        if others > 0 {
            let line =
                format!("note: {others} other boxes are in this cluster, and are measured too");
            self.progress.say(&line);
        }
        let busy = super::report::busy_before().await?;
        self.report.note_machine(busy, others);
        if busy > super::report::QUIET {
            let line =
                format!("warning: others keep {busy:.1} CPUs busy, so the figures are no good");
            self.progress.say(&line);
        }
        Ok(())
    }
}
