//! A controller: looks, decides, writes, and may crash.

use std::sync::Arc;

use boxes_lifecycle::{
    BoxView, Decision, NodeView, PodView, Refusal, Seen, Supervisor, Trace, World, Write, decide,
    deletion_asked, misses_container, needs_live_pod, needs_namespace, needs_node, trace,
    trace_of_released,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;

use super::api::{Answer, Cluster, Done};
use super::boxes::StoredBox;
use super::checks::{self, Truth};

/// How long a forbidden creation waits.
const SLOW: SignedDuration = SignedDuration::from_secs(5);

/// How long the controller waits when somebody else wrote in between.
const OUTDATED: SignedDuration = SignedDuration::from_millis(100);

/// What a crash loses.
#[derive(Clone, Debug, Default)]
struct Memory {
    refusal: Option<Refusal>,
    name_collided: bool,
    missing_since: Option<Timestamp>,
    deletion_asked: Option<Timestamp>,
    deadline_refused: bool,
    node_absent: Option<(Timestamp, String)>,
}

#[derive(Debug, Default)]
pub(crate) struct Controller {
    memory: Memory,
    object: Option<StoredBox>,
    pod: Option<Pod>,
    /// Something is to be looked at.
    due: bool,
    wake: Option<Timestamp>,
    /// Successful writes, of status too.
    pub writes: Vec<String>,
    /// What was sent.
    pub traces: Vec<Trace>,
    /// What new pods get.
    pub supervisor: Option<Arc<Supervisor>>,
    /// Whether new pods wait for their output.
    pub saves_output: bool,
}

/// What became of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    Idle,
    Done,
}

impl Controller {
    /// Forgets everything, and lists what there is.
    pub(crate) fn restart(&mut self, cluster: &Cluster) {
        *self = Self {
            writes: std::mem::take(&mut self.writes),
            traces: std::mem::take(&mut self.traces),
            supervisor: self.supervisor.take(),
            saves_output: self.saves_output,
            due: true,
            ..Self::default()
        };
        self.see_box(cluster);
        self.see_pod(cluster);
    }

    /// The cache catches up with the Box.
    pub(crate) fn see_box(&mut self, cluster: &Cluster) {
        if box_version(self.object.as_ref()) != box_version(cluster.object.as_ref()) {
            self.object.clone_from(&cluster.object);
            self.due = true;
        }
    }

    /// The cache catches up with the pod.
    pub(crate) fn see_pod(&mut self, cluster: &Cluster) {
        if version(self.pod.as_ref()) != version(cluster.pod.as_ref()) {
            self.pod.clone_from(&cluster.pod);
            self.due = true;
        }
    }

    /// One pass, if something asks for one. `crashes` is asked after each write.
    pub(crate) fn pass(
        &mut self,
        cluster: &mut Cluster,
        nodes: Truth<'_>,
        crashes: &mut dyn FnMut() -> bool,
        repeats: bool,
    ) -> Pass {
        let awake = self.wake.is_some_and(|at| at <= cluster.now);
        let Some(object) = self.object.clone().filter(|_| self.due || awake) else {
            return Pass::Idle;
        };
        self.due = false;
        self.wake = None;
        let world = self.observe(cluster, &object.view());
        let decision = decide(&world);
        checks::decision(&world, &decision);
        if let Some(write) = &decision.write {
            checks::write(cluster, nodes, &world, write, self.memory.deadline_refused);
            let answer = perform(cluster, &world, write);
            if repeats {
                let _ = perform(cluster, &world, write);
            }
            self.wake = self.note(&world, write, answer);
            if answer.is_ok() {
                self.writes.push(write.as_str().to_owned());
                if *write == Write::ReleaseBox {
                    self.traces.extend(trace_of_released(&world));
                }
                if crashes() {
                    self.restart(cluster);
                    return Pass::Done;
                }
            }
        }
        if let Some(wait) = decision.wake {
            // A pass on an outdated view waits for the event of what it lacks.
            let outdated = self.is_outdated(cluster);
            self.wake_at(cluster.now + if outdated { wait.max(OUTDATED) } else { wait });
        }
        self.record(cluster, nodes, &world, &decision, crashes);
        Pass::Done
    }

    fn record(
        &mut self,
        cluster: &mut Cluster,
        nodes: Truth<'_>,
        world: &World,
        decision: &Decision,
        crashes: &mut dyn FnMut() -> bool,
    ) {
        let Some(status) = &decision.status else {
            return;
        };
        checks::status(cluster, nodes, world, status);
        match cluster.write_status(world.object.resource_version(), status) {
            Ok(()) => {
                let state = status.state.as_deref().unwrap_or_default();
                self.writes.push(format!("status {state}"));
                if let Some((_, record)) = world.readable() {
                    self.traces
                        .extend(trace(&world.object, &record.status, status));
                }
                if crashes() {
                    self.restart(cluster);
                }
            }
            Err(_) => self.wake_at(cluster.now + OUTDATED),
        }
    }

    /// Whether it has seen everything and waits for nothing.
    pub(crate) fn rests(&self, cluster: &Cluster) -> bool {
        !self.due && self.wake.is_none() && !self.is_outdated(cluster)
    }

