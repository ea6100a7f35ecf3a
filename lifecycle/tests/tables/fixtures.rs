//! Boxes, pods and worlds that read like sentences. Times are seconds of one small clock; the box is
//! made at 0, its pod is accepted by its node at 10, and its command starts at 20.

use boxes_crds::{BOX_FINALIZER, BOX_UID_LABEL, BoxStatus, POD_FINALIZER};
use boxes_lifecycle::{
    BoxView, ContainerView, Decision, NodeView, Phase, PodCondition, PodView, RunState, Seen,
    World, decide,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde_json::{Value, json};

/// A time of the small clock.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).unwrap()
}

/// The same as the wire has it.
pub(crate) fn wire(seconds: i64) -> Value {
    serde_json::to_value(Time(at(seconds))).unwrap()
}

/// Sets fields of a JSON object, deeply.
fn set(target: &mut Value, change: Value) {
    match (target, change) {
        (Value::Object(target), Value::Object(change)) => {
            for (key, value) in change {
                set(target.entry(key).or_insert(Value::Null), value);
            }
        }
        (target, change) => *target = change,
    }
}

/// A Box.
#[derive(Clone, Debug)]
pub(crate) struct ABox {
    pub metadata: ObjectMeta,
    pub spec: Value,
    pub status: Value,
}

/// One that is held, and has no pod yet.
pub(crate) fn a_box() -> ABox {
    ABox {
        metadata: ObjectMeta {
            name: Some("hello".to_owned()),
            namespace: Some("default".to_owned()),
            uid: Some("box-1".to_owned()),
            resource_version: Some("7".to_owned()),
            generation: Some(1),
            creation_timestamp: Some(Time(at(0))),
            finalizers: Some(vec![BOX_FINALIZER.to_owned()]),
            ..ObjectMeta::default()
        },
        spec: json!({"image": "busybox"}),
        status: json!({}),
    }
}

/// One whose pod is recorded as bound.
pub(crate) fn a_materializing_box() -> ABox {
    let pod = json!({"name": "hello", "uid": "pod-1"});
    let run = json!({"number": 1, "pod": pod, "node": "node", "scheduledAt": wire(10)});
    a_box().recorded(json!({"state": "Materializing", "run": run}))
}

/// One whose command is recorded as started.
pub(crate) fn a_running_box() -> ABox {
    let run = json!({"startedAt": wire(20)});
    a_materializing_box().recorded(json!({"state": "Running", "run": run}))
}

/// One that is recorded as ended by itself with 3, at 50.
pub(crate) fn an_ended_box() -> ABox {
    a_running_box().recorded(json!({
        "state": "Exited", "reason": "Exit", "exitCode": 3, "evidence": "Derived",
        "run": {"endedAt": wire(50)},
    }))
}

impl ABox {
    pub(crate) fn recorded(mut self, status: Value) -> Self {
        set(&mut self.status, status);
        self
    }

    pub(crate) fn asks(mut self, spec: Value) -> Self {
        set(&mut self.spec, spec);
        self
    }

    pub(crate) fn stopped_at(self, seconds: i64, by: &str) -> Self {
        self.recorded(json!({"stop": {"requestedAt": wire(seconds), "by": by}}))
    }

