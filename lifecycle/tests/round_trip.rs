//! What the supervisor writes is what the rules read.

use boxes_lifecycle::{End, Report as Read};
use boxes_supervisor::report::{Ending, LONGEST, Report as Written};
use jiff::Timestamp;
use proptest::prelude::*;

/// Microseconds that a timestamp can be of.
const TIMES: std::ops::Range<i64> = 0..250_000_000_000_000_000;

fn endings() -> impl Strategy<Value = Ending> {
    let failures = (prop_oneof![Just(126), Just(127)], any::<String>());
    prop_oneof![
        any::<u8>().prop_map(Ending::Exited),
        (1..=64u8).prop_map(Ending::Signaled),
        failures.prop_map(|(code, message)| Ending::NotStarted { code, message }),
    ]
}

fn reports() -> impl Strategy<Value = Written> {
    let times = (prop::option::of(TIMES), TIMES);
    let rest = (any::<bool>(), any::<Option<u64>>(), any::<u32>());
    ("[0-9a-f]{16}", endings(), times, rest).prop_map(
        |(key, ending, (started_at, ended_at), (stop_received, oom_kills, survivors))| Written {
            key: Some(key),
            ending,
            started_at,
            ended_at,
            stop_received,
            oom_kills,
            survivors,
        },
    )
}

/// A message may be cut.
fn same_end(written: &Ending, read: &End) -> bool {
    match (written, read) {
        (Ending::Exited(written), End::Code(read))
        | (Ending::Signaled(written), End::Signal(read)) => written == read,
        (
            Ending::NotStarted { code, message },
            End::NotStarted {
                code: read,
                message: start,
            },
        ) => code == read && message.starts_with(start.as_str()),
        _ => false,
    }
}

fn time(micros: i64) -> Option<Timestamp> {
    Timestamp::from_microsecond(micros).ok()
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: proptest::test_runner::RngSeed::Fixed(2026), ..ProptestConfig::default()
    })]

    #[test]
    fn every_report_is_read_as_it_was_written(written in reports(), before in any::<String>()) {
        let line = written.line();
        prop_assert!(line.len() + 2 <= LONGEST);
        let read = Read::parse(&format!("{before}\n{line}\n"));
        let read = read.ok_or_else(|| TestCaseError::fail(line))?;
        prop_assert_eq!(Some(&read.key), written.key.as_ref());
        prop_assert!(same_end(&written.ending, &read.end), "{:?}", read.end);
        prop_assert_eq!(read.started, written.started_at.and_then(time));
        prop_assert_eq!(Some(read.ended), time(written.ended_at));
        prop_assert_eq!(read.stop_received, written.stop_received);
        prop_assert_eq!(read.oom_kills, written.oom_kills);
    }
}
