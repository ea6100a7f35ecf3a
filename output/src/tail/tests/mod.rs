//! Real files, rotated and compressed as the kubelet does it.

mod attempts;
mod damaged;
mod ended;
mod property;
mod removed;
mod rotated;

use std::sync::Arc;
use std::time::{Duration, Instant};

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
        let mut tail = Tail::new(root, "pod/box");
        tail.resume(position, "2026-11-30T19:00:00Z".parse().ok());
        Self {
            tail,
            now: Instant::now(),
            seen: Seen::default(),
            buffer: vec![0; 512],
        }
    }

    /// One on a file system that cannot tell whether a file is still written.
    fn unsure(kubelet: &Kubelet, position: Option<Position>) -> Self {
        let mut reader = Self::new(kubelet, position);
        reader.tail.ask_nobody();
        reader
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

    fn end(&mut self, kubelet: &mut Kubelet) {
        kubelet.close();
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