    pub(crate) fn says(self, type_: &str, status: &str, reason: &str) -> Self {
        let mut all = self.status["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        all.push(json!({
            "type": type_, "status": status, "reason": reason, "message": "as was said",
            "observedGeneration": 1, "lastTransitionTime": wire(30),
        }));
        self.recorded(json!({"conditions": all}))
    }

    pub(crate) fn deleted(self) -> Self {
        self.deleted_at(90)
    }

    pub(crate) fn deleted_at(mut self, seconds: i64) -> Self {
        self.metadata.deletion_timestamp = Some(Time(at(seconds)));
        self
    }

    pub(crate) fn annotated(mut self, key: &str, value: &str) -> Self {
        let all = self.metadata.annotations.get_or_insert_default();
        all.insert(key.to_owned(), value.to_owned());
        self
    }

    pub(crate) fn of_generation(mut self, generation: i64) -> Self {
        self.metadata.generation = Some(generation);
        self
    }

    pub(crate) fn not_held(mut self) -> Self {
        self.metadata.finalizers = None;
        self
    }

    pub(crate) fn view(&self) -> BoxView {
        BoxView::read(
            self.metadata.clone(),
            self.spec.clone(),
            Some(self.status.clone()),
        )
    }

    /// The world at 100 around this Box.
    pub(crate) fn with(self, pod: impl Into<Seen>) -> World {
        let pod = pod.into();
        World {
            saves_output: matches!(pod, Seen::Ours(_)),
            pod,
            ..World::unseen(self.view(), at(100))
        }
    }
}

/// A pod of the Box.
#[derive(Clone, Debug)]
pub(crate) struct APod(pub PodView);

impl From<APod> for Seen {
    fn from(pod: APod) -> Self {
        Self::Ours(Box::new(pod.0))
    }
}

