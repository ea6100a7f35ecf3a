//! Runs one life of a Box, and reports it.

use std::sync::Arc;

use boxes_crds::{BoxSpec, BoxStatus, BoxTemplate};
use boxes_lifecycle::{Injection, Supervisor};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use serde_json::json;

use super::api::Cluster;
use super::boxes::StoredBox;
use super::checks::Truth;
use super::collector::Collector;
use super::command::Command;
use super::controller::{Controller, Pass};
use super::disturb::{Disturbance, empty_namespace};
use super::kubelet::Kubelet;

/// One moment of the model; not a divisor of the second, so that times have parts of seconds.
const MOMENT: SignedDuration = SignedDuration::from_millis(300);

/// How many moments are disturbed, and how many follow in which all is well again.
const DISTURBED: usize = 200;
const HEALED: usize = 1500;

/// More passes than this in one moment is a loop.
const PASSES: usize = 25;

/// When the controller crashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Crash {
    #[default]
    Never,
    /// After its nth write, once.
    After(usize),
    /// After every write.
    Always,
}

/// One life.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub spec: BoxSpec,
    pub command: Command,
    /// Seconds until the pod is bound; never when absent.
    pub schedules_after: Option<i64>,
    /// What happens, by the moment that it happens in.
    pub disturbances: Vec<(usize, Disturbance)>,
    /// How many moments the caches of Boxes and of pods are behind.
    pub lag: (usize, usize),
    pub crash: Crash,
    /// Every write is sent twice.
    pub repeats: bool,
    /// Another's pod has the name, until the disturbed time is over.
    pub name_taken: bool,
    /// Its command runs under a supervisor.
    pub supervised: bool,
    /// Its output is saved, by a collector that takes so many moments.
    pub saves_output: Option<usize>,
    /// Seconds that the node's clock is ahead of the API server's.
    pub clock_ahead: i64,
}

impl Plan {
    pub(crate) fn of(command: Command) -> Self {
        Self {
            spec: BoxSpec {
                image: "busybox".to_owned(),
                ..BoxSpec::default()
            },
            command,
            schedules_after: Some(0),
            disturbances: Vec::new(),
            lag: (0, 0),
            crash: Crash::Never,
            repeats: false,
            name_taken: false,
            supervised: false,
            saves_output: None,
            clock_ahead: 0,
        }
    }
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Report {
    /// The last status that was seen of the Box.
    pub status: BoxStatus,
    pub box_exists: bool,
    pub pod_exists: bool,
    pub pods_made: u32,
    pub writes: Vec<String>,
    pub traces: Vec<boxes_lifecycle::Trace>,
    /// What a pass would still do.
    pub left: Option<boxes_lifecycle::Decision>,
}

impl Report {
    /// State, reason, exit code, signal.
    pub(crate) fn ending(&self) -> (Option<&str>, Option<&str>, Option<i32>, Option<i32>) {
        let status = &self.status;
        (
            status.state.as_deref(),
            status.reason.as_deref(),
            status.exit_code,
            status.signal,
        )
    }
}

struct Life {
    plan: Plan,
    cluster: Cluster,
    kubelet: Kubelet,
    collector: Collector,
    controller: Controller,
    last: BoxStatus,
}

/// Runs a life to its end, or until nothing happens any more.
pub(crate) fn run(plan: Plan) -> Report {
    let start = Timestamp::from_second(1_000_000).unwrap() + SignedDuration::from_millis(700);
    let mut cluster = Cluster::new(start);
    cluster.schedules_after = plan.schedules_after;
    let mut spec = plan.spec.clone();
    spec.template = plan.command.sidecar.then(with_sidecar);
    spec.command = plan.supervised.then(|| vec!["run".to_owned()]);
    cluster.object = Some(StoredBox::new(start, spec));
    cluster.pod = plan.name_taken.then(foreign_pod);
    let mut life = Life {
        kubelet: Kubelet::new(plan.command),
        collector: Collector::that_takes(plan.saves_output.unwrap_or_default()),
        plan,
        cluster,
        controller: Controller::default(),
        last: BoxStatus::default(),
    };
    life.kubelet.ahead = SignedDuration::from_secs(life.plan.clock_ahead);
    life.controller.supervisor = life.plan.supervised.then(supervisor);
    life.controller.saves_output = life.plan.saves_output.is_some();
    life.controller.restart(&life.cluster);
    for moment in 0..DISTURBED {
        life.disturb(moment);
        life.go_on(moment);
    }
    life.heal();
    for moment in 0..HEALED {
        life.go_on(moment);
        if life.is_over() {
            break;
        }
    }
    life.report()
}

fn with_sidecar() -> BoxTemplate {
    let spec = json!({"containers": [{"name": "side", "image": "proxy"}]});
    BoxTemplate {
        spec: spec.as_object().cloned(),
        ..BoxTemplate::default()
    }
}

fn supervisor() -> Arc<Supervisor> {
    Arc::new(Supervisor {
        image: "supervisor".to_owned(),
        pull_policy: None,
        injection: Injection::InitContainer,
    })
}

fn foreign_pod() -> Pod {
    Pod {
        metadata: ObjectMeta {
            name: Some("hello".to_owned()),
            uid: Some("foreign".to_owned()),
            resource_version: Some("7".to_owned()),
            ..ObjectMeta::default()
        },
        spec: Some(k8s_openapi::api::core::v1::PodSpec {
            node_name: Some("node".to_owned()),
            ..Default::default()
        }),
        ..Pod::default()
    }
}

impl Life {
    fn disturb(&mut self, moment: usize) {
        let due = self
            .plan
            .disturbances
            .iter()
            .filter(|(at, _)| *at == moment);
        for (_, disturbance) in due {
            disturbance.happen(&mut self.cluster, &mut self.kubelet);
            match disturbance {
                Disturbance::CollectorStops => self.collector.silent = true,
                Disturbance::CollectorReturns => self.collector.silent = false,
                _ => {}
            }
            if *disturbance == Disturbance::RestartController {
                self.controller.restart(&self.cluster);
            }
        }
    }

