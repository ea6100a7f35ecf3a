//! The kubelet and the container runtime of the one node.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;

use super::api::{Cluster, stamp};
use super::command::{Command, OnTerm, Start, Wait};
use super::supervisor::{Supervisor, Truth};

/// How long one attempt to pull an image takes; nothing interrupts it.
const ATTEMPT: SignedDuration = SignedDuration::from_secs(3);

#[derive(Debug)]
pub(crate) struct Kubelet {
    pub command: Command,
    /// It neither hears nor speaks; what runs goes on.
    pub silent: bool,
    pub pod: Option<Runtime>,
    /// What it last reported.
    pub reported: Option<Runtime>,
    /// How far its node's clock is ahead of the API server's.
    pub ahead: SignedDuration,
    /// How the command really ended.
    pub truth: Option<Truth>,
}

/// A pod on the node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Runtime {
    pub uid: String,
    pub accepted: Timestamp,
    pub stage: Stage,
    pub sidecar_runs: bool,
    /// A stop under way.
    pub stop: Option<Stop>,
    /// What the kubelet says of the pod as a whole.
    pub verdict: Option<&'static str>,
    /// It has forgotten the containers' status.
    pub forgot: bool,
    /// What the command runs under.
    pub supervisor: Option<Supervisor>,
    /// The termination message.
    pub message: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stop {
    pub term: Timestamp,
    pub kill: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Waiting,
    Running {
        since: Timestamp,
    },
    Ended {
        code: i32,
        reason: &'static str,
        since: Timestamp,
        at: Timestamp,
    },
    /// Ended, and the kubelet does not know how.
    Unknown,
    Rejected,
    InitFailed,
}

impl Runtime {
    fn new(orders: &Orders, command: Command, now: Timestamp) -> Self {
        let rejected = command.start == Start::Rejected;
        Self {
            uid: orders.uid.clone(),
            supervisor: orders.supervisor.clone(),
            message: None,
            accepted: now,
            stage: if rejected {
                Stage::Rejected
            } else {
                Stage::Waiting
            },
            sidecar_runs: false,
            stop: None,
            verdict: rejected.then_some("OutOfcpu"),
            forgot: false,
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(self.stage, Stage::Running { .. }) || self.sidecar_runs
    }

    pub(crate) fn is_over(&self) -> bool {
        match self.stage {
            Stage::Waiting => self.verdict.is_some(),
            Stage::Running { .. } => false,
            Stage::Ended { .. } | Stage::Unknown | Stage::Rejected | Stage::InitFailed => {
                !self.sidecar_runs
            }
        }
    }
}

fn seconds(count: i64) -> SignedDuration {
    SignedDuration::from_secs(count)
}

/// What the API server tells the kubelet about a pod.
struct Orders {
    uid: String,
    deadline: i64,
    deleted: bool,
    grace: i64,
    supervisor: Option<Supervisor>,
}

impl Orders {
    /// None for a pod that is not bound.
    fn of(pod: &Pod) -> Option<Self> {
        let spec = pod.spec.as_ref()?;
        spec.node_name.as_ref()?;
        let own = spec.termination_grace_period_seconds.unwrap_or(30);
        Some(Self {
            uid: pod.metadata.uid.clone()?,
            deadline: spec.active_deadline_seconds.unwrap_or(i64::from(i32::MAX)),
            deleted: pod.metadata.deletion_timestamp.is_some(),
            grace: pod.metadata.deletion_grace_period_seconds.unwrap_or(own),
            supervisor: Supervisor::of(pod),
        })
    }
}

impl Kubelet {
    pub(crate) fn new(command: Command) -> Self {
        Self {
            command,
            silent: false,
            pod: None,
            reported: None,
            ahead: SignedDuration::ZERO,
            truth: None,
        }
    }