    fn is_outdated(&self, cluster: &Cluster) -> bool {
        version(self.pod.as_ref()) != version(cluster.pod.as_ref())
            || box_version(self.object.as_ref()) != box_version(cluster.object.as_ref())
    }

    fn wake_at(&mut self, at: Timestamp) {
        self.wake = Some(self.wake.map_or(at, |wake| wake.min(at)));
    }

    /// The world, read the way that the rules ask for.
    fn observe(&mut self, cluster: &Cluster, object: &BoxView) -> World {
        let view = |pod: &Option<Pod>| pod.clone().map(PodView::from);
        let memory = &self.memory;
        let mut world = World {
            now: cluster.now,
            pod: Seen::judge(object, view(&self.pod), false),
            object: object.clone(),
            node: NodeView::Unknown,
            namespace_terminating: false,
            name_collided: memory.name_collided,
            refusal: memory.refusal.clone(),
            trouble: None,
            missing_since: memory.missing_since,
            deletion_asked: memory.deletion_asked,
            deadline_refused: memory.deadline_refused,
            supervisor: self.supervisor.clone(),
            saves_output: self.saves_output,
            // Now and then.
            crowded: cluster.now.as_second() % 3 == 0,
        };
        if needs_live_pod(&world) {
            world.pod = Seen::judge(object, view(&cluster.pod), true);
        }
        if misses_container(&world) {
            let since = *self.memory.missing_since.get_or_insert(cluster.now);
            world.missing_since = Some(since);
        }
        self.memory.deletion_asked = deletion_asked(&world);
        world.deletion_asked = self.memory.deletion_asked;
        if needs_node(&world).is_some() {
            world.node = self.look_at_node(cluster, &world);
        }
        if needs_namespace(&world) {
            world.namespace_terminating = cluster.namespace_terminating;
        }
        world
    }

    fn look_at_node(&mut self, cluster: &Cluster, world: &World) -> NodeView {
        if let Some(node) = cluster.node {
            self.memory.node_absent = None;
            return NodeView::Present {
                ready: node.ready,
                out_of_service: node.out_of_service,
            };
        }
        let version = world
            .pod
            .ours()
            .map(PodView::resource_version)
            .unwrap_or_default();
        let known = self.memory.node_absent.take();
        let since = known
            .filter(|(_, seen)| seen == version)
            .map_or(cluster.now, |(since, _)| since);
        self.memory.node_absent = Some((since, version.to_owned()));
        NodeView::AbsentSince { since }
    }

    /// Remembers what the API server answered, and says when to look again.
    fn note(&mut self, world: &World, write: &Write, answer: Done) -> Option<Timestamp> {
        let creates = matches!(write, Write::CreatePod(_));
        let message = "said the server".to_owned();
        match answer {
            Ok(()) if creates => self.memory.refusal = None,
            Ok(()) => {}
            Err(Answer::AlreadyExists) => self.memory.name_collided = true,
            Err(Answer::Invalid) => self.memory.refusal = Some(Refusal::Invalid { message }),
            Err(Answer::Forbidden) if creates => {
                let retry_at = world.now + SLOW;
                self.memory.refusal = Some(Refusal::Forbidden { message, retry_at });
            }
            Err(Answer::Forbidden) => self.memory.deadline_refused = true,
            Err(Answer::NamespaceTerminating) => {
                self.memory.refusal = Some(Refusal::NamespaceTerminating);
            }
            Err(Answer::Conflict | Answer::NotFound) => return Some(world.now + OUTDATED),
        }
        answer.is_err().then_some(world.now)
    }

    /// What a pass would do now, with nothing stale.
    pub(crate) fn decision_now(&mut self, cluster: &Cluster) -> Option<Decision> {
        self.see_box(cluster);
        self.see_pod(cluster);
        let object = self.object.clone()?.view();
        let world = self.observe(cluster, &object);
        Some(decide(&world))
    }
}

fn box_version(object: Option<&StoredBox>) -> Option<&str> {
    object?.metadata.resource_version.as_deref()
}

fn version(pod: Option<&Pod>) -> Option<&str> {
    pod?.metadata.resource_version.as_deref()
}

/// Carries out a write as the controller's writer does.
fn perform(cluster: &mut Cluster, world: &World, write: &Write) -> Done {
    let version = world.object.resource_version();
    match write {
        Write::HoldBox => cluster.hold_box(version),
        Write::ReleaseBox => cluster.release_box(version),
        Write::DeleteBox => {
            cluster.delete_box();
            Ok(())
        }
        Write::CreatePod(pod) => cluster.create_pod((**pod).clone()),
        Write::LowerDeadline {
            uid,
            resource_version,
            seconds,
        } => cluster.lower_deadline(uid, resource_version, *seconds),
        Write::DeletePod {
            uid,
            resource_version,
            grace,
        } => cluster.delete_pod(uid, resource_version.as_deref(), *grace),
        Write::ReleasePod {
            uid,
            resource_version,
        } => cluster.release_pod(uid, resource_version),
    }
}
