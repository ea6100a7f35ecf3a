//! When a log has ended.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn lines_that_come_between_the_last_read_and_the_end_are_lines() {
    let mut kubelet = Kubelet::start();
    let mut reader = Reader::new(&kubelet, None);
    kubelet.write("first\n");
    reader.drain();
    kubelet.write(&"late\n".repeat(100));
    kubelet.close();
    reader.close(true);
    assert_eq!(reader.seen.bytes, kubelet.written);
    assert_eq!(reader.reasons(), []);
}

#[test]
fn a_log_has_ended_when_the_runtime_has_closed_it_and_not_before() {
    let mut kubelet = Kubelet::start();
    let mut reader = Reader::new(&kubelet, None);
    kubelet.write("first\n");
    reader.drain();
    let ended = reader.now;
    reader.now += SECOND * 30;
    reader.drain();
    assert!(!reader.tail.is_drained(ended), "it is still open");
    kubelet.write("what a busy disk kept waiting\n");
    kubelet.close();
    reader.drain();
    assert!(!reader.tail.is_drained(ended), "a read is to follow");
    reader.drain();
    assert!(reader.tail.is_drained(ended));
    reader.close(true);
    assert_eq!(reader.seen.bytes, kubelet.written);
    assert_eq!(reader.reasons(), []);
}

#[test]
fn a_log_that_is_closed_is_not_waited_for() {
    let mut kubelet = Kubelet::start();
    let mut reader = Reader::new(&kubelet, None);
    kubelet.write("all\n");
    kubelet.close();
    let ended = reader.now;
    while !reader.tail.is_drained(ended) {
        reader.step();
        reader.now += Duration::from_millis(1);
    }
    assert!(reader.now - ended < SETTLE);
}

#[test]
fn a_log_that_is_left_open_long_after_the_end_may_go_on() {
    let mut kubelet = Kubelet::start();
    let mut reader = Reader::new(&kubelet, None);
    kubelet.write("first\n");
    let ended = reader.now;
    while !reader.tail.is_drained(ended) {
        reader.drain();
    }
    assert!(reader.now - ended >= SECOND * 60);
    reader.close(true);
    assert_eq!(reader.seen.bytes, kubelet.written);
    assert_eq!(reader.reasons(), [GapReason::EndUnseen]);
}

#[test]
fn a_log_is_drained_by_a_read_after_its_end_not_by_time_alone() {
    let kubelet = Kubelet::start();
    let mut reader = Reader::unsure(&kubelet, None);
    reader.drain();
    let ended = reader.now;
    reader.now += Duration::from_mins(1);
    assert!(!reader.tail.is_drained(ended));
    reader.step();
    assert!(reader.tail.is_drained(ended));
}

/// Where nobody can tell whether it is closed.
#[test]
fn a_log_is_read_for_a_while_after_its_end() {
    let mut kubelet = Kubelet::start();
    let mut reader = Reader::unsure(&kubelet, None);
    kubelet.write("first\n");
    reader.drain();
    let ended = reader.now;
    kubelet.write("late\n");
    while !reader.tail.is_drained(ended) {
        reader.drain();
    }
    assert!(reader.now - ended >= SECOND * 2);
    reader.close(true);
    assert_eq!(reader.seen.bytes, kubelet.written);
    assert_eq!(reader.reasons(), []);
}

#[test]
fn a_log_that_was_never_there_is_a_gap_only_if_the_command_ran() {
    let kubelet = Kubelet::start();
    kubelet.remove_all();
    for (ran, reasons) in [(true, vec![GapReason::Removed]), (false, vec![])] {
        let mut reader = Reader::new(&kubelet, None);
        reader.drain();
        reader.close(ran);
        assert_eq!(reader.reasons(), reasons);
    }
}

#[test]
fn an_empty_log_is_no_gap() {
    let mut kubelet = Kubelet::start();
    let mut reader = Reader::new(&kubelet, None);
    reader.end(&mut kubelet);
    assert_eq!((reader.seen.bytes.len(), reader.reasons()), (0, vec![]));
}