    /// One moment. A node that is gone runs nothing.
    pub(crate) fn step(&mut self, cluster: &mut Cluster) {
        if cluster.node.is_none() {
            self.pod = None;
            return;
        }
        self.time_passes(cluster.now);
        if self.silent {
            return;
        }
        let Some(orders) = cluster.pod.as_ref().and_then(Orders::of) else {
            self.pod = None;
            return;
        };
        let known = self.pod.take().filter(|runtime| runtime.uid == orders.uid);
        let fresh = || Runtime::new(&orders, self.command, cluster.now);
        self.pod = Some(known.unwrap_or_else(fresh));
        self.obey(&orders, cluster.now);
        self.time_passes(cluster.now);
        self.publish(cluster);
        self.finish_deletion(cluster);
    }

    /// What happens without the kubelet: the command goes on, and ends.
    fn time_passes(&mut self, now: Timestamp) {
        let Some(runtime) = &mut self.pod else { return };
        if let Stage::Running { since } = runtime.stage
            && let Some(end) = end(self.command, runtime, since).filter(|end| end.at <= now)
        {
            self.truth = Some(end_command(runtime, self.command, since, self.ahead, end));
        }
        if runtime.stop.is_some() {
            runtime.sidecar_runs = false;
        }
    }

    /// What the kubelet does about what it is told.
    fn obey(&mut self, orders: &Orders, now: Timestamp) {
        let command = self.command;
        let Some(runtime) = &mut self.pod else { return };
        let deleted = orders.deleted;
        let over = now.duration_since(runtime.accepted) >= seconds(orders.deadline);
        if runtime.stage == Stage::Waiting && !in_attempt(command, runtime, now) {
            begin(runtime, command, now, deleted, over);
            if let Some(supervisor) = missed_program(runtime, command) {
                self.truth = Some(not_found(runtime, &supervisor, now, self.ahead));
            }
        }
        if over && !matches!(runtime.stage, Stage::Rejected | Stage::InitFailed) {
            // It says so even of a command that had returned before.
            let mid_pull = runtime.stage == Stage::Waiting && in_attempt(command, runtime, now);
            if !mid_pull {
                runtime.verdict.get_or_insert("DeadlineExceeded");
            }
        }
        if runtime.is_running() && (deleted || runtime.verdict.is_some()) {
            let kill = now + seconds(orders.grace.max(1));
            let stop = runtime.stop.get_or_insert(Stop { term: now, kill });
            stop.kill = stop.kill.min(kill);
        }
    }

    /// A deleted pod that has stopped goes, without any more grace.
    fn finish_deletion(&mut self, cluster: &mut Cluster) {
        let Some(pod) = &cluster.pod else { return };
        let deleted = pod.metadata.deletion_timestamp.is_some();
        let forced = pod.metadata.deletion_grace_period_seconds == Some(0);
        let over = self.pod.as_ref().is_some_and(Runtime::is_over);
        if deleted && over && !forced {
            let uid = pod.metadata.uid.clone().unwrap();
            let _ = cluster.delete_pod(&uid, None, Some(0));
        }
    }

    /// Ends the pod for a reason of the node's own.
    pub(crate) fn evict(&mut self, reason: &'static str) {
        if let Some(runtime) = self.pod.as_mut().filter(|runtime| runtime.is_running()) {
            runtime.verdict.get_or_insert(reason);
        }
    }

    /// The runtime loses the container: the kubelet knows that it ended, and not how.
    pub(crate) fn lose_container(&mut self) {
        if let Some(runtime) = self.pod.as_mut()
            && matches!(runtime.stage, Stage::Running { .. })
        {
            runtime.stage = Stage::Unknown;
        }
    }

