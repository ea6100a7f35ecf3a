//! One turn of a task: what happens on a thread that may wait for the node's disk.

use std::cell::RefCell;
use std::io;
use std::time::Instant;

use super::assignment::Ended;
use super::stats::Stats;
use crate::archive::{Gap, LineHead, Writer};
use crate::tail::{Progress, Sink, Tail};

/// One read. More than the longest line that a runtime writes by default, 16 KiB.
pub(crate) const BUFFER: usize = 128 << 10;
/// How many buffers a turn reads before the next box has its turn.
const READS: usize = 8;
/// A turn takes at most so much of the budget: heads of lines are shorter in a segment than in a log.
const TURN: usize = BUFFER * READS;

thread_local! {
    static SHARED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The log and the segment that a task moves between threads.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) tail: Tail,
    pub(crate) writer: Box<Writer>,
}

/// A segment, and what is counted of it.
struct Counting<'a>(&'a mut Writer, &'a Stats);

impl Sink for Counting<'_> {
    fn record(&mut self, head: LineHead, bytes: &[u8]) {
        self.0.record(head, bytes);
    }

    fn gap(&mut self, gap: Gap) {
        self.1.count_gap(gap.reason);
        self.0.gap(gap);
    }
}

impl Pair {
    /// How much of the budget the next turn may need: more may come until then.
    pub(crate) fn wants(&self) -> usize {
        let unread = self.tail.unread().unwrap_or(u64::MAX);
        usize::try_from(unread).map_or(TURN, |unread| unread.clamp(BUFFER, TURN))
    }

    /// Opens what is new and reads on, at most so many bytes, or a buffer.
    pub(crate) fn read(
        &mut self,
        now: Instant,
        most: usize,
        stats: &Stats,
    ) -> io::Result<Progress> {
        // What is held can be read, whatever stands beside it.
        let looked = self.tail.look(now);
        match self.read_some(now, most / BUFFER, stats)? {
            Progress::Waiting => looked.map(|()| Progress::Waiting),
            progress @ Progress::Read(_) => Ok(progress),
        }
    }

    fn read_some(&mut self, now: Instant, reads: usize, stats: &Stats) -> io::Result<Progress> {
        let mut total = 0;
        for _ in 0..reads.clamp(1, READS) {
            match self.read_one(now, stats)? {
                Progress::Read(taken) => total += taken,
                Progress::Waiting if total == 0 => return Ok(Progress::Waiting),
                Progress::Waiting => break,
            }
        }
        stats.log_bytes.inc_by(total as u64);
        Ok(Progress::Read(total))
    }

    fn read_one(&mut self, now: Instant, stats: &Stats) -> io::Result<Progress> {
        let Self { tail, writer } = self;
        let progress = with_buffer(|buffer| tail.read(now, buffer, &mut Counting(writer, stats)));
        writer.reached(tail.position().cloned());
        progress
    }

    /// Closes a log that is drained, or of which the rest cannot be read.
    pub(crate) fn end(
        &mut self,
        ended: Ended,
        readable: bool,
        now: Instant,
        stats: &Stats,
    ) -> io::Result<()> {
        let Self { tail, writer } = self;
        let mut sink = Counting(writer, stats);
        let closed = if readable {
            with_buffer(|buffer| tail.end(ended == Ended::Ran, now, buffer, &mut sink))
        } else {
            with_buffer(|buffer| tail.give_up(now, buffer, &mut sink));
            Ok(())
        };
        if ended == Ended::Unknown {
            tail.miss_end(&mut sink);
        }
        writer.reached(tail.position().cloned());
        closed
    }
}

fn with_buffer<T>(work: impl FnOnce(&mut [u8]) -> T) -> T {
    SHARED.with_borrow_mut(|buffer| {
        buffer.resize(BUFFER, 0);
        work(buffer)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::archive::faulty::Faulty;
    use crate::archive::{Archive, Resumed, RunKey, Uid};
    use crate::tail::LogRoot;
    use crate::tail::kubelet::Kubelet;

    #[tokio::test]
    async fn a_turn_reads_no_more_than_its_share_however_much_has_come() {
        let mut kubelet = Kubelet::start();
        let uid = Uid::parse("uid").unwrap();
        let run = RunKey::first(uid.clone(), uid);
        let archive = Archive::over(Faulty::new([]));
        let Resumed::At(writer) = Writer::resume(&archive, &run).await.unwrap() else {
            panic!("nothing was saved");
        };
        let root = Arc::new(LogRoot::open(kubelet.root()).unwrap());
        let mut tail = Tail::new(root, "pod/box");
        tail.resume(None, None);
        let mut pair = Pair { tail, writer };
        let wanted = pair.wants();
        for _ in 0..TURN / 1000 {
            kubelet.write(&("0123456789".repeat(100) + "\n"));
        }
        let progress = pair.read(Instant::now(), wanted, &Stats::default());
        assert!(matches!(progress, Ok(Progress::Read(1..=BUFFER))));
        assert!((1..=wanted).contains(&pair.writer.waiting()));
    }
}
