//! Follows one container's log from file to file.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use super::folder::{Folder, LogRoot};
use super::held::{Held, Lines, Sink, missing};
use super::late::Late;
use super::name::LogName;
use super::snapshot::{Found, find, snapshot};
use super::writers::{Ask, is_written};
use crate::archive::{Gap, GapReason, Position};

/// How long a file must have nothing new until the runtime is taken to be done with it, where nobody can
/// tell whether it has closed it: it may add the rest of a line after a rename, and after the end of the
/// container.
pub const SETTLE: Duration = Duration::from_millis(500);
/// How long a log is read after the end of its container, where nobody can tell whether it is closed: the
/// end is told before all is logged.
const ENDED: Duration = Duration::from_secs(2);
/// How long a renamed file that is still open for writing keeps later ones from being read.
const RENAMED: Duration = Duration::from_secs(10);
/// How long a log that is still open for writing is read after the end of its container. The runtime
/// closes it within seconds, on a disk that is not busy.
const OPEN: Duration = Duration::from_mins(1);
/// How many unread files are held open. Each may take the node's disk after the kubelet removed it.
pub const HELD: usize = 16;
/// How many are held where all boxes together hold too many: as many as the kubelet keeps.
const HELD_IF_CROWDED: usize = 5;
/// The kubelet keeps five files, if it is not told otherwise: with four rotated ones, older ones may be
/// gone.
const ROTATED_KEPT: usize = 4;
/// How long after the start of a container the first line of its log may be for that log to be whole,
/// where one may be gone. The start is known to the second.
const AT_ONCE: SignedDuration = SignedDuration::from_secs(2);
/// How often a file that cannot be read is tried, if there are later ones.
const TRIES: u32 = 10;

/// What a read did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It took so many bytes of log; there may be more.
    Read(usize),
    /// There is nothing new.
    Waiting,
}

/// Reads one container's log.
#[derive(Debug)]
pub struct Tail {
    root: Arc<LogRoot>,
    path: String,
    folder: Option<Folder>,
    /// Oldest first; the first one is being read.
    files: VecDeque<Held>,
    late: Late,
    /// Whether somebody writes to a file.
    ask: Ask,
    crowded: bool,
    /// The files that were seen and that nobody writes to any more, of those that are still there.
    known: BTreeSet<String>,
    /// The attempt of the newest file.
    attempt: u32,
    /// What there was when it looked first.
    before: Option<Before>,
    position: Option<Position>,
    /// When the container started, if that is known.
    started: Option<Timestamp>,
    begun: Begun,
    /// When it read last, if only to find nothing.
    checked: Option<Instant>,
}

/// What there was of a log at the first look.
#[derive(Clone, Copy, Debug)]
struct Before {
    /// How many rotated files of the oldest attempt.
    rotated: usize,
    /// Whether the log of an attempt may have been removed. The kubelet keeps that of the newest and of
    /// the one before; one that never ran has none.
    lacks_an_attempt: bool,
}

impl Before {
    fn of(names: &[LogName]) -> Self {
        let oldest = names.first().map_or(0, |name| name.attempt);
        let newest = names.last().map_or(0, |name| name.attempt);
        let rotated = |name: &&LogName| name.attempt == oldest && name.is_rotated();
        Self {
            rotated: names.iter().filter(rotated).count(),
            lacks_an_attempt: oldest > 0 && newest > 1,
        }
    }
}

/// How far a tailer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begun {
    /// It holds files and does not know from where on to read.
    Holding,
    /// It knows the position, and has not found its file.
    Resuming,
    Reading,
}

impl Tail {
    /// A tailer of the log in a folder below the root. It opens and holds files, and reads nothing
    /// until it knows from where: [`Tail::resume`].
    #[must_use]
    pub fn new(root: Arc<LogRoot>, path: &str) -> Self {
        Self {
            root,
            path: path.to_owned(),
            folder: None,
            files: VecDeque::new(),
            late: Late::default(),
            ask: is_written,
            crowded: false,
            known: BTreeSet::new(),
            attempt: 0,
            before: None,
            position: None,
            started: None,
            begun: Begun::Holding,
            checked: None,
        }
    }

    /// As on a file system that cannot tell who writes to a file.
    #[cfg(test)]
    pub(crate) fn ask_nobody(&mut self) {
        self.ask = |_| None;
    }

    /// Reads from a position on, or from the beginning of a container's log that started then.
    pub fn resume(&mut self, position: Option<Position>, started: Option<Timestamp>) {
        self.position = position;
        self.started = started;
        self.begun = Begun::Resuming;
    }