    /// A restarted kubelet rejects the pod that it ran, and says nothing of its containers.
    pub(crate) fn forget(&mut self) {
        if let Some(runtime) = self.pod.as_mut().filter(|runtime| runtime.is_running()) {
            runtime.verdict.get_or_insert("NodeAffinity");
            runtime.forgot = true;
        }
    }
}

fn in_attempt(command: Command, runtime: &Runtime, now: Timestamp) -> bool {
    let waited = now.duration_since(runtime.accepted);
    match command.start {
        Start::NoImage => waited.as_millis() % (2 * ATTEMPT.as_millis()) < ATTEMPT.as_millis(),
        _ => waited < seconds(command.pull),
    }
}

/// The image is there, or the attempt failed.
fn begin(runtime: &mut Runtime, command: Command, now: Timestamp, deleted: bool, over: bool) {
    if deleted {
        runtime.stage = Stage::Unknown;
        return;
    }
    if over {
        return;
    }
    runtime.stage = match command.start {
        Start::NoImage | Start::Rejected => return,
        Start::InitFails => Stage::InitFailed,
        Start::NoProgram => Stage::Ended {
            code: 128,
            reason: "StartError",
            since: Timestamp::UNIX_EPOCH,
            at: now,
        },
        Start::Good => Stage::Running {
            since: stamp(now).0,
        },
    };
    runtime.sidecar_runs = command.sidecar && command.start == Start::Good;
}

/// The supervisor that finds no program to start: the runtime finds the supervisor.
fn missed_program(runtime: &Runtime, command: Command) -> Option<Supervisor> {
    let tried = matches!(runtime.stage, Stage::Ended { .. });
    let supervisor = runtime.supervisor.clone();
    supervisor.filter(|_| tried && command.start == Start::NoProgram)
}

fn not_found(
    runtime: &mut Runtime,
    supervisor: &Supervisor,
    now: Timestamp,
    ahead: SignedDuration,
) -> Truth {
    let truth = Truth {
        wait: None,
        started: now + ahead,
        ended: now + ahead,
        stop_received: false,
        oom_kills: 0,
        told: true,
    };
    runtime.stage = Stage::Ended {
        code: 127,
        reason: "Error",
        since: now,
        at: now,
    };
    runtime.message = truth.message(false, Some(supervisor));
    truth
}

/// An end of a running command.
#[derive(Clone, Copy, Debug)]
struct End {
    at: Timestamp,
    wait: Wait,
    /// Whether it came from the command, and not from a stop.
    own: bool,
    /// Whether the supervisor, if there is one, lives to report it.
    told: bool,
}

/// When and how a command ends that runs since then: the first thing that ends it.
fn end(command: Command, runtime: &Runtime, since: Timestamp) -> Option<End> {
    let own = command.runs.map(|runs| End {
        at: since + seconds(runs),
        wait: command.ends,
        own: true,
        told: true,
    });
    let stopped = runtime
        .stop
        .map(|stop| by_term(command.on_term, stop, runtime.supervisor.as_ref()));
    own.into_iter().chain(stopped).min_by_key(|end| end.at)
}

fn end_command(
    runtime: &mut Runtime,
    command: Command,
    since: Timestamp,
    ahead: SignedDuration,
    end: End,
) -> Truth {
    let reason = match end.wait {
        _ if end.own && command.oom => "OOMKilled",
        Wait::Code(0) => "Completed",
        Wait::Code(_) | Wait::Signal(_) => "Error",
    };
    let truth = Truth {
        wait: Some(end.wait),
        started: since + ahead,
        ended: end.at + ahead,
        stop_received: runtime.stop.is_some_and(|stop| stop.term <= end.at),
        oom_kills: u64::from(end.own && command.oom),
        told: end.told && runtime.supervisor.is_some(),
    };
    runtime.stage = Stage::Ended {
        code: end.wait.shown(),
        reason,
        since,
        at: end.at,
    };
    runtime.message = truth.message(command.forges, runtime.supervisor.as_ref());
    truth
}

/// When and how a command ends that gets TERM and then KILL: from the kubelet, or before that from
/// the supervisor, which the kubelet's KILL ends too.
fn by_term(on_term: OnTerm, stop: Stop, supervisor: Option<&Supervisor>) -> End {
    let patience = supervisor.map_or(stop.kill, |it| stop.term + seconds(it.grace.max(1)));
    let (at, wait) = match on_term {
        OnTerm::Dies => (stop.term, Wait::Signal(15)),
        OnTerm::Returns(code) => (stop.term + seconds(1), Wait::Code(code)),
        OnTerm::Ignores => (patience, Wait::Signal(9)),
    };
    let (at, wait) = if at <= patience {
        (at, wait)
    } else {
        (patience, Wait::Signal(9))
    };
    let killed = at > stop.kill || (supervisor.is_some() && at == stop.kill);
    End {
        at: at.min(stop.kill),
        wait: if killed { Wait::Signal(9) } else { wait },
        own: false,
        told: !killed,
    }
}
