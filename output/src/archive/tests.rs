//! The archive over a memory: what is written is read, from wherever one begins.

use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use object_store::ObjectStoreExt;
use object_store::memory::InMemory;
use proptest::prelude::*;

use super::faulty::{Fault, Faulty};
use super::*;

fn run() -> RunKey {
    RunKey::first(Uid::parse("b-1").unwrap(), Uid::parse("p-1").unwrap())
}

fn archive() -> Archive {
    Archive::over(std::sync::Arc::new(InMemory::new()))
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

async fn writer(archive: &Archive) -> Box<Writer> {
    match Writer::resume(archive, &run()).await.unwrap() {
        Resumed::At(writer) => writer,
        Resumed::Done(manifest) => panic!("done: {manifest:?}"),
    }
}

fn line(writer: &mut Writer, second: i64, stream: Stream, text: &str) {
    let ends_line = text.ends_with('\n');
    let head = LineHead {
        time: at(second),
        stream,
        ends_line,
    };
    writer.record(head, text.trim_end_matches('\n').as_bytes());
}

/// A hundred lines, one a second, every third to stderr, in segments of `size` lines.
async fn hundred(archive: &Archive, size: i64) -> Box<Writer> {
    let mut writer = writer(archive).await;
    for second in 0..100 {
        let stream = if second % 3 == 2 {
            Stream::Stderr
        } else {
            Stream::Stdout
        };
        line(&mut writer, second, stream, &format!("{second}\n"));
        if (second + 1) % size == 0 {
            assert_eq!(writer.flush().await.unwrap(), Flushed::Stored);
        }
    }
    writer
}

async fn read(archive: &Archive, start: Start) -> Vec<Entry> {
    let batches: Vec<_> = archive.read(&run(), start).try_collect().await.unwrap();
    assert!(batches.iter().all(|batch| !batch.is_empty()));
    batches.concat()
}

fn numbers(entries: &[Entry]) -> Vec<u64> {
    entries.iter().map(|entry| entry.number).collect()
}

#[tokio::test]
async fn nothing_is_nothing() {
    let archive = archive();
    for start in [
        Start::Beginning,
        Start::Entry(7),
        Start::Time(at(0)),
        Start::TailLines {
            lines: 3,
            stream: None,
        },
    ] {
        assert_eq!(read(&archive, start).await, []);
    }
    assert_eq!(archive.manifest(&run()).await.unwrap(), None);
    assert_eq!(archive.runs(&run().box_uid).await.unwrap(), []);
    assert_eq!(archive.boxes().await.unwrap(), []);
    archive.delete(&run().box_uid).await.unwrap();
}

#[rstest::rstest]
#[case(1)]
#[case(3)]
#[case(7)]
#[case(100)]
#[tokio::test]
async fn every_start_begins_where_it_says(#[case] size: i64) {
    let archive = archive();
    let mut writer = hundred(&archive, size).await;
    writer.flush().await.unwrap();
    let from = |first: u64| (first..100).collect::<Vec<_>>();
    for start in [0, 1, 50, 99, 100, 200] {
        let entries = read(&archive, Start::Entry(start)).await;
        assert_eq!(numbers(&entries), from(start));
        let time = Start::Time(at(i64::try_from(start).unwrap()));
        assert_eq!(numbers(&read(&archive, time).await), from(start));
        let lines = start;
        let tail = Start::TailLines {
            lines,
            stream: None,
        };
        let first = 100_u64.saturating_sub(start);
        assert_eq!(numbers(&read(&archive, tail).await), from(first));
    }
    // stderr has 2, 5, …, 98: the last three begin at 92, after 89 ended.
    let tail = Start::TailLines {
        lines: 3,
        stream: Some(Stream::Stderr),
    };
    assert_eq!(numbers(&read(&archive, tail).await), from(90));
}

#[tokio::test]
async fn an_unfinished_line_counts_as_a_line() {
    let archive = archive();
    let mut writer = writer(&archive).await;
    for text in ["a\n", "b\n", "c", "d"] {
        line(&mut writer, 1, Stream::Stdout, text);
    }
    writer.flush().await.unwrap();
    for (lines, expected) in [
        (0, vec![]),
        (1, vec![2, 3]),
        (2, vec![1, 2, 3]),
        (9, vec![0, 1, 2, 3]),
    ] {
        let tail = Start::TailLines {
            lines,
            stream: None,
        };
        assert_eq!(numbers(&read(&archive, tail).await), expected, "{lines}");
    }
}

#[rstest::rstest]
#[case(&["a", "!b"], 1, 0)]
#[case(&["a\n", "b", "!c"], 1, 1)]
#[case(&["a\n", "b", "!c"], 2, 0)]
#[case(&["a", "!b\n"], 1, 0)]
#[case(&["a\n", "!b", "c\n"], 1, 1)]
#[case(&["a\n", "b\n", ""], 1, 1)]
#[tokio::test]
async fn lines_of_both_streams_are_those_of_the_body(
    #[case] texts: &[&str],
    #[case] lines: u64,
    #[case] first: u64,
) {
    let archive = archive();
    let mut writer = writer(&archive).await;
    for text in texts {
        match text.strip_prefix('!') {
            Some(text) => line(&mut writer, 1, Stream::Stderr, text),
            None => line(&mut writer, 1, Stream::Stdout, text),
        }
    }
    writer.flush().await.unwrap();
    let tail = Start::TailLines {
        lines,
        stream: None,
    };
    let expected = (first..texts.len() as u64).collect::<Vec<_>>();
    assert_eq!(numbers(&read(&archive, tail).await), expected);
}

#[tokio::test]
async fn the_manifest_tells_totals_digests_and_gaps() {
    let archive = archive();
    let mut writer = hundred(&archive, 7).await;
    writer.gap(Gap {
        from: None,
        to: None,
        bytes: Some(5),
        reason: GapReason::Malformed,
    });
    writer.gap(Gap {
        from: None,
        to: None,
        bytes: Some(6),
        reason: GapReason::Malformed,
    });
    line(&mut writer, 200, Stream::Stderr, "no newline");
    let manifest = writer.finish().await.unwrap().unwrap();
    let gap = Gap {
        from: Some(at(99)),
        to: Some(at(200)),
        bytes: Some(11),
        reason: GapReason::Malformed,
    };
    assert_eq!((manifest.state, manifest.gap_count), (Saved::Partial, 1));
    assert_eq!(manifest.gaps, [gap]);
    assert_eq!((manifest.stdout.lines, manifest.stderr.lines), (67, 33));
    assert_eq!(
        manifest.bytes,
        manifest.stdout.bytes + manifest.stderr.bytes
    );
    assert_eq!(
        archive.manifest(&run()).await.unwrap(),
        Some(manifest.clone())
    );
    let entries = read(&archive, Start::Beginning).await;
    assert_eq!(entries.len() as u64, manifest.entries);
    assert_eq!(entries[100].content, Content::Gap(gap));
    assert!(matches!(
        Writer::resume(&archive, &run()).await.unwrap(),
        Resumed::Done(_)
    ));
}

#[tokio::test]
async fn small_segments_become_few_and_read_the_same() {
    let archive = archive();
    let mut writer = hundred(&archive, 1).await;
    let manifest = writer.finish().await.unwrap().unwrap();
    let names = archive.names(&run()).await.unwrap();
    assert_eq!(names.all().count(), 3 + 4);
    assert_eq!(manifest.entries, 100);
    assert_eq!(read(&archive, Start::Beginning).await.len(), 100);
}

#[tokio::test(start_paused = true)]
async fn a_follower_sees_what_comes_and_the_end() {
    let archive = archive();
    let follower = archive.follow(&run(), Start::Beginning);
    let following = tokio::spawn(follower.try_collect::<Vec<_>>());
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    let mut writer = hundred(&archive, 1).await;
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    line(&mut writer, 100, Stream::Stdout, "last");
    writer.finish().await.unwrap();
    let entries = following.await.unwrap().unwrap().concat();
    assert_eq!(numbers(&entries), (0..101).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_follower_may_begin_inside_of_what_is_not_yet_there() {
    let archive = archive();
    let mut writer = writer(&archive).await;
    for second in 0..3 {
        line(&mut writer, second, Stream::Stdout, "before\n");
    }
    writer.flush().await.unwrap();
    let follower = archive.follow(&run(), Start::Entry(5));
    let following = tokio::spawn(follower.try_collect::<Vec<_>>());
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    for second in 3..8 {
        line(&mut writer, second, Stream::Stdout, "after\n");
    }
    writer.finish().await.unwrap();
    let entries = following.await.unwrap().unwrap().concat();
    assert_eq!(numbers(&entries), [5, 6, 7]);
}

#[tokio::test(start_paused = true)]
async fn a_follower_sees_what_is_merged_before_it_looks() {
    let archive = archive();
    let mut writer = writer(&archive).await;
    line(&mut writer, 0, Stream::Stdout, "first\n");
    writer.flush().await.unwrap();
    let follower = archive.follow(&run(), Start::Beginning);
    let following = tokio::spawn(follower.try_collect::<Vec<_>>());
    for round in 0..3 {
        tokio::time::sleep(std::time::Duration::from_secs(3)).await;
        for second in 0..40 {
            line(&mut writer, round * 40 + second, Stream::Stdout, "more\n");
            writer.flush().await.unwrap();
        }
    }
    writer.finish().await.unwrap();
    let entries = following.await.unwrap().unwrap().concat();
    assert_eq!(numbers(&entries), (0..121).collect::<Vec<_>>());
}

#[rstest::rstest]
#[case(Start::TailLines { lines: 30, stream: None }, 10)]
#[case(Start::Time(at(12)), 12)]
#[tokio::test]
async fn a_search_goes_on_where_segments_are_merged_under_it(
    #[case] start: Start,
    #[case] first: u64,
) {
    let store = Faulty::new([]);
    let archive = Archive::over(store.clone());
    let mut writer = writer(&archive).await;
    for second in 0..40 {
        if second == 20 {
            store.next_list_is_of_now().await;
        }
        line(&mut writer, second, Stream::Stdout, "more\n");
        writer.flush().await.unwrap();
    }
    let entries = read(&archive, start).await;
    assert_eq!(numbers(&entries), (first..40).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_second_writer_overtakes_the_first() {
    let archive = archive();
    let (mut first, mut second) = (writer(&archive).await, writer(&archive).await);
    line(&mut first, 1, Stream::Stdout, "one\n");
    line(&mut second, 1, Stream::Stdout, "one\n");
    line(&mut second, 2, Stream::Stdout, "two\n");
    assert_eq!(second.flush().await.unwrap(), Flushed::Stored);
    assert_eq!(first.flush().await.unwrap(), Flushed::Overtaken);
    assert_eq!(first.finish().await.unwrap(), None);
    assert_eq!(read(&archive, Start::Beginning).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_was_merged_away_is_not_taken_again() {
    for stalled in [false, true] {
        let store = faulty::Faulty::new((!stalled).then_some(faulty::Fault::Away));
        let archive = Archive::over(store);
        let mut late = writer(&archive).await;
        line(&mut late, 1, Stream::Stdout, "0\n");
        if stalled {
            tokio::time::sleep(std::time::Duration::from_secs(6)).await;
        } else {
            late.flush().await.unwrap_err();
        }
        let mut other = hundred(&archive, 1).await;
        assert_eq!(late.flush().await.unwrap(), Flushed::Overtaken);
        assert_eq!(writer(&archive).await.entries(), 100);
        other.finish().await.unwrap();
        assert_eq!(
            numbers(&read(&archive, Start::Beginning).await),
            (0..100).collect::<Vec<_>>()
        );
    }
}

#[tokio::test]
async fn many_entries_in_few_bytes_are_given_in_batches() {
    let archive = archive();
    let mut writer = writer(&archive).await;
    for _ in 0..5000 {
        line(&mut writer, 1, Stream::Stdout, "\n");
    }
    writer.finish().await.unwrap();
    for start in [0, 1, 1500, 4999] {
        let mut next = start;
        let mut batches = archive.read(&run(), Start::Entry(start));
        while let Some(batch) = batches.try_next().await.unwrap() {
            assert!(!batch.is_empty() && batch.len() <= 1024);
            assert_eq!(batch[0].number, next);
            next += batch.len() as u64;
        }
        assert_eq!(next, 5000);
    }
}

#[tokio::test]
async fn boxes_do_not_mix_and_are_deleted_alone() {
    let archive = archive();
    let other = RunKey::first(Uid::parse("b-2").unwrap(), Uid::parse("p-1").unwrap());
    for run in [run(), other.clone()] {
        let label = Label {
            uid: run.box_uid.clone(),
            namespace: "n".to_owned(),
            name: "same".to_owned(),
        };
        archive.put_label(&label).await.unwrap();
        assert_eq!(archive.label(&run.box_uid).await.unwrap(), Some(label));
        let Resumed::At(mut writer) = Writer::resume(&archive, &run).await.unwrap() else {
            panic!()
        };
        line(&mut writer, 1, Stream::Stdout, run.box_uid.as_str());
        writer.finish().await.unwrap();
    }
    assert_eq!(archive.boxes().await.unwrap().len(), 2);
    archive.delete(&run().box_uid).await.unwrap();
    assert_eq!(
        archive.boxes().await.unwrap(),
        std::slice::from_ref(&other.box_uid)
    );
    assert_eq!(
        archive.runs(&other.box_uid).await.unwrap(),
        std::slice::from_ref(&other)
    );
    assert_eq!(archive.runs(&run().box_uid).await.unwrap(), []);
    assert_eq!(archive.read(&other, Start::Beginning).count().await, 1);
}

#[rstest::rstest]
#[case("manifest.json", b"{\"version\": 2, \"new\": true}")]
#[case("00000000000000000000.seg", b"boxseg2\n and something new")]
#[tokio::test]
async fn what_a_newer_build_wrote_is_left_alone(#[case] name: &str, #[case] bytes: &'static [u8]) {
    let store = std::sync::Arc::new(InMemory::new());
    let archive = Archive::over(store.clone());
    let mut late = writer(&archive).await;
    line(&mut late, 1, Stream::Stdout, "one\n");
    let path = layout::run_folder(&"".into(), &run()).join(name);
    store.put(&path, bytes.into()).await.unwrap();
    let unknown = |error: Error| matches!(error, Error::UnknownVersion { version: 2, .. });
    assert!(unknown(Writer::resume(&archive, &run()).await.unwrap_err()));
    assert_eq!(late.finish().await.unwrap(), None);
    assert!(unknown(archive.delete(&run().box_uid).await.unwrap_err()));
    let left = store.get(&path).await.unwrap().bytes().await.unwrap();
    assert_eq!(left, bytes);
}

#[tokio::test]
async fn an_archive_is_of_one_cluster_for_good() {
    let shared = archive();
    let of = |uid| shared.clone().of_cluster(Uid::parse(uid).unwrap());
    let (ours, theirs) = (of("ours"), of("theirs"));
    let mut first = writer(&ours).await;
    line(&mut first, 1, Stream::Stdout, "one\n");
    assert_eq!(first.flush().await.unwrap(), Flushed::Stored);
    for _ in 0..2 {
        assert!(matches!(theirs.claim().await, Err(Error::Foreign { .. })));
        let refused = Writer::resume(&theirs, &run()).await;
        assert!(matches!(refused, Err(Error::Foreign { .. })));
    }
    of("ours").claim().await.unwrap();
    assert_eq!(writer(&of("ours")).await.entries(), 1);
}

#[tokio::test]
async fn an_archive_that_takes_nothing_more_is_still_known_as_ours() {
    let store = Faulty::new([]);
    let archive = Archive::over(store.clone()).of_cluster(Uid::parse("ours").unwrap());
    archive.claim().await.unwrap();
    store.always(Some(Fault::Full));
    archive.claim().await.unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_writer_that_is_replaced_after_any_flush_writes_the_same(
        lines in prop::collection::vec((any::<bool>(), "[ab]{0,3}\n?"), 0..60),
        flushes in prop::collection::vec((1..5usize, any::<bool>()), 1..20),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let archive = archive();
            let mut current = writer(&archive).await;
            let mut plan = flushes.iter().cycle();
            let (mut left, mut replaced) = *plan.next().unwrap();
            let mut expected = [String::new(), String::new()];
            for (stderr, text) in &lines {
                let stream = if *stderr { Stream::Stderr } else { Stream::Stdout };
                line(&mut current, 1, stream, text);
                expected[usize::from(*stderr)].push_str(text);
                left -= 1;
                if left == 0 {
                    current.flush().await.unwrap();
                    if replaced {
                        current = writer(&archive).await;
                    }
                    (left, replaced) = *plan.next().unwrap();
                }
            }
            let manifest = current.finish().await.unwrap().unwrap();
            for (totals, text) in [(&manifest.stdout, &expected[0]), (&manifest.stderr, &expected[1])] {
                let mut counted = tally::Tally::default();
                counted.add_record((at(0), Stream::Stdout), text.as_bytes(), false);
                assert_eq!(totals.sha256, counted.whole.hex());
                assert_eq!(totals.bytes, text.len() as u64);
            }
            assert_eq!(read(&archive, Start::Beginning).await.len(), lines.len());
        });
    }
}
