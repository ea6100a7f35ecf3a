//! A container that is made again has another file.

use super::*;

#[rstest::rstest]
#[case(Reader::new)]
#[case(Reader::unsure)]
fn the_logs_of_all_attempts_are_one(#[case] new: fn(&Kubelet, Option<Position>) -> Reader) {
    let mut kubelet = Kubelet::start();
    let mut reader = new(&kubelet, None);
    for attempt in 0..3 {
        for round in 0..3 {
            kubelet.write(&format!("attempt {attempt}, round {round}\n"));
            reader.drain();
            kubelet.rotate();
        }
        kubelet.write("and its last line\n");
        if attempt == 1 {
            // Another collector goes on.
            reader.drain();
            let mut next = new(&kubelet, reader.tail.position().cloned());
            next.seen = reader.seen;
            reader = next;
        }
        kubelet.attempt_again();
        kubelet.write("anew\n");
    }
    reader.end(&mut kubelet);
    assert_eq!(reader.seen.bytes, kubelet.written);
    assert_eq!(reader.reasons(), []);
}

#[test]
fn all_attempts_that_are_there_are_read_by_who_comes_late() {
    let mut kubelet = Kubelet::start();
    kubelet.write("first\n");
    kubelet.attempt_again();
    kubelet.write("second\n");
    let mut reader = Reader::new(&kubelet, None);
    reader.end(&mut kubelet);
    assert_eq!(reader.seen.bytes, b"first\nsecond\n");
    assert_eq!(reader.reasons(), []);
}

#[test]
fn a_later_attempt_whose_beginning_may_be_gone_says_so() {
    let mut kubelet = Kubelet::start();
    kubelet.attempt_again();
    for round in 0..5 {
        kubelet.write(&format!("round {round}\n"));
        kubelet.rotate();
    }
    let mut reader = Reader::new(&kubelet, None);
    reader.end(&mut kubelet);
    assert_eq!(reader.reasons(), [GapReason::RotatedAway]);
    assert!(reader.seen.bytes.ends_with(b"round 4\n"));
}

/// An attempt that never ran has no log. A reader that is there sees the next one all the same.
#[rstest::rstest]
#[case(Reader::new, 1, vec![])]
#[case(Reader::unsure, 1, vec![])]
#[case(Reader::new, 2, vec![GapReason::RotatedAway])]
fn attempts_without_a_log_are_passed_over(
    #[case] new: fn(&Kubelet, Option<Position>) -> Reader,
    #[case] without: u32,
    #[case] reasons: Vec<GapReason>,
) {
    let mut kubelet = Kubelet::start();
    let mut reader = new(&kubelet, None);
    kubelet.write("first\n");
    reader.drain();
    kubelet.attempt += without;
    kubelet.attempt_again();
    kubelet.write("the next that ran\n");
    reader.end(&mut kubelet);
    assert_eq!(reader.seen.bytes, b"first\nthe next that ran\n");
    assert_eq!(reader.reasons(), reasons);
}

/// One that never ran has no log.
#[rstest::rstest]
#[case(1, vec![])]
#[case(2, vec![GapReason::RotatedAway])]
fn an_attempt_without_a_log_never_ran_if_the_kubelet_would_have_kept_it(
    #[case] attempt: u32,
    #[case] reasons: Vec<GapReason>,
) {
    let mut kubelet = Kubelet::start();
    kubelet.remove_current();
    kubelet.attempt = attempt - 1;
    kubelet.attempt_again();
    kubelet.write("the one that ran\n");
    let mut reader = Reader::new(&kubelet, None);
    reader.end(&mut kubelet);
    assert_eq!(reader.seen.bytes, b"the one that ran\n");
    assert_eq!(reader.reasons(), reasons);
}