    /// Says whether all tailers together hold too many files: then it holds no more than it does.
    pub fn crowd(&mut self, crowded: bool) {
        self.crowded = crowded;
    }

    /// How far it has read.
    #[must_use]
    pub const fn position(&self) -> Option<&Position> {
        self.position.as_ref()
    }

    /// Whether there was a log, now or when the position was taken.
    #[must_use]
    pub fn was_there(&self) -> bool {
        self.begun == Begun::Reading || self.position.is_some() || !self.files.is_empty()
    }

    /// How many files it holds open.
    #[must_use]
    pub fn held(&self) -> usize {
        self.files.len()
    }

    /// How many bytes it holds of files that the kubelet has removed.
    #[must_use]
    pub fn removed(&self) -> u64 {
        self.files.iter().map(|held| held.source.removed()).sum()
    }

    /// How many bytes are unread, if that can be told.
    #[must_use]
    pub fn unread(&self) -> Option<u64> {
        self.files.iter().map(|held| held.source.unread()).sum()
    }

    /// Opens what is new. Cheap; to be called also while nothing can be read.
    ///
    /// # Errors
    /// The folder or a file in it cannot be opened. That there is none yet is no error.
    pub fn look(&mut self, now: Instant) -> io::Result<()> {
        if self.folder.is_none() {
            match self.root.folder(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                other => self.folder = Some(other?),
            }
        }
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        if let Some(newest) = self.files.back()
            && !newest.is_followed(folder, self.attempt, self.ask)?
        {
            return Ok(());
        }
        let found = snapshot(folder, &self.known)?;
        let hold = |opened| Held::new(opened, now);
        self.hold(found.opened.into_iter().map(hold).collect());
        self.before.get_or_insert_with(|| Before::of(&found.names));
        self.attempt = found.names.last().map_or(self.attempt, |last| last.attempt);
        self.known = found.known;
        found.error.map_or(Ok(()), Err)
    }

    /// Takes new files. The first of them should be the one that was the newest, renamed.
    fn hold(&mut self, mut found: VecDeque<Held>) {
        // Between a rename and the opening of a new file, the newest one has its new name already.
        if let Some(newest) = self.files.back_mut().filter(|newest| !newest.rotated) {
            match newest.find_renamed(&mut found) {
                Some(at) => drop(found.drain(..=at)),
                None if found.len() > 1 => {
                    found[0].gap_before = Some(missing(GapReason::RotatedAway, None));
                }
                None => {}
            }
        }
        self.tell_of_beginnings(&mut found);
        let most = if self.crowded {
            self.files.len().clamp(HELD_IF_CROWDED, HELD)
        } else {
            HELD
        };
        self.files.append(&mut found);
        while self.files.len() > most {
            self.skip(GapReason::Overrun);
        }
    }

    /// The beginning of an attempt may be gone that has a rotated file when it is first seen, and so may
    /// be one of several before it.
    fn tell_of_beginnings(&self, found: &mut VecDeque<Held>) {
        let mut before = self.files.back().map(|newest| newest.source.attempt);
        for held in found {
            let attempt = held.source.attempt;
            let is_later = before.is_some_and(|before| before < attempt);
            // An attempt between may have run, and be removed already.
            let skips = before.is_some_and(|before| before + 2 < attempt);
            if skips || (is_later && held.rotated) {
                held.gap_before = Some(missing(GapReason::RotatedAway, None));
            }
            before = Some(attempt);
        }
    }

    /// Lets the first file go unread and tells so before the next one.
    fn skip(&mut self, reason: GapReason) {
        let Some(first) = self.files.pop_front() else {
            return;
        };
        let unread = first.source.unread();
        if let Some(next) = self.files.front_mut() {
            let gaps = [
                first.gap_before,
                Some(missing(reason, unread)),
                next.gap_before,
            ];
            next.gap_before = gaps.into_iter().flatten().reduce(|one, other| Gap {
                bytes: one.bytes.zip(other.bytes).map(|(a, b)| a + b),
                ..other
            });
        }
    }

