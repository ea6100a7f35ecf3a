//! The conditions of a Box (contract §4), and what kstatus reads in them.

use boxes_crds::{
    BoxSpec, BoxStatus, GENERATION_ANNOTATION, OutputState, OutputStatus, Reason, State, condition,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::confirm::confirmation;
use crate::ending::Ending;
use crate::manifest::{NO_DEADLINE, SPEC_HASH_ANNOTATION, accept, spec_hash};
use crate::output;
use crate::pod_view::PodView;
use crate::record::Record;
use crate::supervisor::{is_supervised, shares_processes};
use crate::wording::waits_for;
use crate::world::{NodeView, Refusal, Seen, Trouble, World};

/// Reason of `Accepted=False` when another's pod has the name of the Box's.
pub(crate) const POD_NAME_TAKEN: &str = "PodNameTaken";

/// Reason of `Accepted=False` when the API server forbids the pod.
const POD_FORBIDDEN: &str = "PodForbidden";

/// Reason of `Reconciling=True` while a Box that was created stopped waits to be started.
const CREATED_STOPPED: &str = "CreatedStopped";

/// What a condition says.
struct Saying {
    type_: &'static str,
    holds: bool,
    reason: String,
    message: String,
}

/// Sets every condition that the status and the world give, and keeps the others as recorded.
pub(crate) fn set(status: &mut BoxStatus, world: &World, spec: &BoxSpec, record: &Record) {
    let now = world.now;
    let ending = Ending::of(status);
    let stopping = ending.is_none() && (status.stop.is_some() || world.object.deleting());
    let pod = world.pod.ours();
    let out_of_reach = pod.is_some_and(|pod| pod.deleting() && unreachable(world, pod).is_some());
    let going = ending.is_some() || stopping || out_of_reach;
    let told = record.condition(condition::CLEANED_UP).is_some();
    let sayings = [
        accepted(world, spec, record),
        Some(ended(status, ending)),
        status.output.as_ref().map(output_saved),
        (going || told).then(|| cleaned_up(status, world, record)),
        Some(reconciling(status, spec, stopping)),
        Some(stalled(
            ending,
            world
                .trouble
                .as_ref()
                .filter(|_| stopping || ending.is_some()),
        )),
    ];
    let generation = status.observed_generation;
    for saying in sayings.into_iter().flatten() {
        put(&mut status.conditions, saying, generation, now);
    }
}

/// Replaces or adds a condition; its transition time moves only when its status changes.
fn put(all: &mut Vec<Condition>, saying: Saying, generation: Option<i64>, now: Timestamp) {
    let status = if saying.holds { "True" } else { "False" };
    let recorded = all.iter_mut().find(|known| known.type_ == saying.type_);
    let since = recorded
        .as_ref()
        .filter(|known| known.status == status)
        .map_or(now, |known| known.last_transition_time.0);
    let next = Condition {
        type_: saying.type_.to_owned(),
        status: status.to_owned(),
        reason: saying.reason,
        message: saying.message,
        observed_generation: generation,
        last_transition_time: Time(since),
    };
    match recorded {
        Some(known) => *known = next,
        None => all.push(next),
    }
}

/// Whether the spec can be run. Once the box ended or its stop is recorded the last answer stays.
fn accepted(world: &World, spec: &BoxSpec, record: &Record) -> Option<Saying> {
    if record.ending.is_some() || record.stop_requested() {
        return None;
    }
    let (holds, reason, message) = match refused(world, spec, record) {
        Some((reason, message)) => (false, reason, message),
        None if pod_is_out_of_reach(world, record) || still_forbidden(world, record) => {
            return None;
        }
        None => (true, "Accepted", run_how(world, spec)),
    };
    Some(Saying {
        type_: condition::ACCEPTED,
        holds,
        reason: reason.to_owned(),
        message,
    })
}

/// Says how an accepted spec is run, and what that leaves unknown. A pod that is there runs as it was
/// made, whatever new ones get.
fn run_how(world: &World, spec: &BoxSpec) -> String {
    let as_written = "the spec is run as written";
    let offered = world.supervisor.is_some();
    let pod = world.pod.ours();
    if pod.map_or(offered && is_supervised(spec), PodView::supervised) {
        return match shares_processes(spec) {
            None => as_written.to_owned(),
            Some(field) => format!(
                "{as_written}; with {field}, processes that leave the command's descendants survive it"
            ),
        };
    }
    if offered && !is_supervised(spec) {
        return format!(
            "{as_written}, without the supervisor, since it has no command: how it ends is known from \
             the kubelet's exit code alone"
        );
    }
    as_written.to_owned()
}

/// Without a pod to look at nothing new can be said about a spec that was once run.
fn pod_is_out_of_reach(world: &World, record: &Record) -> bool {
    record.status.run.is_some() && world.pod.ours().is_none()
}

/// Whether the recorded answer of the API server stands: it is not known to have given another
/// since, as after a restart of the controller.
pub(crate) fn still_forbidden(world: &World, record: &Record) -> bool {
    let forbidden = record.condition(condition::ACCEPTED).is_some_and(|known| {
        known.reason == POD_FORBIDDEN
            && known.observed_generation == world.object.metadata.generation
    });
    forbidden && world.refusal.is_none() && world.pod.ours().is_none()
}

/// Whether a pass has found that the box is asked to run: a stop then ends it. One that was created
/// stopped just waits.
pub(crate) fn asked_to_run(record: &Record) -> bool {
    record
        .condition(condition::RECONCILING)
        .is_some_and(|known| known.reason != CREATED_STOPPED)
}

fn refused(world: &World, spec: &BoxSpec, record: &Record) -> Option<(&'static str, String)> {
    match &world.pod {
        Seen::Foreign => Some((POD_NAME_TAKEN, taken(world))),
        Seen::Ours(pod) => {
            made_from_another(world, spec, pod).then(|| ("SpecChanged", changed(pod)))
        }
        Seen::NotSeen | Seen::Absent if record.status.run.is_some() => None,
        Seen::NotSeen | Seen::Absent => refused_before_a_pod(world, spec),
    }
}

/// Whether the pod was made from a spec that differs where it may not.
fn made_from_another(world: &World, spec: &BoxSpec, pod: &PodView) -> bool {
    let of_this_spec = |hash: &str| hash == spec_hash(spec);
    let generation = world.object.metadata.generation.unwrap_or_default();
    let of_this_generation = |made_from: &str| made_from == generation.to_string();
    // A deadline may be lowered; one that was raised before the pod was recorded comes too late.
    let asked = spec.active_deadline_seconds.unwrap_or(NO_DEADLINE);
    let raised = pod.deadline_seconds.is_some_and(|has| asked > has);
    let later = pod
        .annotation(GENERATION_ANNOTATION)
        .is_some_and(|made_from| !of_this_generation(made_from));
    let other = pod
        .annotation(SPEC_HASH_ANNOTATION)
        .is_some_and(|hash| !of_this_spec(hash));
    other || (raised && later)
}

fn refused_before_a_pod(world: &World, spec: &BoxSpec) -> Option<(&'static str, String)> {
    if let Err(refused) = accept(spec) {
        return Some((refused.reason, refused.message));
    }
    match world.refusal.as_ref()? {
        Refusal::Invalid { message } => Some(("PodInvalid", message.clone())),
        Refusal::Forbidden { message, .. } => Some((POD_FORBIDDEN, message.clone())),
        Refusal::NamespaceTerminating => None,
    }
}

fn taken(world: &World) -> String {
    format!(
        "a pod named {} exists in namespace {} and is not of this Box: it is left alone; delete or \
         rename it, or give this Box another name",
        crate::name::pod_name(world.object.name()),
        world.object.namespace()
    )
}

fn changed(pod: &PodView) -> String {
    let made_from = pod.annotation(GENERATION_ANNOTATION).unwrap_or("?");
    format!(
        "the spec was changed after pod {} had been made from generation {made_from}, which is what \
         runs: a Box runs once; make a new one to run something else",
        pod.name()
    )
}

fn ended(status: &BoxStatus, ending: Option<Ending>) -> Saying {
    let state = status
        .state
        .clone()
        .unwrap_or_else(|| State::Pending.to_string());
    let (reason, message) = match ending {
        Some(ending) => (
            ending.reason.to_string(),
            status.message.clone().unwrap_or_default(),
        ),
        None => (state, "the box has not ended".to_owned()),
    };
    Saying {
        type_: condition::ENDED,
        holds: ending.is_some(),
        reason,
        message,
    }
}

fn output_saved(output: &OutputStatus) -> Saying {
    let state = OutputState::parse(&output.state);
    let message = match state {
        Some(OutputState::Pending) => "the command has not started".to_owned(),
        Some(OutputState::Saving) => "the output is being saved".to_owned(),
        Some(OutputState::Saved) => format!("{} bytes are saved, all of it", output.bytes),
        Some(OutputState::Partial) => {
            format!("{} bytes are saved: {}", output.bytes, output.message)
        }
        Some(OutputState::Unavailable) | None => output.message.clone(),
    };
    Saying {
        type_: condition::OUTPUT_SAVED,
        holds: state == Some(OutputState::Saved),
        reason: output.state.clone(),
        message,
    }
}

/// Once it is recorded that no pod is left, none comes back, and nobody looks for it live.
fn cleaned_up(status: &BoxStatus, world: &World, record: &Record) -> Saying {
    let gone = match &world.pod {
        Seen::Absent | Seen::Foreign => Ending::of(status).is_some(),
        Seen::NotSeen => record.cleaned_up(),
        Seen::Ours(_) => false,
    };
    let (holds, reason, message) = if gone {
        (true, "CleanedUp", "no pod of this box is left".to_owned())
    } else {
        let (reason, message) = waiting(status, world);
        (false, reason, message)
    };
    Saying {
        type_: condition::CLEANED_UP,
        holds,
        reason: reason.to_owned(),
        message,
    }
}

/// What the clean-up waits for. The text stays the same through an undisturbed clean-up, so that it
/// costs no write.
fn waiting(status: &BoxStatus, world: &World) -> (&'static str, String) {
    if let Some(trouble) = world
        .trouble
        .as_ref()
        .filter(|trouble| trouble.is_stalled())
    {
        return ("CleanupStalled", stalled_message(trouble));
    }
    let Some(pod) = world.pod.ours() else {
        return ("Stopping", "waiting until the pod is gone".to_owned());
    };
    let confirmed = confirmation(world, pod).is_stopped();
    if let Some(why) = unreachable(world, pod).filter(|_| !confirmed) {
        return ("NodeUnreachable", why);
    }
    if output::is_missed(status, world, pod) {
        return ("OutputPending", output::pending(world, pod));
    }
    let foreign: Vec<_> = pod.foreign_finalizers().collect();
    if confirmed && !pod.is_held() && !foreign.is_empty() {
        let names = foreign.join(", ");
        let message = format!(
            "pod {} has stopped; finalizers of others hold it: {names}; whoever set them must \
             remove them",
            pod.name()
        );
        return ("ForeignFinalizer", message);
    }
    // What an ended box waited for on its way to the start is no news any more.
    let waits = match status.reason {
        Some(_) => String::new(),
        None => waits_for(pod),
    };
    let message = format!("waiting until the pod has stopped and is deleted{waits}");
    ("Stopping", message)
}

fn unreachable(world: &World, pod: &PodView) -> Option<String> {
    let node = pod.node.as_deref()?;
    let state = match world.node {
        NodeView::Present { ready: false, .. } => "is not Ready",
        NodeView::AbsentSince { .. } => "does not exist any more",
        NodeView::Present { ready: true, .. } | NodeView::Unknown => return None,
    };
    Some(format!(
        "node {node} {state}, so whether pod {name} still runs is unknown and nothing is deleted; if \
         you know that it has stopped: kubectl annotate box {object} -n {namespace} {key}={uid}",
        name = pod.name(),
        object = world.object.name(),
        namespace = world.object.namespace(),
        key = boxes_crds::CONFIRM_STOPPED_ANNOTATION,
        uid = pod.uid(),
    ))
}

fn stalled_message(trouble: &Trouble) -> String {
    format!(
        "{} attempts failed, the next is due at {}; the last error: {}",
        trouble.attempts,
        Timestamp::from_second(trouble.next.as_second()).unwrap_or(trouble.next),
        trouble.error
    )
}

fn reconciling(status: &BoxStatus, spec: &BoxSpec, stopping: bool) -> Saying {
    let state = status.state.as_deref().and_then(State::parse);
    let underway = matches!(state, None | Some(State::Pending | State::Materializing));
    let word = status
        .state
        .clone()
        .unwrap_or_else(|| State::Pending.to_string());
    let held = spec.stopped == Some(true) && status.run.is_none() && underway;
    let reason = match (stopping, held) {
        (true, _) => "Stopping".to_owned(),
        (false, true) => CREATED_STOPPED.to_owned(),
        (false, false) => word,
    };
    Saying {
        type_: condition::RECONCILING,
        holds: underway || stopping,
        reason,
        message: status.message.clone().unwrap_or_default(),
    }
}

fn stalled(ending: Option<Ending>, trouble: Option<&Trouble>) -> Saying {
    let failed = ending.filter(Ending::is_failure);
    let (holds, reason, message) = match (trouble.filter(|trouble| trouble.is_stalled()), failed) {
        (Some(trouble), _) => (true, "CleanupStalled".to_owned(), stalled_message(trouble)),
        (None, Some(ending)) => (
            true,
            ending.reason.to_string(),
            "the box did not end as asked".to_owned(),
        ),
        (None, None) => (false, "AsAsked".to_owned(), String::new()),
    };
    Saying {
        type_: condition::STALLED,
        holds,
        reason,
        message,
    }
}

impl Ending {
    /// The ending that a status of our own making holds.
    pub(crate) fn of(status: &BoxStatus) -> Option<Self> {
        Some(Self {
            reason: Reason::parse(status.reason.as_deref()?)?,
            exit_code: status.exit_code,
            signal: status.signal,
            evidence: boxes_crds::Evidence::parse(status.evidence.as_deref()?)?,
        })
    }

    /// Whether kstatus shall read it as a failure: neither a return with 0 nor a requested stop.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        match self.reason {
            Reason::Exit => self.exit_code != Some(0),
            Reason::Stopped => false,
            Reason::Signal
            | Reason::Timeout
            | Reason::OOM
            | Reason::Evicted
            | Reason::Preempted
            | Reason::PodDeleted
            | Reason::NodeLost
            | Reason::PodLost
            | Reason::StartFailed => true,
        }
    }
}
