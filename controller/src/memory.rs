//! What the controller remembers about a Box between passes. Losing it costs time, not truth:
//! everything that must survive is in the Box and its pod. (The one exception, of a second, is in
//! `docs/decisions/0011-when-a-pod-was-deleted.md`.)

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use boxes_lifecycle::{Refusal, Trouble};
use jiff::{SignedDuration, Timestamp};

/// The slowest pace of retries.
const SLOWEST: SignedDuration = SignedDuration::from_mins(5);

/// What is remembered about one Box.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Memory {
    /// Resource version of the Box after our last write: older views of it are outdated.
    pub box_version: Option<u64>,
    /// The same of its pod.
    pub pod_version: Option<u64>,
    /// Whether this process has just put its finalizer on the Box, which showed it the Box as it
    /// was then: never run.
    pub just_held: bool,
    /// See [`boxes_lifecycle::World::name_collided`].
    pub name_collided: bool,
    /// See [`boxes_lifecycle::World::refusal`].
    pub refusal: Option<Refusal>,
    /// How often the creation was forbidden in a row.
    pub refusals: u32,
    /// See [`boxes_lifecycle::World::trouble`].
    pub trouble: Option<Trouble>,
    /// What the Box asked and its pod was when that trouble began.
    pub trouble_with: Option<Cause>,
    /// See [`boxes_lifecycle::World::missing_since`].
    pub missing_since: Option<Timestamp>,
    /// See [`boxes_lifecycle::World::deletion_asked`].
    pub deletion_asked: Option<Timestamp>,
    /// See [`boxes_lifecycle::World::deadline_refused`].
    pub deadline_refused: bool,
    /// When a live read first found no Node object, and the version of the pod then.
    pub node_absent: Option<(Timestamp, String)>,
    /// The unreadable version that was last named in the log.
    pub named_unreadable: Option<String>,
}

/// What a change of starts the count of failed attempts anew. Our own status writes are no change.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cause {
    /// What the Box asks; its deletion counts.
    pub generation: Option<i64>,
    /// What people say about it in annotations of ours.
    pub annotations: Option<BTreeMap<String, String>>,
    /// The version of its pod.
    pub pod: Option<u64>,
}

/// The memories, by UID of the Box.
#[derive(Debug, Default)]
pub(crate) struct Memories(Mutex<HashMap<String, Memory>>);

impl Memories {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Memory>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is remembered about a Box.
    pub(crate) fn of(&self, uid: &str) -> Memory {
        self.lock().get(uid).cloned().unwrap_or_default()
    }

    /// Changes what is remembered. An empty memory takes no room.
    pub(crate) fn change(&self, uid: &str, change: impl FnOnce(&mut Memory)) {
        let mut all = self.lock();
        let mut memory = all.remove(uid).unwrap_or_default();
        change(&mut memory);
        if memory != Memory::default() {
            all.insert(uid.to_owned(), memory);
        }
    }

    /// Forgets a Box.
    pub(crate) fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }

    /// Forgets every Box but these.
    pub(crate) fn keep_only(&self, exists: impl Fn(&str) -> bool) {
        self.lock().retain(|uid, _| exists(uid));
    }
}

impl Memory {
    /// Notes one more failed attempt and gives the time until the next.
    pub(crate) fn failed(
        &mut self,
        now: Timestamp,
        seed: &str,
        with: Cause,
        error: String,
    ) -> Duration {
        let before = self
            .trouble
            .as_ref()
            .filter(|_| self.trouble_with.as_ref() == Some(&with));
        let attempts = before
            .map_or(0, |trouble| trouble.attempts)
            .saturating_add(1);
        let pace = pace(attempts, seed);
        let next = now.checked_add(pace).unwrap_or(Timestamp::MAX);
        self.trouble_with = Some(with);
        self.trouble = Some(Trouble {
            attempts,
            error,
            next,
        });
        pace.unsigned_abs()
    }

    /// How long the next attempt must wait, unless something has changed since the last.
    pub(crate) fn not_due(&self, now: Timestamp, with: &Cause) -> Option<Duration> {
        let trouble = self.trouble.as_ref()?;
        let wait = trouble.next.duration_since(now);
        let unchanged = self.trouble_with.as_ref() == Some(with);
        (unchanged && wait.is_positive()).then(|| wait.unsigned_abs())
    }

    /// Notes that the caches have seen our own last writes.
    pub(crate) fn caught_up(&mut self) {
        self.box_version = None;
        self.pod_version = None;
    }

    /// Notes that a pass went well.
    pub(crate) fn succeeded(&mut self) {
        self.trouble = None;
        self.trouble_with = None;
    }
}

/// The time before attempt n + 1: 1 s, doubling to 5 min, up to a tenth longer so that Boxes that
/// failed together do not retry together.
pub(crate) fn pace(attempts: u32, seed: &str) -> SignedDuration {
    let doubled = SignedDuration::from_secs(1_i64 << attempts.saturating_sub(1).min(9));
    let base = doubled.min(SLOWEST);
    let spread = seed.bytes().fold(attempts, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(byte.into())
    });
    let tenths = i32::try_from(spread % 100).unwrap_or(0);
    base + base * tenths / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_doubles_up_to_five_minutes() {
        let whole = |attempts| pace(attempts, "").as_secs();
        assert_eq!([1, 2, 3, 4].map(whole), [1, 2, 4, 8]);
        assert!((300..=330).contains(&whole(10)));
        assert!((300..=330).contains(&whole(u32::MAX)));
    }

    #[test]
    fn different_boxes_have_different_paces() {
        assert_ne!(pace(9, "one"), pace(9, "other"));
    }

    #[test]
    fn attempts_count_up_until_something_changes() {
        let mut memory = Memory::default();
        let mut attempt = |generation| {
            memory.failed(
                Timestamp::UNIX_EPOCH,
                "",
                Cause {
                    generation: Some(generation),
                    ..Cause::default()
                },
                String::new(),
            );
            memory.trouble.as_ref().unwrap().attempts
        };
        assert_eq!([1, 1, 1, 2, 2].map(&mut attempt), [1, 2, 3, 1, 2]);
    }

    #[test]
    fn an_attempt_is_due_in_its_time_and_at_once_when_something_changed() {
        let mut memory = Memory::default();
        let now = Timestamp::UNIX_EPOCH;
        let same = Cause::default();
        assert_eq!(memory.not_due(now, &same), None);
        let wait = memory.failed(now, "", same.clone(), String::new());
        assert_eq!(memory.not_due(now, &same), Some(wait));
        assert_eq!(
            memory.not_due(now + SignedDuration::from_secs(2), &same),
            None
        );
        let said = Cause {
            annotations: Some([("boxes.run/confirm-stopped".into(), "uid".into())].into()),
            ..same
        };
        assert_eq!(memory.not_due(now, &said), None);
    }

    #[test]
    fn an_empty_memory_takes_no_room() {
        let memories = Memories::default();
        memories.change("uid", |memory| memory.name_collided = true);
        memories.change("uid", |memory| memory.name_collided = false);
        assert!(memories.lock().is_empty());
    }
}
