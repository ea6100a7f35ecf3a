//! What is renamed, and what the runtime adds to it.

use std::fs::File;
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

#[rstest::rstest]
#[case(Reader::new)]
#[case(Reader::unsure)]
fn a_log_is_read_through_rotations(#[case] new: fn(&Kubelet, Option<Position>) -> Reader) {
    let mut kubelet = Kubelet::start();
    let mut reader = new(&kubelet, None);
    for round in 0..8 {
        kubelet.write(&format!("line {round}\nhalf "));
        if round % 2 == 0 {
            reader.step();
        }
        kubelet.rotate();
        kubelet.write("whole\n");
        reader.drain();
    }
    reader.end(&mut kubelet);
    assert_eq!(reader.seen.bytes, kubelet.written);
    assert_eq!(reader.seen.gaps, []);
}

#[test]
fn rotations_at_any_instant_lose_nothing() {
    let mut kubelet = Kubelet::start();
    let mut reader = Reader::new(&kubelet, None);
    let (written, looked) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (rounds, seen) = (written.clone(), looked.clone());
    let writer = std::thread::spawn(move || {
        for round in 1..400 {
            kubelet.write(&format!("round {round}\n"));
            std::thread::sleep(Duration::from_micros(round % 7 * 50));
            kubelet.rename();
            rounds.store(round, Ordering::SeqCst);
            // Not so far ahead that files are let go.
            while round > seen.load(Ordering::SeqCst) + 4 {
                std::thread::yield_now();
            }
        }
        kubelet
    });
    while !writer.is_finished() {
        let round = written.load(Ordering::SeqCst);
        let changing = reader.tail.look(reader.now).is_err();
        while !matches!(reader.read(), Progress::Waiting) {}
        if !changing {
            looked.store(round, Ordering::SeqCst);
        }
    }
    let mut kubelet = writer.join().unwrap();
    reader.end(&mut kubelet);
    assert_eq!(reader.seen.gaps, []);
    assert_eq!(reader.seen.bytes, kubelet.written);
}

/// What the runtime adds to a file that was renamed.
const LATE: &[u8] = b"2026-11-30T19:00:00Z stdout P rest of the old \n";

/// A file that was read and renamed, which the runtime still writes to, and the next one.
fn renamed(kubelet: &mut Kubelet, reader: &mut Reader) -> File {
    kubelet.write("first\n");
    while !reader.step() {}
    let old = kubelet.rename();
    kubelet.write("new\n");
    old
}

#[test]
fn the_rest_of_a_line_comes_after_the_rename_however_late() {
    let mut kubelet = Kubelet::start();
    let mut reader = Reader::new(&kubelet, None);
    let mut old = renamed(&mut kubelet, &mut reader);
    reader.now += SETTLE * 10;
    assert!(reader.step(), "the new file is not read yet");
    old.write_all(LATE).unwrap();
    drop(old);
    reader.drain();
    assert_eq!(reader.seen.bytes, b"first\nrest of the old new\n");
    assert_eq!(reader.reasons(), []);
}

#[test]
fn a_renamed_file_that_the_runtime_has_closed_delays_nothing() {
    let mut kubelet = Kubelet::start();
    let mut reader = Reader::new(&kubelet, None);
    drop(renamed(&mut kubelet, &mut reader));
    while !reader.step() {}
    assert_eq!(reader.seen.bytes, b"first\nnew\n");
}

#[rstest::rstest]
#[case(Reader::new, SETTLE * 20)]
#[case(Reader::unsure, SETTLE)]
fn a_renamed_file_that_grows_after_it_was_let_go_is_a_gap(
    #[case] new: fn(&Kubelet, Option<Position>) -> Reader,
    #[case] patience: Duration,
) {
    let mut kubelet = Kubelet::start();
    let mut reader = new(&kubelet, None);
    let mut old = renamed(&mut kubelet, &mut reader);
    while !reader.step() {}
    reader.now += patience;
    reader.drain();
    assert_eq!(reader.seen.bytes, b"first\nnew\n");
    old.write_all(LATE).unwrap();
    drop(old);
    reader.end(&mut kubelet);
    assert_eq!(reader.seen.bytes, b"first\nnew\n");
    assert_eq!(reader.reasons(), [GapReason::RotatedAway]);
    assert_eq!(reader.seen.gaps[0].bytes, Some(LATE.len() as u64));
}

#[test]
fn a_renamed_file_that_is_still_written_at_the_end_may_go_on() {
    let mut kubelet = Kubelet::start();
    let mut reader = Reader::new(&kubelet, None);
    let _old = renamed(&mut kubelet, &mut reader);
    while !reader.step() {}
    reader.now += SETTLE * 30;
    reader.end(&mut kubelet);
    assert_eq!(reader.seen.bytes, b"first\nnew\n");
    assert_eq!(reader.reasons(), [GapReason::EndUnseen]);
}

#[test]
fn who_goes_on_after_a_file_that_is_still_written_says_that_something_may_be_missing() {
    let mut kubelet = Kubelet::start();
    let mut reader = Reader::new(&kubelet, None);
    let mut old = renamed(&mut kubelet, &mut reader);
    while !reader.step() {}
    reader.now += SETTLE * 30;
    reader.drain();
    let mut next = Reader::new(&kubelet, reader.tail.position().cloned());
    old.write_all(LATE).unwrap();
    next.end(&mut kubelet);
    assert_eq!(reader.seen.bytes, b"first\nnew\n");
    assert_eq!(next.seen.bytes, b"");
    assert_eq!(next.reasons(), [GapReason::RotatedAway]);
}

#[test]
fn the_rest_of_a_line_is_waited_for_where_nobody_can_tell_whether_it_comes() {
    let mut kubelet = Kubelet::start();
    let mut reader = Reader::unsure(&kubelet, None);
    let mut old = renamed(&mut kubelet, &mut reader);
    assert!(reader.step(), "the new file is not read yet");
    reader.now += SETTLE / 2;
    old.write_all(LATE).unwrap();
    reader.drain();
    assert_eq!(reader.seen.bytes, b"first\nrest of the old new\n");
}
