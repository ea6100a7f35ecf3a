//! What the supervisor in a box says of the command's end, and whether it is believed (contract §8).
//!
//! The supervisor writes its report through the termination message, which the workload can write
//! too, and the kubelet may have cut. So the last line alone counts, and only where it carries the
//! key of the Box and agrees with the exit code that the kubelet saw. The key is what a workload
//! that is killed together with its supervisor cannot write: it is in the environment of the
//! supervisor, which it hands to nobody.

use jiff::Timestamp;
use serde::Deserialize;

use crate::name::hex;
use crate::pod_view::PodView;

/// The longest report, in bytes.
const LONGEST: usize = 512;

/// The format that this build reads.
const FORMAT: u32 = 1;

/// What a supervisor proves itself with: a hash of the Box's UID, which nothing in a box shows unless
/// its owner puts it there.
#[must_use]
pub fn report_key(box_uid: &str) -> String {
    hex(format!("report of {box_uid}").as_bytes(), 16)
}

/// The report of a supervisor, read from its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What it proves itself with.
    pub key: String,
    /// How the command ended.
    pub end: End,
    /// When the command was started; absent when it could not be.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub ended: Timestamp,
    /// Whether a signal to stop had come from outside the box before that.
    pub stop_received: bool,
    /// How many processes of the box the kernel had killed for want of memory by then, where it says.
    pub oom_kills: Option<u64>,
}

/// A wait status, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It returned.
    Code(u8),
    /// A signal killed it.
    Signal(u8),
    /// It could not be started.
    NotStarted {
        /// 127: not found; 126: not executable.
        code: u8,
        /// The program and the system's words.
        message: String,
    },
}

/// Why there is no report to be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoReport {
    /// The pod has no supervisor.
    Unsupervised,
    /// The message is empty or ends in no line of this box's supervisor: it was killed before it could
    /// write, or could not.
    Missing,
    /// The kubelet saw another end than the report tells.
    Disagrees,
}

impl NoReport {
    /// The word for it in the history; none for a box that never had a supervisor.
    #[must_use]
    pub const fn as_str(self) -> Option<&'static str> {
        match self {
            Self::Unsupervised => None,
            Self::Missing => Some("missing"),
            Self::Disagrees => Some("disagrees"),
        }
    }
}

/// The line as it is written. Unknown fields are a newer supervisor's, and say more than is asked.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    report: u32,
    key: String,
    exit_code: Option<u8>,
    signal: Option<u8>,
    start_failure: Option<String>,
    started_at: Option<Timestamp>,
    ended_at: Timestamp,
    stop_received: bool,
    oom_kills: Option<u64>,
}

impl Report {
    /// Reads the last line of a termination message. Whatever is no report gives none.
    #[must_use]
    pub fn parse(message: &str) -> Option<Self> {
        let line = message.trim_end_matches(['\n', '\0']).rsplit('\n').next()?;
        // A list would be read as the fields in their order.
        if line.len() > LONGEST || !line.trim_start().starts_with('{') {
            return None;
        }
        let line: Line = serde_json::from_str(line).ok()?;
        (line.report == FORMAT).then(|| line.read()).flatten()
    }

    /// Whether the kubelet, which saw the supervisor exit, can have seen this end.
    fn agrees(&self, code: i32) -> bool {
        let shown = match self.end {
            End::Code(code) | End::NotStarted { code, .. } => i32::from(code),
            End::Signal(number) => 128 + i32::from(number),
        };
        shown == code
    }
}

impl Line {
    fn read(self) -> Option<Report> {
        let end = match (self.exit_code, self.signal, self.start_failure) {
            (Some(code), None, None) => End::Code(code),
            (None, Some(number @ 1..=64), None) => End::Signal(number),
            (Some(code @ (126 | 127)), None, Some(message)) => End::NotStarted { code, message },
            _ => return None,
        };
        Some(Report {
            key: self.key,
            end,
            started: self.started_at,
            ended: self.ended_at,
            stop_received: self.stop_received,
            oom_kills: self.oom_kills,
        })
    }
}

/// The report of a Box's pod whose command ended with `code`, as far as it can be believed.
pub(crate) fn believed(
    box_uid: &str,
    pod: &PodView,
    code: i32,
    message: Option<&str>,
) -> Result<Report, NoReport> {
    if !pod.supervised() {
        return Err(NoReport::Unsupervised);
    }
    let key = report_key(box_uid);
    let report = message
        .and_then(Report::parse)
        .filter(|report| report.key == key)
        .ok_or(NoReport::Missing)?;
    if report.agrees(code) {
        Ok(report)
    } else {
        Err(NoReport::Disagrees)
    }
}
