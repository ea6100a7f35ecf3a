//! The reader of reports gets bytes that a workload may have chosen: whatever they are, it does not
//! panic, and believes no more than it should.
//!
//! An ordinary `cargo test` tries the same few thousand inputs each time. For an hour of new ones:
//! `PROPTEST_RNG_SEED=$RANDOM PROPTEST_CASES=100000000 cargo test --release -p boxes-lifecycle --test fuzz_report`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use boxes_lifecycle::{End, Report};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngSeed, TestRunner};

/// The longest line that can be a report.
const LONGEST: usize = 512;

/// As the supervisor writes them.
const LINES: [&str; 4] = [
    r#"{"report":1,"key":"0123456789abcdef","exitCode":3,"startedAt":"2026-11-30T19:00:00.123456Z","endedAt":"2026-11-30T19:00:01.000000Z","stopReceived":false,"oomKills":0}"#,
    r#"{"report":1,"key":"0123456789abcdef","signal":9,"startedAt":"2026-11-30T19:00:00.123456Z","endedAt":"2026-11-30T19:00:01.000000Z","stopReceived":true,"survivors":2}"#,
    r#"{"report":1,"key":"0123456789abcdef","exitCode":127,"startFailure":"\"x\": no such file","endedAt":"2026-11-30T19:00:01.000000Z","stopReceived":false,"oomKills":0}"#,
    r#"{"report":1,"key":"k","signal":64,"endedAt":"0001-01-01T00:00:00Z","stopReceived":false}"#,
];

/// Pieces of reports, and what may stand where they do.
const PIECES: [&str; 32] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\n",
    "\0",
    " ",
    "null",
    "true",
    "-1",
    "0",
    "1",
    "64",
    "65",
    "126",
    "127",
    "256",
    "1e9",
    "0.5",
    "18446744073709551616",
    "\"report\":1",
    "\"exitCode\":0",
    "\"signal\":9",
    "\"startFailure\":\"x\"",
    "\"stopReceived\":true",
    "\"endedAt\":\"9999-12-31T23:59:59Z\"",
    "\"key\":\"\\u0000\"",
    "\"pad\":[[{}]],",
];

/// One change to a line.
#[derive(Clone, Debug)]
enum Change {
    Insert(usize, String),
    Replace(usize, u8),
    Remove(usize, usize),
    Repeat(usize, usize),
    Cut(usize),
}

impl Change {
    fn make(&self, bytes: &mut Vec<u8>) {
        let place = |at: usize| at % (bytes.len() + 1);
        match self {
            Self::Insert(at, what) => {
                let at = place(*at);
                bytes.splice(at..at, what.bytes());
            }
            Self::Replace(at, with) => {
                let at = place(*at);
                bytes.get_mut(at).into_iter().for_each(|it| *it = *with);
            }
            Self::Remove(from, to) => {
                let (from, to) = (place(*from), place(*to));
                bytes.drain(from.min(to)..from.max(to));
            }
            Self::Repeat(from, to) => {
                let (from, to) = (place(*from), place(*to));
                let again = bytes[from.min(to)..from.max(to)].to_vec();
                let at = from.max(to);
                bytes.splice(at..at, again);
            }
            Self::Cut(at) => bytes.truncate(place(*at)),
        }
    }
}

fn change() -> impl Strategy<Value = Change> {
    let at = || 0..LONGEST;
    prop_oneof![
        3 => (at(), prop::sample::select(PIECES.to_vec()))
            .prop_map(|(at, what)| Change::Insert(at, what.to_owned())),
        1 => (at(), 0..700_usize).prop_map(|(at, count)| Change::Insert(at, " ".repeat(count))),
        3 => (at(), any::<u8>()).prop_map(|(at, with)| Change::Replace(at, with)),
        2 => (at(), at()).prop_map(|(from, to)| Change::Remove(from, to)),
        1 => (at(), at()).prop_map(|(from, to)| Change::Repeat(from, to)),
        1 => at().prop_map(Change::Cut),
    ]
}

fn changed_line() -> impl Strategy<Value = Vec<u8>> {
    let changes = prop::collection::vec(change(), 0..4);
    (prop::sample::select(LINES.to_vec()), changes).prop_map(|(line, changes)| {
        let mut bytes = line.as_bytes().to_vec();
        for change in changes {
            change.make(&mut bytes);
        }
        bytes
    })
}

fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop::collection::vec(prop::sample::select(PIECES.to_vec()), 0..40);
    pieces.prop_map(|pieces| pieces.concat().into_bytes())
}

/// What can be in a termination message, as the kubelet hands it on.
fn message() -> impl Strategy<Value = String> {
    let bytes = prop_oneof![
        6 => changed_line(),
        1 => pieces(),
        1 => prop::collection::vec(any::<u8>(), 0..2000),
    ];
    bytes.prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn cases() -> ProptestConfig {
    let asked = ProptestConfig::default();
    let more = std::env::var_os("PROPTEST_CASES").is_some();
    ProptestConfig {
        cases: if more { asked.cases } else { 4000 },
        rng_seed: match asked.rng_seed {
            RngSeed::Random => RngSeed::Fixed(2026),
            fixed @ RngSeed::Fixed(_) => fixed,
        },
        failure_persistence: None,
        ..asked
    }
}

fn last_line(message: &str) -> &str {
    let text = message.trim_end_matches(['\n', '\0']);
    text.rsplit('\n').next().unwrap()
}

fn assert_can_be(report: &Report) {
    match &report.end {
        End::Code(_) => {}
        End::Signal(number) => assert!((1..=64).contains(number), "{number}"),
        End::NotStarted { code, .. } => assert!((126..=127).contains(code), "{code}"),
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn whatever_is_read_depends_on_the_last_line_alone(message in message(), before in message()) {
        let report = Report::parse(&message);
        prop_assert_eq!(&report, &Report::parse(&message));
        prop_assert_eq!(&report, &Report::parse(last_line(&message)));
        if let Some(report) = report {
            assert_can_be(&report);
            prop_assert!(last_line(&message).len() <= LONGEST);
            prop_assert_eq!(Some(report), Report::parse(&format!("{before}\n{message}")));
        }
    }

    #[test]
    fn what_is_too_long_is_not_read(message in message(), more in 0..2000_usize) {
        let line = last_line(&message);
        let missing = (LONGEST + 1).saturating_sub(line.len());
        let spaces = " ".repeat(missing + more);
        prop_assert_eq!(Report::parse(&format!("{spaces}{line}")), None);
        prop_assert_eq!(Report::parse(&format!("{line}{spaces}")), None);
    }
}

/// The inputs reach both sides of the reader: neither few nor nearly all of them are reports.
#[test]
fn the_inputs_are_worth_trying() {
    let mut runner = TestRunner::new(cases());
    let tried = 2000;
    let read = (0..tried).filter(|_| {
        let input = message().new_tree(&mut runner).unwrap();
        Report::parse(&input.current()).is_some()
    });
    let share = read.count() * 100 / tried;
    assert!((10..60).contains(&share), "{share} % are reports");
}