    /// Goes to the position, once there are files: which of them come after it?
    fn find_position(&mut self) -> io::Result<()> {
        if self.files.is_empty() {
            return Ok(());
        }
        let gone = Some(missing(GapReason::RotatedAway, None));
        match &self.position {
            None => {
                let gone = gone.filter(|_| self.lacks_beginning());
                first_gap(&mut self.files, gone);
            }
            Some(position) => match find(self.files.iter_mut(), &position.file) {
                Found::At(at) => {
                    let ask = self.ask;
                    let written = |held: Held| held.source.is_written(ask) == Some(true);
                    // What came to them since cannot be told from what was read.
                    let grow = self.files.drain(..at).any(written);
                    self.files[0].gap_before = gone.filter(|_| grow && !position.gap_told);
                    self.files[0].source.seek(position);
                }
                Found::Unsure(at, error) => return self.pass_unsure(at, error),
                Found::Nowhere => {
                    let (attempt, told) = (position.attempt, position.gap_told);
                    // What an earlier attempt left was read.
                    self.files.retain(|held| held.source.attempt >= attempt);
                    if self.files.is_empty() {
                        return Ok(());
                    }
                    first_gap(&mut self.files, gone.filter(|_| !told));
                }
            },
        }
        self.begun = Begun::Reading;
        Ok(())
    }

    /// The position may be in a file that cannot be read: what is before was read, and it is let go
    /// with them if it stays so.
    fn pass_unsure(&mut self, at: usize, error: io::Error) -> io::Result<()> {
        self.files[at].errors += 1;
        if self.files[at].errors >= TRIES && at + 1 < self.files.len() {
            self.files.drain(..=at);
            self.files[0].gap_before = Some(missing(GapReason::Unreadable, None));
            self.begun = Begun::Reading;
        }
        Err(error)
    }

    /// Whether files may have been rotated away before it looked first: the kubelet may be told to keep
    /// but one rotated file.
    fn lacks_beginning(&mut self) -> bool {
        let first = self.files.front_mut();
        let begins = first.and_then(|first| first.source.begins().ok().flatten());
        let at_once = |(begins, started): (Timestamp, Timestamp)| begins <= started + AT_ONCE;
        match self.before {
            Some(before) if before.lacks_an_attempt => true,
            None | Some(Before { rotated: 0, .. }) => false,
            Some(before) if before.rotated >= ROTATED_KEPT => true,
            Some(_) => !begins.zip(self.started).is_some_and(at_once),
        }
    }

    /// Reads on, at most one buffer.
    ///
    /// # Errors
    /// A file cannot be read. Try again: after a few times it is let go if there is a later one.
    pub fn read(
        &mut self,
        now: Instant,
        buffer: &mut [u8],
        sink: &mut impl Sink,
    ) -> io::Result<Progress> {
        if self.begun == Begun::Resuming {
            self.find_position()?;
        }
        if self.begun == Begun::Reading {
            self.late.check(now, self.ask, sink);
            self.tell_gap(sink);
        }
        let read = self.read_or_close(now, buffer, sink);
        match read {
            Ok(_) => self.checked = Some(now),
            Err(_) => self.count_error(),
        }
        read
    }

    fn read_or_close(
        &mut self,
        now: Instant,
        buffer: &mut [u8],
        sink: &mut impl Sink,
    ) -> io::Result<Progress> {
        if self.begun != Begun::Reading {
            return Ok(Progress::Waiting);
        }
        let progress = self.read_first(now, buffer, sink)?;
        if progress == Progress::Waiting && self.is_complete(now) {
            self.close_first(now, buffer, sink)?;
            return Ok(Progress::Read(0));
        }
        Ok(progress)
    }

    fn tell_gap(&mut self, sink: &mut impl Sink) {
        let gap = self
            .files
            .front_mut()
            .and_then(|held| held.gap_before.take());
        if let Some(gap) = gap {
            sink.gap(gap);
            self.position.get_or_insert_default().gap_told = true;
        }
    }

    fn read_first(
        &mut self,
        now: Instant,
        buffer: &mut [u8],
        sink: &mut impl Sink,
    ) -> io::Result<Progress> {
        let Some(held) = self.files.front_mut() else {
            return Ok(Progress::Waiting);
        };
        let taken = held.source.read(buffer, &mut Lines(sink))?;
        held.errors = 0;
        if taken > 0 {
            (held.quiet, held.closed) = (None, None);
            self.position = held.source.position();
            return Ok(Progress::Read(taken));
        }
        if held.source.truncated()? {
            sink.gap(missing(GapReason::Truncated, None));
            let position = held.source.position();
            self.position = position.or_else(|| self.position.take().map(after_gap));
            return Ok(Progress::Read(0));
        }
        held.quiet.get_or_insert(now);
        Ok(Progress::Waiting)
    }

    fn count_error(&mut self) {
        let Some(first) = self.files.front_mut() else {
            return;
        };
        first.errors += 1;
        if first.errors >= TRIES && self.files.len() > 1 {
            self.skip(GapReason::Unreadable);
        }
    }

