//! Files that are not what they should be.

use super::*;

#[test]
fn torn_and_malformed_and_truncated_logs_say_so() {
    let mut kubelet = Kubelet::start();
    kubelet.write("good\n");
    kubelet.raw(b"\0\0\0\nnot a line\n");
    kubelet.write("again\n");
    kubelet.raw(b"2026-11-30T19:00:00Z stdout F half a li");
    let mut reader = Reader::new(&kubelet, None);
    reader.end(&mut kubelet);
    assert_eq!(reader.seen.bytes, b"good\nagain\nhalf a li");
    assert_eq!(
        reader.reasons(),
        [GapReason::Malformed, GapReason::Malformed, GapReason::Torn]
    );

    let mut kubelet = Kubelet::start();
    kubelet.write("a long line that is read\n");
    let mut reader = Reader::new(&kubelet, None);
    reader.drain();
    kubelet.truncate();
    reader.drain();
    kubelet.write("x\n");
    reader.end(&mut kubelet);
    assert_eq!(reader.reasons(), [GapReason::Truncated]);
    assert!(reader.seen.bytes.ends_with(b"read\nx\n"));
}

#[rstest::rstest]
#[case(false)]
#[case(true)]
fn a_log_that_lost_its_end_in_a_crash_is_not_read_again(#[case] restarts: bool) {
    let mut kubelet = Kubelet::start();
    kubelet.write("one\ntwo\nthree\n");
    let mut reader = Reader::new(&kubelet, None);
    reader.drain();
    kubelet.lose(10);
    if restarts {
        let seen = reader.seen;
        reader = Reader::new(&kubelet, reader.tail.position().cloned());
        reader.seen = seen;
    }
    reader.drain();
    let position = reader.tail.position().cloned();
    reader.end(&mut kubelet);
    assert_eq!(reader.seen.bytes, kubelet.written);
    assert_eq!(reader.reasons(), [GapReason::Truncated]);
    let mut next = Reader::new(&kubelet, position);
    next.end(&mut kubelet);
    assert_eq!(
        (next.seen.bytes.len(), next.reasons()),
        (0, vec![]),
        "it is told once"
    );
}

#[test]
fn a_log_that_was_emptied_is_read_from_its_new_beginning_and_told_once() {
    let mut kubelet = Kubelet::start();
    kubelet.write("a long line that is read\n");
    let mut reader = Reader::new(&kubelet, None);
    reader.drain();
    kubelet.truncate();
    reader.drain();
    let mut next = Reader::new(&kubelet, reader.tail.position().cloned());
    kubelet.write("x\n");
    next.end(&mut kubelet);
    assert_eq!(
        (next.seen.bytes.as_slice(), next.reasons()),
        (&b"x\n"[..], vec![])
    );
}

#[test]
fn a_link_in_the_place_of_a_log_is_not_read() {
    let kubelet = Kubelet::start();
    kubelet.replace_by_link("/etc/passwd");
    let mut reader = Reader::new(&kubelet, None);
    assert!(reader.tail.look(reader.now).is_err());
}

#[test]
fn a_rotated_file_that_cannot_be_opened_is_a_gap_and_the_others_are_read() {
    let mut kubelet = Kubelet::start();
    for text in ["lost\n", "kept\n"] {
        kubelet.write(text);
        kubelet.rotate();
    }
    kubelet.write("end\n");
    kubelet.spoil_oldest(|path| std::os::unix::fs::symlink("/etc/passwd", path).unwrap());
    let mut reader = Reader::new(&kubelet, None);
    reader.drain_what_can_be();
    assert_eq!(reader.seen.bytes, b"kept\nend\n");
    assert_eq!(reader.reasons(), [GapReason::Unreadable]);
}

#[test]
fn a_file_without_a_mark_does_not_hide_the_one_that_was_read() {
    let mut kubelet = Kubelet::start();
    kubelet.write("old\n");
    kubelet.rotate();
    kubelet.write("read\n");
    kubelet.rotate();
    let mut reader = Reader::new(&kubelet, None);
    reader.drain();
    let position = reader.tail.position().cloned();
    kubelet.write("new\n");
    kubelet.spoil_oldest(|path| drop(std::fs::write(path, b"")));
    let mut next = Reader::new(&kubelet, position);
    next.seen = reader.seen;
    next.end(&mut kubelet);
    assert_eq!(next.seen.bytes, kubelet.written);
    assert_eq!(next.reasons(), []);
}

#[test]
fn what_was_read_is_not_read_again_where_its_file_cannot_be_told() {
    let mut kubelet = Kubelet::start();
    kubelet.write("read\n");
    let mut reader = Reader::new(&kubelet, None);
    reader.drain();
    let position = reader.tail.position().cloned();
    kubelet.rotate();
    kubelet.write("more\n");
    kubelet.rotate();
    kubelet.write("new\n");
    kubelet.spoil_oldest(|path| drop(std::fs::write(path, b"not packed")));
    let mut next = Reader::new(&kubelet, position);
    next.drain_what_can_be();
    assert_eq!(next.seen.bytes, b"more\nnew\n");
    assert_eq!(next.reasons(), [GapReason::Unreadable]);
}

#[test]
fn what_is_given_up_is_what_cannot_be_read() {
    let mut kubelet = Kubelet::start();
    kubelet.write("one\n");
    let mut reader = Reader::new(&kubelet, None);
    reader.step();
    kubelet.rename();
    kubelet.write("two\n");
    reader.look();
    reader
        .tail
        .give_up(reader.now, &mut reader.buffer, &mut reader.seen);
    assert_eq!(reader.seen.bytes, kubelet.written);
    assert_eq!(reader.reasons(), [GapReason::Unreadable]);
}
