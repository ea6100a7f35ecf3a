//! Real files, rotated and compressed as the kubelet does it.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jiff::SignedDuration;
use proptest::prelude::*;

use super::kubelet::Kubelet;
use super::*;
use crate::archive::{Gap, GapReason, LineHead, Position};

#[derive(Default)]
struct Seen {
    bytes: Vec<u8>,
    gaps: Vec<Gap>,
}

impl Sink for Seen {
    fn record(&mut self, head: LineHead, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        if head.ends_line {
            self.bytes.push(b'\n');
        }
    }

    fn gap(&mut self, gap: Gap) {
        self.gaps.push(gap);
    }
}

/// A tailer with a clock of its own.
struct Reader {
    tail: Tail,
    now: Instant,
    seen: Seen,
    buffer: Vec<u8>,
}

impl Reader {
    fn new(kubelet: &Kubelet, position: Option<Position>) -> Self {
        let root = Arc::new(LogRoot::open(kubelet.root()).unwrap());
        let mut tail = Tail::new(root, "pod/box", 0);
        tail.resume(position, "2026-11-30T19:00:00Z".parse().ok());
        Self {
            tail,
            now: Instant::now(),
            seen: Seen::default(),
            buffer: vec![0; 512],
        }
    }

    fn look(&mut self) {
        self.tail.look(self.now).unwrap();
    }

    /// Reads all that is there, whatever cannot be read.
    fn drain_what_can_be(&mut self) {
        for _ in 0..40 {
            let _ = self.tail.look(self.now);
            let _ = self.tail.read(self.now, &mut self.buffer, &mut self.seen);
            self.now += SETTLE;
        }
    }

    fn read(&mut self) -> Progress {
        let read = self.tail.read(self.now, &mut self.buffer, &mut self.seen);
        read.unwrap()
    }

    /// One read. Whether it waits.
    fn step(&mut self) -> bool {
        self.look();
        self.read() == Progress::Waiting
    }

    /// Reads all that is there.
    fn drain(&mut self) {
        for _ in 0..3 {
            while !self.step() {}
            self.now += SETTLE;
        }
    }

    fn end(&mut self) {
        let ended = self.now;
        while !self.tail.is_drained(ended) {
            self.drain();
        }
        self.close(true);
    }

    fn close(&mut self, ran: bool) {
        let end = self
            .tail
            .end(ran, self.now, &mut self.buffer, &mut self.seen);
        end.unwrap();
    }

    fn reasons(&self) -> Vec<GapReason> {
        self.seen.gaps.iter().map(|gap| gap.reason).collect()
    }
}

#[test]
fn a_log_is_read_through_rotations() {
    let mut kubelet = Kubelet::start();
    let mut reader = Reader::new(&kubelet, None);
    for round in 0..8 {
        kubelet.write(&format!("line {round}\nhalf "));
        if round % 2 == 0 {
            reader.step();
        }
        kubelet.rotate();
        kubelet.write("whole\n");
        reader.drain();
    }
    kubelet.flush();
    reader.end();
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
    let kubelet = writer.join().unwrap();
    reader.end();
    assert_eq!(reader.seen.gaps, []);
    assert_eq!(reader.seen.bytes, kubelet.written);
}

#[test]
fn the_rest_of_a_line_comes_after_the_rename() {
    let mut kubelet = Kubelet::start();
    let mut reader = Reader::new(&kubelet, None);
    kubelet.write("first\n");
    while !reader.step() {}
    let mut old = kubelet.rename();
    kubelet.write("new\n");
    assert!(reader.step(), "the new file is not read yet");
    reader.now += SETTLE / 2;
    old.write_all(b"2026-11-30T19:00:00Z stdout P rest of the old \n")
        .unwrap();
    reader.drain();
    assert_eq!(reader.seen.bytes, b"first\nrest of the old new\n");
}

#[test]
fn a_renamed_file_that_grows_after_it_was_let_go_is_a_gap() {
    let mut kubelet = Kubelet::start();
    let mut reader = Reader::new(&kubelet, None);
    kubelet.write("first\n");
    while !reader.step() {}
    let mut old = kubelet.rename();
    kubelet.write("new\n");
    reader.drain();
    let late = b"2026-11-30T19:00:00Z stdout P late\n";
    old.write_all(late).unwrap();
    reader.end();
    assert_eq!(reader.seen.bytes, b"first\nnew\n");
    assert_eq!(reader.reasons(), [GapReason::RotatedAway]);
    assert_eq!(reader.seen.gaps[0].bytes, Some(late.len() as u64));
}