    fn go_on(&mut self, moment: usize) {
        self.cluster.now += MOMENT;
        empty_namespace(&mut self.cluster);
        if !self.foreign() {
            self.cluster.schedule();
            self.kubelet.step(&mut self.cluster);
            let partitioned = self.kubelet.silent;
            self.collector.step(&mut self.cluster, partitioned);
            self.cluster.collect_lost();
        }
        let (boxes, pods) = self.plan.lag;
        let sees_box = moment.is_multiple_of(boxes + 1);
        let sees_pod = moment.is_multiple_of(pods + 1);
        for passes in 0.. {
            if sees_box {
                self.controller.see_box(&self.cluster);
            }
            if sees_pod {
                self.controller.see_pod(&self.cluster);
            }
            self.remember();
            if self.pass() == Pass::Idle {
                break;
            }
            assert!(passes < PASSES, "a hot loop: {:?}", self.controller.writes);
        }
    }

    fn pass(&mut self) -> Pass {
        let crash = self.plan.crash;
        let mut written = self.controller.writes.len();
        let mut crashes = || {
            written += 1;
            match crash {
                Crash::Never => false,
                Crash::After(nth) => nth == written,
                Crash::Always => true,
            }
        };
        let truth = Truth {
            kubelet: &self.kubelet,
            collector: &self.collector,
        };
        self.controller
            .pass(&mut self.cluster, truth, &mut crashes, self.plan.repeats)
    }

    /// Nothing can happen any more.
    fn is_over(&self) -> bool {
        self.cluster.pod.is_none() && self.controller.rests(&self.cluster)
    }

    fn remember(&mut self) {
        if let Some(object) = &self.cluster.object {
            self.last = object.recorded();
        }
    }

    fn foreign(&self) -> bool {
        self.cluster.pod_uid().as_deref() == Some("foreign")
    }

    /// What waits for somebody else gets it.
    fn heal(&mut self) {
        if self.foreign() {
            self.cluster.pod = None;
        }
        self.collector.silent = false;
        let helped = [
            Disturbance::KubeletReturns,
            Disturbance::DropForeignFinalizer,
            Disturbance::AllowPods,
        ];
        for help in helped {
            help.happen(&mut self.cluster, &mut self.kubelet);
        }
        // What would run, or wait, for ever is asked to stop.
        if self.last.reason.is_none() {
            Disturbance::StopBox.happen(&mut self.cluster, &mut self.kubelet);
        }
    }

    fn report(mut self) -> Report {
        self.remember();
        Report {
            box_exists: self.cluster.object.is_some(),
            pod_exists: self.cluster.pod.is_some(),
            pods_made: self.cluster.pods_made,
            left: self.controller.decision_now(&self.cluster),
            writes: self.controller.writes,
            traces: self.controller.traces,
            status: self.last,
        }
    }
}
