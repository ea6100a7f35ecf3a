//! The ending of a command whose container the kubelet reports as terminated: by the supervisor's
//! report where that is believed, else by the kubelet's code alone.

use boxes_crds::{BoxSpec, Evidence, Reason};
use jiff::{SignedDuration, Timestamp};

use crate::cause::{Until, cause, deadline};
use crate::ending::{CODES, Ending, SIGNALS, Verdict, not_started};
use crate::pod_view::{PodView, RunState};
use crate::record::Record;
use crate::report::{End, NoReport, Report, believed};
use crate::wording::describe;
use crate::world::World;

/// The kubelet's word for a container whose end it did not see; the code beside it is made up.
const STATUS_UNKNOWN: &str = "ContainerStatusUnknown";

/// What the kernel's OOM kill looks like to the kubelet.
const KILLED: i32 = 137;

/// Times of the kubelet are whole seconds, cut off.
const A_SECOND: SignedDuration = SignedDuration::from_secs(1);

/// What the kubelet says of a terminated container.
struct Terminated<'a> {
    code: i32,
    reason: &'a str,
    message: Option<&'a str>,
    started: Option<Timestamp>,
    finished: Option<Timestamp>,
}

impl<'a> Terminated<'a> {
    fn of(pod: &'a PodView) -> Option<Self> {
        let RunState::Terminated {
            code,
            reason,
            message,
            started,
            finished,
        } = &pod.container.as_ref()?.state
        else {
            return None;
        };
        Some(Self {
            code: *code,
            reason: reason.as_deref().unwrap_or_default(),
            message: message.as_deref(),
            started: *started,
            finished: *finished,
        })
    }

    /// Whether the kubelet saw the end. Another number than a process can return is no code.
    fn was_seen(&self) -> bool {
        self.reason != STATUS_UNKNOWN && CODES.contains(&self.code)
    }

    /// Whether the kernel killed something in the container for want of memory.
    fn says_oom(&self) -> bool {
        self.reason == "OOMKilled"
    }

    fn could_not_start(&self) -> bool {
        matches!(self.reason, "StartError" | "ContainerCannotRun")
    }

    /// Whether a time that the supervisor gives fits the kubelet's.
    fn includes(&self, at: Timestamp) -> bool {
        let early = self.started.is_some_and(|started| at < started);
        let over = self.finished.and_then(|it| it.checked_add(A_SECOND).ok());
        !early && over.is_none_or(|over| at < over)
    }

    /// When the command started, by a report that contradicts neither itself nor the kubelet.
    fn started_by(&self, report: &Report) -> Option<Timestamp> {
        let at = report.started?;
        (self.includes(at) && at <= report.ended).then_some(at)
    }

    /// When it ended.
    fn ended_by(&self, report: &Report) -> Option<Timestamp> {
        Some(report.ended).filter(|at| self.includes(*at))
    }
}

/// The kubelet reports the command's container as terminated.
pub(crate) fn terminated(
    world: &World,
    spec: &BoxSpec,
    record: &Record,
    pod: &PodView,
) -> Option<Verdict> {
    let seen = Terminated::of(pod).filter(Terminated::was_seen)?;
    if seen.could_not_start() {
        let cause = cause(world, spec, record, pod, Until::Second(seen.finished));
        return Some(refused_by_runtime(record, &seen, cause));
    }
    let report = believed(world.object.uid(), pod, seen.code, seen.message);
    let until = match &report {
        Ok(report) if report.stop_received => Until::AboutWhen(seen.finished),
        // A stop begins with the hook, before any signal.
        Ok(_) if pod.has_pre_stop => Until::Second(seen.finished),
        Ok(_) => Until::Never,
        Err(_) => Until::Second(seen.finished),
    };
    let cause = cause(world, spec, record, pod, until);
    let ending = match &report {
        Ok(report) => observed(report, &seen, cause),
        Err(_) => derived(&seen, cause),
    };
    let message = match &report {
        Ok(report) => not_started_message(report),
        Err(_) => None,
    };
    let told = report.as_ref().ok();
    Some(Verdict {
        ending,
        started_at: told.and_then(|it| seen.started_by(it)),
        ended_at: told.and_then(|it| seen.ended_by(it)).or(seen.finished),
        message: message.unwrap_or_else(|| describe(&ending, deadline(spec, record, pod))),
        report,
    })
}

fn refused_by_runtime(record: &Record, seen: &Terminated, cause: Option<Reason>) -> Verdict {
    let said = seen.message.unwrap_or("the runtime gave no reason").trim();
    Verdict {
        ending: not_started(record, cause),
        started_at: None,
        ended_at: seen.finished,
        message: format!("the command could not be started: {said}"),
        report: Err(NoReport::Unsupervised),
    }
}

fn not_started_message(report: &Report) -> Option<String> {
    match &report.end {
        End::NotStarted { message, .. } => {
            Some(format!("the command could not be started: {message}"))
        }
        End::Code(_) | End::Signal(_) => None,
    }
}

/// By the supervisor's word, which the kubelet's agrees with.
fn observed(report: &Report, seen: &Terminated<'_>, cause: Option<Reason>) -> Ending {
    let (exit_code, signal) = match report.end {
        End::Code(code) => (Some(i32::from(code)), None),
        End::Signal(number) => (None, Some(i32::from(number))),
        End::NotStarted { code, .. } => {
            return Ending {
                reason: Reason::StartFailed,
                exit_code: Some(i32::from(code)),
                signal: None,
                evidence: Evidence::Observed,
            };
        }
    };
    // Where the supervisor cannot count, the kubelet's word is all there is.
    let starved = report.oom_kills.map_or(seen.says_oom(), |kills| kills > 0);
    let oom = report.end == End::Signal(9) && starved;
    match cause {
        None if oom => Ending {
            reason: Reason::OOM,
            exit_code: Some(KILLED),
            signal: None,
            evidence: Evidence::Observed,
        },
        Some(Reason::Timeout) => Ending::without_status(Reason::Timeout, Evidence::Observed),
        other => Ending {
            reason: other.unwrap_or(match signal {
                Some(_) => Reason::Signal,
                None => Reason::Exit,
            }),
            exit_code,
            signal,
            evidence: Evidence::Observed,
        },
    }
}

/// By the kubelet's code alone.
fn derived(seen: &Terminated, cause: Option<Reason>) -> Ending {
    match cause {
        None => own_end(seen),
        Some(Reason::Timeout) => Ending::without_status(Reason::Timeout, Evidence::Derived),
        Some(reason) => ended_by(reason, seen.code),
    }
}

/// The command ended and nothing else could have ended it.
fn own_end(seen: &Terminated) -> Ending {
    // The OOM counter also stands beside the code of a command that survived the kill of a child.
    let oom = seen.says_oom() && seen.code == KILLED;
    Ending {
        reason: if oom { Reason::OOM } else { Reason::Exit },
        exit_code: Some(seen.code),
        signal: None,
        evidence: Evidence::Derived,
    }
}

/// The command ended after something reached it: the kubelet's 128 + n is then signal n.
fn ended_by(reason: Reason, code: i32) -> Ending {
    let signal = Some(code - 128).filter(|number| SIGNALS.contains(number));
    Ending {
        reason,
        exit_code: if signal.is_some() { None } else { Some(code) },
        signal,
        evidence: Evidence::Derived,
    }
}