/// One without a node.
pub(crate) fn an_unbound_pod() -> APod {
    let owner = OwnerReference {
        uid: "box-1".to_owned(),
        controller: Some(true),
        ..OwnerReference::default()
    };
    APod(PodView {
        metadata: ObjectMeta {
            name: Some("hello".to_owned()),
            namespace: Some("default".to_owned()),
            uid: Some("pod-1".to_owned()),
            resource_version: Some("9".to_owned()),
            creation_timestamp: Some(Time(at(5))),
            finalizers: Some(vec![POD_FINALIZER.to_owned()]),
            labels: Some([(BOX_UID_LABEL.to_owned(), "box-1".to_owned())].into()),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        deadline_seconds: Some(boxes_lifecycle::NO_DEADLINE),
        ..PodView::default()
    })
}

/// One that its node has accepted and not started.
pub(crate) fn a_bound_pod() -> APod {
    let mut pod = an_unbound_pod();
    pod.0.node = Some("node".to_owned());
    pod.0.start_time = Some(at(10));
    pod.waits("ContainerCreating", None)
}

/// One whose command runs.
pub(crate) fn a_running_pod() -> APod {
    let mut pod = a_bound_pod().in_phase(Phase::Running);
    pod.0.any_running = true;
    let since = Some(at(20));
    pod.container(true, RunState::Running { since })
}

/// One whose command has ended at 50, as the kubelet says; in phase Failed.
pub(crate) fn an_ended_pod(code: i32, reason: &str) -> APod {
    let state = RunState::Terminated {
        code,
        reason: Some(reason.to_owned()),
        message: None,
        started: Some(at(20)),
        finished: Some(at(50)),
    };
    let mut pod = a_running_pod()
        .container(true, state)
        .in_phase(Phase::Failed);
    pod.0.any_running = false;
    pod
}

impl APod {
    fn container(mut self, was_made: bool, state: RunState) -> Self {
        self.0.container = Some(ContainerView { was_made, state });
        self
    }

    pub(crate) fn waits(self, reason: &str, message: Option<&str>) -> Self {
        let reason = Some(reason.to_owned());
        let message = message.map(str::to_owned);
        self.container(false, RunState::Waiting { reason, message })
    }

    pub(crate) fn without_container(mut self) -> Self {
        self.0.container = None;
        self.0.any_running = false;
        self
    }

    pub(crate) fn in_phase(mut self, phase: Phase) -> Self {
        self.0.phase = phase;
        self
    }

    /// Failed as a whole, for a reason of the kubelet's.
    pub(crate) fn failed_by(mut self, reason: &str) -> Self {
        self.0.reason = Some(reason.to_owned());
        self.in_phase(Phase::Failed)
    }

    /// Its deletion was asked for at that time, with a grace of 30.
    pub(crate) fn deleted_at(mut self, seconds: i64) -> Self {
        self.0.metadata.deletion_timestamp = Some(Time(at(seconds + 30)));
        self.0.metadata.deletion_grace_period_seconds = Some(30);
        self
    }

    /// Its kubelet has asked for the last time: at that time, with no grace. The kubelet's status
    /// answers the deletion, or is older.
    pub(crate) fn deleted_for_good_at(mut self, seconds: i64, answered: bool) -> Self {
        self.0.metadata.deletion_timestamp = Some(Time(at(seconds)));
        self.0.metadata.deletion_grace_period_seconds = Some(0);
        self.0.metadata.generation = Some(2);
        self.0.observed_generation = Some(if answered { 2 } else { 1 });
        self
    }

    /// The kubelet gave up on it, and calls the end of what it never made unknown.
    pub(crate) fn with_unknown_end(self, was_made: bool) -> Self {
        let state = RunState::Terminated {
            code: 137,
            reason: Some("ContainerStatusUnknown".to_owned()),
            message: None,
            started: None,
            finished: None,
        };
        let mut pod = self.container(was_made, state);
        pod.0.any_running = false;
        pod
    }

    pub(crate) fn disrupted_at(mut self, seconds: i64, reason: &str) -> Self {
        self.0.conditions.push(PodCondition {
            type_: "DisruptionTarget".to_owned(),
            is_true: true,
            reason: Some(reason.to_owned()),
            message: None,
            since: Some(at(seconds)),
        });
        self
    }

    pub(crate) fn with_deadline(mut self, seconds: i64) -> Self {
        self.0.deadline_seconds = Some(seconds);
        self
    }

    pub(crate) fn with_a_pre_stop_hook(mut self) -> Self {
        self.0.has_pre_stop = true;
        self
    }

    pub(crate) fn beside_a_sidecar(mut self) -> Self {
        self.0.others_alive = true;
        self.0.any_running = true;
        self.in_phase(Phase::Running)
    }

    pub(crate) fn held_by(mut self, finalizers: &[&str]) -> Self {
        let all = finalizers.iter().map(|name| (*name).to_owned()).collect();
        self.0.metadata.finalizers = Some(all);
        self
    }
}

/// What is asked and said of a world.
pub(crate) trait Decides {
    fn decided(&self) -> Decision;
    fn status(&self) -> BoxStatus;
    fn write(&self) -> Option<&'static str>;
    fn after(self, seconds: i64) -> World;
    fn on(self, node: NodeView) -> World;
}

impl Decides for World {
    fn decided(&self) -> Decision {
        decide(self)
    }

    /// The status that is written, or the recorded one.
    fn status(&self) -> BoxStatus {
        let proposed = decide(self).status.map(|status| *status);
        let recorded = || self.readable().map(|(_, record)| record.status.clone());
        proposed.or_else(recorded).unwrap_or_default()
    }

    fn write(&self) -> Option<&'static str> {
        decide(self).write.map(|write| write.as_str())
    }

    fn after(mut self, seconds: i64) -> World {
        self.now += SignedDuration::from_secs(seconds);
        self
    }

    fn on(mut self, node: NodeView) -> World {
        self.node = node;
        self
    }
}

/// State, reason, exit code, signal, evidence; nothing when it goes on.
pub(crate) type Ended = Option<(String, String, Option<i32>, Option<i32>, String)>;

pub(crate) fn ended(status: &BoxStatus) -> Ended {
    Some((
        status.state.clone()?,
        status.reason.clone()?,
        status.exit_code,
        status.signal,
        status.evidence.clone()?,
    ))
}

/// `"Exited Exit 3 - Derived"`: state, reason, exit code, signal, evidence.
pub(crate) fn told(status: &BoxStatus) -> String {
    let Some((state, reason, code, signal, evidence)) = ended(status) else {
        return "goes on".to_owned();
    };
    let number = |number: Option<i32>| number.map_or("-".to_owned(), |it| it.to_string());
    format!(
        "{state} {reason} {} {} {evidence}",
        number(code),
        number(signal)
    )
}
