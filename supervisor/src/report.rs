//! What is reported of a command's end, and the line that it is written as.

use crate::text::{push_escaped, push_number};
use crate::utc::push_time;

/// The most bytes that a report takes in its file, with the line ends before and after it.
pub const LONGEST: usize = 512;

/// Room for the line without those two.
const ROOM: usize = LONGEST - 2;

/// The longest key that is written whole, in bytes once escaped.
const LONGEST_KEY: usize = 64;

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It returned, with this status.
    Exited(u8),
    /// This signal killed it: 1 to 64.
    Signaled(u8),
    /// It could not be started.
    NotStarted {
        /// 127 when there is no such program, 126 when it was refused for another reason.
        code: u8,
        /// Names the program and has the system's words. A long one is cut in the line.
        message: String,
    },
}

impl Ending {
    /// What the supervisor itself exits with: the command's status, or 128 and its signal.
    #[must_use]
    pub const fn code(&self) -> u8 {
        match self {
            Self::Exited(code) | Self::NotStarted { code, .. } => *code,
            Self::Signaled(signal) => signal.saturating_add(128),
        }
    }
}

/// A report. Times are in microseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What shows that the report is the supervisor's own and not the workload's, if it was given
    /// any. At most 64 bytes of it are written.
    pub key: Option<String>,
    /// How the command ended.
    pub ending: Ending,
    /// When it had started; absent when it could not be started.
    pub started_at: Option<i64>,
    /// When it ended, or could not be started.
    pub ended_at: i64,
    /// Whether a stop had come from outside the box before it ended.
    pub stop_received: bool,
    /// How many processes of the box the kernel had killed for want of memory when the command
    /// ended; absent where that is not counted.
    pub oom_kills: Option<u64>,
    /// How many processes of the box could not be ended. Not written when 0.
    pub survivors: u32,
}

impl Report {
    /// The line: one JSON object of at most 510 bytes, without a line end.
    ///
    /// A start failure's message is cut so that it fits, never within a character.
    #[must_use]
    pub fn line(&self) -> String {
        let mut line = String::with_capacity(LONGEST);
        line.push_str("{\"report\":1");
        self.push_key(&mut line);
        let rest = self.rest();
        push_ending(&mut line, &self.ending, rest.len());
        line.push_str(&rest);
        line
    }

    fn push_key(&self, line: &mut String) {
        if let Some(key) = &self.key {
            push_string(line, "key", key, LONGEST_KEY);
        }
    }

    /// What follows the ending.
    fn rest(&self) -> String {
        let mut rest = String::with_capacity(LONGEST);
        if let Some(started_at) = self.started_at {
            push_moment(&mut rest, "startedAt", started_at);
        }
        push_moment(&mut rest, "endedAt", self.ended_at);
        push_name(&mut rest, "stopReceived");
        rest.push_str(if self.stop_received { "true" } else { "false" });
        if let Some(oom_kills) = self.oom_kills {
            push_count(&mut rest, "oomKills", oom_kills);
        }
        if self.survivors > 0 {
            push_count(&mut rest, "survivors", self.survivors.into());
        }
        rest.push('}');
        rest
    }
}

/// Writes the ending, and leaves room for `rest` bytes.
fn push_ending(line: &mut String, ending: &Ending, rest: usize) {
    match ending {
        Ending::Exited(code) => push_count(line, "exitCode", (*code).into()),
        Ending::Signaled(signal) => push_count(line, "signal", (*signal).into()),
        Ending::NotStarted { code, message } => {
            const FRAME: usize = ",\"startFailure\":\"\"".len();
            push_count(line, "exitCode", (*code).into());
            let room = ROOM.saturating_sub(line.len() + FRAME + rest);
            push_string(line, "startFailure", message, room);
        }
    }
}

fn push_name(line: &mut String, name: &str) {
    line.push_str(",\"");
    line.push_str(name);
    line.push_str("\":");
}