    /// Whether the first file, read to its end, gets no more: the runtime writes to a later one.
    fn is_complete(&self, now: Instant) -> bool {
        let (Some(first), Some(next)) = (self.files.front(), self.files.get(1)) else {
            return false;
        };
        let settle = match first.source.is_written(self.ask) {
            Some(false) => return true,
            None if self.files.len() > 2 => return true,
            None => SETTLE,
            Some(true) => RENAMED,
        };
        let since = first.quiet.map_or(next.seen, |quiet| quiet.max(next.seen));
        now.saturating_duration_since(since) >= settle
    }

    /// Lets the first file go, with what is left of it.
    fn close_first(
        &mut self,
        now: Instant,
        buffer: &mut [u8],
        sink: &mut impl Sink,
    ) -> io::Result<()> {
        while self.read_first(now, buffer, sink)? != Progress::Waiting {}
        let Some(first) = self.files.front_mut() else {
            return Ok(());
        };
        if let Some(bytes) = first.source.tear(buffer, &mut Lines(sink))? {
            sink.gap(missing(GapReason::Torn, Some(bytes)));
        }
        if let Some(position) = first.source.position() {
            self.position = Some(position);
        }
        let since = self.files.get(1).map_or(now, |next| next.seen);
        if let Some(first) = self.files.pop_front() {
            self.late.watch(first.source, since, self.ask, sink);
        }
        Ok(())
    }

    /// Whether all was read of a log that ended at some time before `ended`: nobody writes to it any more,
    /// and a look and a read after that found nothing.
    #[must_use]
    pub fn is_drained(&mut self, ended: Instant) -> bool {
        let Some(checked) = self.checked else {
            return false;
        };
        let settled = |since, time| checked.saturating_duration_since(since) >= time;
        let last = match (self.files.len(), self.files.front_mut()) {
            (0, _) => return settled(ended, ENDED),
            (1, Some(last)) => last,
            _ => return false,
        };
        let Some(quiet) = last.quiet else {
            return false;
        };
        match last.source.is_written(self.ask) {
            Some(false) => checked > *last.closed.get_or_insert(checked),
            Some(true) => {
                last.closed = None;
                settled(ended, OPEN)
            }
            None => settled(quiet, SETTLE) && settled(ended, ENDED),
        }
    }

    /// Closes a log that is drained. `ran` tells whether there must have been one.
    ///
    /// # Errors
    /// The last file cannot be read.
    pub fn end(
        &mut self,
        ran: bool,
        now: Instant,
        buffer: &mut [u8],
        sink: &mut impl Sink,
    ) -> io::Result<()> {
        self.late.check(now, self.ask, sink);
        let last = self.files.front();
        let open = last.is_some_and(|last| last.source.is_written(self.ask) == Some(true))
            || self.late.is_any_written(self.ask);
        self.close_first(now, buffer, sink)?;
        if open || (ran && self.begun != Begun::Reading) {
            self.miss_end(sink);
        }
        Ok(())
    }

    /// Says that the log may have gone on after what was read of it.
    pub fn miss_end(&mut self, sink: &mut impl Sink) {
        let reason = match self.begun {
            Begun::Reading => GapReason::EndUnseen,
            Begun::Holding | Begun::Resuming => GapReason::Removed,
        };
        let position = self.position.get_or_insert_default();
        if !position.gap_told {
            position.gap_told = true;
            sink.gap(missing(reason, None));
        }
    }

    /// Reads what can be read of a log that has ended, and says of what cannot be.
    pub fn give_up(&mut self, now: Instant, buffer: &mut [u8], sink: &mut impl Sink) {
        let mut unread = Some(0);
        while !self.files.is_empty() {
            self.tell_gap(sink);
            let known = self.begun == Begun::Reading;
            if !known || self.close_first(now, buffer, sink).is_err() {
                let first = self.files.pop_front().filter(|_| known);
                let bytes = first.and_then(|first| first.source.unread());
                unread = unread.zip(bytes).map(|(all, bytes)| all + bytes);
            }
        }
        sink.gap(missing(
            GapReason::Unreadable,
            unread.filter(|bytes| *bytes > 0),
        ));
        self.position.get_or_insert_default().gap_told = true;
    }
}

/// The place after the gap that follows a file of which nothing is left.
fn after_gap(position: Position) -> Position {
    Position {
        gap_told: true,
        ..position
    }
}

fn first_gap(files: &mut VecDeque<Held>, gap: Option<Gap>) {
    if let Some(first) = files.front_mut() {
        first.gap_before = first.gap_before.or(gap);
    }
}
