//! What a real kubelet said about each ending, replayed through the rules. The end-to-end suite writes
//! the recordings: `BOXES_RECORD=1 cargo test -p boxes-tests --test e2e recordings`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;

use boxes_crds::BoxStatus;
use boxes_lifecycle::{BoxView, Decision, PodView, Seen, World, Write, decide, misses_container};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

/// The life of one box.
#[derive(Deserialize)]
struct Recording {
    /// What the controller recorded in the end.
    ending: Value,
    moments: Vec<Moment>,
}

/// One version of the Box or of its pod; a pod that is null is gone.
#[derive(Deserialize)]
struct Moment {
    at: Timestamp,
    r#box: Option<Value>,
    #[serde(default)]
    pod: Option<Value>,
}

/// What is known at one moment.
#[derive(Default)]
struct Replay {
    object: Value,
    status: Value,
    pod: Option<PodView>,
    had_a_pod: bool,
    missing_since: Option<Timestamp>,
}

impl Replay {
    fn view(&self) -> BoxView {
        let metadata = serde_json::from_value(self.object["metadata"].clone()).unwrap();
        BoxView::read(
            metadata,
            self.object["spec"].clone(),
            Some(self.status.clone()),
        )
    }

    fn world(&mut self, now: Timestamp) -> World {
        let view = self.view();
        let pod = Seen::judge(&view, self.pod.clone(), self.had_a_pod);
        let mut world = World {
            pod,
            ..World::unseen(view, now)
        };
        self.missing_since = misses_container(&world).then(|| self.missing_since.unwrap_or(now));
        world.missing_since = self.missing_since;
        world
    }

    fn sees(&mut self, moment: &Moment) {
        match (&moment.r#box, &moment.pod) {
            (Some(object), _) => self.object = object.clone(),
            (None, pod) => {
                self.had_a_pod = true;
                let pod = pod.clone().filter(|pod| !pod.is_null());
                self.pod = pod.map(|pod| serde_json::from_value(pod).unwrap());
            }
        }
    }

    /// Passes over the Box until nothing more is to be recorded.
    fn settles(&mut self, now: Timestamp) {
        for _ in 0..5 {
            let world = self.world(now);
            let decision = decide(&world);
            self.never_lets_go_of_what_runs(&decision);
            let Some(status) = decision.status else {
                return;
            };
            self.never_changes_an_ending(&status);
            self.status = serde_json::to_value(status).unwrap();
        }
        panic!("the status never settles: {:#}", self.status);
    }

    fn never_lets_go_of_what_runs(&self, decision: &Decision) {
        let released = matches!(decision.write, Some(Write::ReleasePod { .. }));
        let runs = self.pod.as_ref().is_some_and(|pod| pod.any_running);
        let recorded = self.status["reason"].is_string();
        assert!(!released || (recorded && !runs), "{:?}", decision.write);
    }

    fn never_changes_an_ending(&self, status: &BoxStatus) {
        let next = serde_json::to_value(status).unwrap();
        let before = ending(&self.status);
        let has_ended = self.status["reason"].is_string();
        assert!(
            !has_ended || before == ending(&next),
            "{before} became {next}"
        );
    }
}

fn ending(status: &Value) -> Value {
    json!({
        "state": status["state"], "reason": status["reason"], "exitCode": status["exitCode"],
        "signal": status["signal"],
    })
}

fn recordings() -> Vec<(String, Recording)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    let files = std::fs::read_dir(folder).unwrap();
    let mut all: Vec<_> = files
        .map(|file| {
            let path = file.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            let recording = serde_json::from_str(&text);
            (name, recording.unwrap())
        })
        .collect();
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    all
}

/// The contract's ending of each, so that a recording of a mistake is none.
const EXPECTED: [(&str, &str); 13] = [
    ("evicted", "Stopped Evicted 9 -"),
    ("exit-0", "Exited Exit 0 -"),
    ("exit-3", "Exited Exit 3 -"),
    ("image-never-comes", "Stopped StartFailed - -"),
    ("init-failed", "Stopped StartFailed - -"),
    ("oom", "Exited OOM 137 -"),
    ("oom-survived", "Exited Exit 5 -"),
    ("pod-deleted", "Stopped PodDeleted 9 -"),
    ("sidecar", "Exited Exit 6 -"),
    ("start-error", "Stopped StartFailed - -"),
    ("stopped-by-kill", "Stopped Stopped - 9"),
    ("stopped-with-a-code", "Stopped Stopped 0 -"),
    ("timeout", "Exited Timeout - -"),
];

fn told(ending: &Value) -> String {
    let word = |field: &str| match &ending[field] {
        Value::Null => "-".to_owned(),
        Value::String(word) => word.clone(),
        other => other.to_string(),
    };
    ["state", "reason", "exitCode", "signal"]
        .map(word)
        .join(" ")
}

#[test]
fn each_ending_is_recorded_as_the_contract_has_it() {
    let all = recordings();
    let seen: Vec<_> = all
        .iter()
        .map(|(name, recording)| (name.as_str(), told(&recording.ending)))
        .collect();
    let expected = EXPECTED.map(|(name, ending)| (name, ending.to_owned()));
    assert_eq!(seen, expected);
}

#[test]
fn what_the_kubelet_said_gives_that_ending_again() {
    for (name, recording) in recordings() {
        let mut replay = Replay::default();
        for moment in &recording.moments {
            replay.sees(moment);
            replay.settles(moment.at);
        }
        assert_eq!(ending(&replay.status), recording.ending, "{name}");
        let clean_up = replay.status["conditions"].as_array().unwrap().iter();
        let up = clean_up.filter(|it| it["type"] == "CleanedUp" && it["status"] == "True");
        assert_eq!(up.count(), 1, "{name}: {:#}", replay.status);
    }
}

/// Whether a pod is as it was before the controller acted on an ending or a stop that it had recorded:
/// it holds its evidence, and its deadline is its own.
fn untouched(moment: &Moment, first: &Moment) -> bool {
    let deadline = |moment: &Moment| {
        let pod = moment.pod.as_ref();
        pod.map(|pod| pod["spec"]["activeDeadlineSeconds"].clone())
    };
    let pod = moment.pod.as_ref();
    let held = pod.and_then(|pod| pod["metadata"]["finalizers"].as_array());
    let holds = held.is_some_and(|all| all.iter().any(|it| it == boxes_crds::POD_FINALIZER));
    holds && deadline(moment) == deadline(first)
}

/// A controller that was away for any part of a life comes to the same ending as one that saw it all.
/// What it did itself it did on a record, which is there when it comes back.
#[test]
fn whoever_comes_late_tells_the_same() {
    for (name, recording) in recordings() {
        let moments = &recording.moments;
        let last = moments.len() - 1;
        let first_pod = moments.iter().find(|it| it.pod.is_some()).unwrap();
        let before_acting = moments.iter().rposition(|it| untouched(it, first_pod));
        for from in 0..=before_acting.unwrap() {
            let mut replay = Replay::default();
            for (number, moment) in recording.moments.iter().enumerate() {
                replay.sees(moment);
                // A stop that was acted on had been recorded before.
                let stop = moment.r#box.is_some() && number > 0 && number < last;
                if number >= from || stop {
                    replay.settles(moment.at);
                }
            }
            assert_eq!(
                told(&ending(&replay.status)),
                told(&recording.ending),
                "{name} from {from}"
            );
        }
    }
}
