//! What is taken away before it is read, and what is let go.

use jiff::SignedDuration;

use super::*;

#[test]
fn what_is_removed_while_it_is_held_is_read() {
    let mut kubelet = Kubelet::start();
    let mut reader = Reader::new(&kubelet, None);
    for _ in 0..10 {
        kubelet.write(&"word ".repeat(100));
        reader.look();
        kubelet.rotate();
    }
    kubelet.write("end\n");
    reader.look();
    kubelet.remove_all();
    reader.end(&mut kubelet);
    assert_eq!(reader.seen.bytes, kubelet.written);
    assert_eq!(reader.seen.gaps, []);
}

#[test]
fn what_was_rotated_away_unseen_is_a_gap() {
    let mut kubelet = Kubelet::start();
    let mut reader = Reader::new(&kubelet, None);
    kubelet.write("seen\n");
    reader.drain();
    for round in 0..9 {
        kubelet.write(&format!("round {round}\n"));
        kubelet.rotate();
    }
    reader.end(&mut kubelet);
    assert_eq!(reader.reasons(), [GapReason::RotatedAway]);
    let text = String::from_utf8(reader.seen.bytes.clone()).unwrap();
    assert!(
        text.starts_with("seen\nround 0\n"),
        "what was held is read: {text}"
    );
    assert!(text.ends_with("round 7\nround 8\n"), "{text}");
}

#[test]
fn a_reader_that_starts_late_says_that_the_beginning_may_be_missing() {
    let mut kubelet = Kubelet::start();
    for round in 0..3 {
        kubelet.write(&format!("round {round}\n"));
        kubelet.rotate();
    }
    let mut reader = Reader::new(&kubelet, None);
    reader.drain();
    assert_eq!(
        (reader.seen.bytes.clone(), reader.reasons()),
        (kubelet.written.clone(), vec![])
    );
    kubelet.write("round 3\n");
    kubelet.rotate();
    let mut reader = Reader::new(&kubelet, None);
    reader.drain();
    assert_eq!(reader.reasons(), [GapReason::RotatedAway]);
}

#[rstest::rstest]
#[case(0, 1, vec![])]
#[case(0, 2, vec![GapReason::RotatedAway])]
#[case(1, 3, vec![GapReason::RotatedAway])]
fn a_kubelet_that_keeps_few_files_may_have_removed_the_first(
    #[case] kept: usize,
    #[case] rounds: u32,
    #[case] reasons: Vec<GapReason>,
) {
    let mut kubelet = Kubelet::start();
    kubelet.kept = kept;
    for round in 0..rounds {
        kubelet.write(&format!("round {round}\n"));
        kubelet.rotate();
        // It looks every ten seconds.
        kubelet.time += SignedDuration::from_secs(10);
    }
    kubelet.write("end\n");
    let mut reader = Reader::new(&kubelet, None);
    reader.drain();
    let whole = reader.seen.bytes == kubelet.written;
    assert_eq!(
        (reader.reasons(), whole),
        (reasons.clone(), reasons.is_empty())
    );
}

#[test]
fn a_rotated_file_is_a_gap_where_the_start_is_not_known() {
    let mut kubelet = Kubelet::start();
    kubelet.write("one\n");
    kubelet.rotate();
    let mut reader = Reader::new(&kubelet, None);
    reader.tail.resume(None, None);
    reader.drain();
    assert_eq!(reader.reasons(), [GapReason::RotatedAway]);
}

#[test]
fn a_gap_that_was_told_is_not_told_again() {
    let mut kubelet = Kubelet::start();
    kubelet.write("one\n");
    let mut reader = Reader::new(&kubelet, None);
    reader.drain();
    let position = reader.tail.position().cloned();
    for _ in 0..6 {
        kubelet.write("more\n");
        kubelet.rotate();
    }
    let mut reader = Reader::new(&kubelet, position);
    reader.look();
    // An empty file comes first: the gap is told before any line is.
    let _ = reader
        .tail
        .read(reader.now, &mut reader.buffer, &mut reader.seen)
        .unwrap();
    assert_eq!(reader.reasons(), [GapReason::RotatedAway]);
    let mut position = reader.tail.position().cloned().unwrap();
    position.file = "gone".to_owned();
    position.gap_told = true;
    let mut reader = Reader::new(&kubelet, Some(position));
    reader.drain();
    assert_eq!(reader.reasons(), []);
}

#[test]
fn too_many_unread_files_are_let_go_with_their_size() {
    let mut kubelet = Kubelet::start();
    let mut reader = Reader::new(&kubelet, None);
    for _ in 0..HELD + 3 {
        kubelet.write("0123456789\n");
        reader.look();
        kubelet.rotate();
        reader.look();
    }
    assert_eq!(reader.tail.held(), HELD);
    reader.end(&mut kubelet);
    assert_eq!(reader.reasons(), [GapReason::Overrun]);
    let line = "2026-11-30T19:00:00.000000001Z stdout F 0123456789\n".len() as u64;
    assert_eq!(reader.seen.gaps[0].bytes, Some(4 * line));
    assert_eq!(reader.seen.bytes.len(), (HELD - 1) * 11);
}

#[test]
fn what_is_held_and_removed_is_counted() {
    let mut kubelet = Kubelet::start();
    let mut reader = Reader::new(&kubelet, None);
    let line = "2026-11-30T19:00:00.000000001Z stdout F 0123456789\n".len() as u64;
    for round in 0..10_u64 {
        kubelet.write("0123456789\n");
        reader.look();
        kubelet.rotate();
        reader.look();
        // What was rotated before is compressed by now, and the original removed.
        assert_eq!(reader.tail.removed(), round * line, "after {round}");
    }
    reader.end(&mut kubelet);
    assert_eq!(reader.tail.removed(), 0);
}

#[test]
fn where_all_hold_too_many_files_none_takes_more_than_the_kubelet_keeps() {
    let mut kubelet = Kubelet::start();
    let mut reader = Reader::new(&kubelet, None);
    for round in 0..10 {
        reader.tail.crowd(round > 6);
        kubelet.write("0123456789\n");
        reader.look();
        kubelet.rotate();
        reader.look();
    }
    assert_eq!(reader.tail.held(), 8, "what it held, it holds");
    reader.end(&mut kubelet);
    assert_eq!(reader.reasons(), [GapReason::Overrun]);
}