#[test]
fn lines_that_come_between_the_last_read_and_the_end_are_lines() {
    let mut kubelet = Kubelet::start();
    let mut reader = Reader::new(&kubelet, None);
    kubelet.write("first\n");
    reader.drain();
    kubelet.write(&"late\n".repeat(100));
    reader.close(true);
    assert_eq!(reader.seen.bytes, kubelet.written);
    assert_eq!(reader.reasons(), []);
}

#[test]
fn a_log_is_drained_by_a_read_after_its_end_not_by_time() {
    let kubelet = Kubelet::start();
    let mut reader = Reader::new(&kubelet, None);
    reader.drain();
    let ended = reader.now;
    reader.now += Duration::from_mins(1);
    assert!(!reader.tail.is_drained(ended));
    reader.step();
    assert!(reader.tail.is_drained(ended));
}

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
    kubelet.flush();
    reader.look();
    kubelet.remove_all();
    reader.end();
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
    reader.end();
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
    reader.end();
    assert_eq!(reader.reasons(), [GapReason::Overrun]);
    let line = "2026-11-30T19:00:00.000000001Z stdout F 0123456789\n".len() as u64;
    assert_eq!(reader.seen.gaps[0].bytes, Some(4 * line));
    assert_eq!(reader.seen.bytes.len(), (HELD - 1) * 11);
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
    reader.end();
    assert_eq!(reader.reasons(), [GapReason::Overrun]);
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
fn torn_and_malformed_and_truncated_logs_say_so() {
    let mut kubelet = Kubelet::start();
    kubelet.write("good\n");
    kubelet.raw(b"\0\0\0\nnot a line\n");
    kubelet.write("again\n");
    kubelet.raw(b"2026-11-30T19:00:00Z stdout F half a li");
    let mut reader = Reader::new(&kubelet, None);
    reader.end();
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
    reader.end();
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
    reader.end();
    assert_eq!(reader.seen.bytes, kubelet.written);
    assert_eq!(reader.reasons(), [GapReason::Truncated]);
    let mut next = Reader::new(&kubelet, position);
    next.end();
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
    next.end();
    assert_eq!(
        (next.seen.bytes.as_slice(), next.reasons()),
        (&b"x\n"[..], vec![])
    );
}

#[test]
fn an_empty_log_is_no_gap() {
    let kubelet = Kubelet::start();
    let mut reader = Reader::new(&kubelet, None);
    reader.end();
    assert_eq!((reader.seen.bytes.len(), reader.reasons()), (0, vec![]));
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
    next.end();
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

#[derive(Clone, Debug)]
enum Act {
    Write(String),
    Rotate,
    Look,
    Read,
    Pause,
    /// Another reader goes on from the position.
    Replace,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => "[a-z \n]{0,80}".prop_map(Act::Write),
        1 => Just(Act::Rotate),
        2 => Just(Act::Look),
        4 => Just(Act::Read),
        1 => Just(Act::Pause),
        1 => Just(Act::Replace),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn whatever_happens_all_is_read_once_or_a_gap_is_told(acts in prop::collection::vec(act(), 0..60)) {
        let mut kubelet = Kubelet::start();
        let mut reader = Reader::new(&kubelet, None);
        for act in acts {
            match act {
                Act::Write(text) => kubelet.write(&text),
                Act::Rotate => kubelet.rotate(),
                Act::Look => reader.look(),
                Act::Read => { reader.step(); }
                Act::Pause => reader.now += Duration::from_secs(1),
                Act::Replace => {
                    let mut next = Reader::new(&kubelet, reader.tail.position().cloned());
                    next.seen = reader.seen;
                    next.now = reader.now;
                    reader = next;
                }
            }
        }
        kubelet.flush();
        reader.end();
        if reader.seen.gaps.is_empty() {
            prop_assert_eq!(&reader.seen.bytes, &kubelet.written);
        } else {
            prop_assert!(kubelet.rotations >= 4, "{:?}", reader.seen.gaps);
            prop_assert!(is_subsequence(&reader.seen.bytes, &kubelet.written));
        }
    }
}

fn is_subsequence(part: &[u8], whole: &[u8]) -> bool {
    let mut whole = whole.iter();
    part.iter().all(|byte| whole.any(|other| other == byte))
}