fn push_count(line: &mut String, name: &str, count: u64) {
    push_name(line, name);
    push_number(line, count);
}

fn push_moment(line: &mut String, name: &str, micros: i64) {
    push_name(line, name);
    line.push('"');
    push_time(line, micros);
    line.push('"');
}

fn push_string(line: &mut String, name: &str, content: &str, room: usize) {
    push_name(line, name);
    line.push('"');
    push_escaped(line, content, room);
    line.push('"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, any, prop_oneof, proptest};

    use super::{Ending, LONGEST, Report};

    fn returned() -> Report {
        Report {
            key: None,
            ending: Ending::Exited(3),
            started_at: Some(1_796_065_200_123_456),
            ended_at: 1_796_065_201_000_000,
            stop_received: false,
            oom_kills: Some(0),
            survivors: 0,
        }
    }

    fn not_started(message: &str) -> Report {
        Report {
            ending: Ending::NotStarted {
                code: 127,
                message: message.to_owned(),
            },
            started_at: None,
            ..returned()
        }
    }

    #[test]
    fn a_command_that_returned() {
        assert_eq!(
            returned().line(),
            r#"{"report":1,"exitCode":3,"startedAt":"2026-11-30T19:00:00.123456Z","endedAt":"2026-11-30T19:00:01.000000Z","stopReceived":false,"oomKills":0}"#
        );
    }

    #[test]
    fn a_signal_with_everything_else() {
        let report = Report {
            key: Some("0f\"".to_owned()),
            ending: Ending::Signaled(9),
            stop_received: true,
            oom_kills: None,
            survivors: 2,
            ..returned()
        };
        assert_eq!(
            report.line(),
            r#"{"report":1,"key":"0f\"","signal":9,"startedAt":"2026-11-30T19:00:00.123456Z","endedAt":"2026-11-30T19:00:01.000000Z","stopReceived":true,"survivors":2}"#
        );
    }

    #[test]
    fn a_command_that_could_not_be_started() {
        assert_eq!(
            not_started("cannot start \"x\"").line(),
            r#"{"report":1,"exitCode":127,"startFailure":"cannot start \"x\"","endedAt":"2026-11-30T19:00:01.000000Z","stopReceived":false,"oomKills":0}"#
        );
    }

    #[test]
    fn a_long_message_is_cut_to_fill_the_line() {
        assert_eq!(not_started(&"a".repeat(9999)).line().len(), LONGEST - 2);
    }

    #[test]
    fn codes_are_those_of_a_shell() {
        assert_eq!(Ending::Exited(7).code(), 7);
        assert_eq!(Ending::Signaled(11).code(), 139);
        assert_eq!(Ending::Signaled(64).code(), 192);
        assert_eq!(Ending::Signaled(255).code(), 255);
    }

    fn endings() -> impl Strategy<Value = Ending> {
        prop_oneof![
            any::<u8>().prop_map(Ending::Exited),
            any::<u8>().prop_map(Ending::Signaled),
            (
                any::<u8>(),
                "\\PC{0,600}|(?s).{0,600}|[\0-\u{1f}\"\\\\]{0,200}"
            )
                .prop_map(|(code, message)| Ending::NotStarted { code, message }),
        ]
    }

    proptest! {
        #[test]
        fn whatever_is_reported_fits_and_is_one_line(
            key in any::<Option<String>>(),
            ending in endings(),
            started_at in any::<Option<i64>>(),
            ended_at in any::<i64>(),
            stop_received in any::<bool>(),
            oom_kills in any::<Option<u64>>(),
            survivors in any::<u32>(),
        ) {
            let report = Report { key, ending, started_at, ended_at, stop_received, oom_kills, survivors };
            let line = report.line();
            assert!(line.len() <= LONGEST - 2, "{}", line.len());
            assert!(line.starts_with("{\"report\":1,") && line.ends_with('}'), "{line}");
            assert!(line.chars().all(|it| it >= ' '), "{line}");
        }
    }
}
