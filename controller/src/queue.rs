//! Who is next: first come, first served. Nobody waits twice, and no two passes over one Box are
//! under way at a time. (kube's own runner keeps no order, and asks all that wait at every event.)

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// So many in the line or under way are a crowd: a pass is short but for the API server's part in it,
/// which then has more to do than it can.
const CROWD: usize = 16;

/// A time, and a number that tells those of the same time apart.
type Due = (Instant, u64);

/// Where a key is.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// In the line.
    Waiting,
    /// A pass is under way.
    Running,
    /// A pass is under way, and something has happened since it began.
    Outrun,
    /// To be looked at then, if nothing happens before.
    Later(Due),
}

/// The keys to make passes over.
#[derive(Debug)]
pub(crate) struct Queue<K> {
    state: Mutex<State<K>>,
    changed: Notify,
}

#[derive(Debug)]
struct State<K> {
    stages: HashMap<K, Stage>,
    line: VecDeque<K>,
    later: BTreeMap<Due, K>,
    number: u64,
}

impl<K: Clone + Eq + Hash> Queue<K> {
    pub(crate) fn new() -> Self {
        let state = State {
            stages: HashMap::new(),
            line: VecDeque::new(),
            later: BTreeMap::new(),
            number: 0,
        };
        Self {
            state: Mutex::new(state),
            changed: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a pass: something has happened.
    pub(crate) fn push(&self, key: K) {
        self.state().push(key);
        self.changed.notify_one();
    }

    /// The next that a pass is to be made over, which ends with [`Self::done`].
    pub(crate) async fn next(&self) -> K {
        loop {
            let taken = self.state().take(Instant::now());
            match taken {
                Ok(key) => return key,
                Err(None) => self.changed.notified().await,
                // Whether it is due or something has changed is seen in the state.
                Err(Some(due)) => drop(timeout_at(due, self.changed.notified()).await),
            }
        }
    }

    /// Whether many change at once.
    pub(crate) fn is_crowded(&self) -> bool {
        let state = self.state();
        state.stages.len() - state.later.len() >= CROWD
    }

    /// The pass is over. It is to be made again after a while, or when something happens.
    pub(crate) fn done(&self, key: K, again: Option<Duration>) {
        self.state()
            .done(key, again.map(|wait| Instant::now() + wait));
        self.changed.notify_one();
    }
}

impl<K: Clone + Eq + Hash> State<K> {
    fn push(&mut self, key: K) {
        match self.stages.get(&key).copied() {
            Some(Stage::Waiting) => return,
            Some(Stage::Running | Stage::Outrun) => {
                self.stages.insert(key, Stage::Outrun);
                return;
            }
            Some(Stage::Later(due)) => drop(self.later.remove(&due)),
            None => {}
        }
        self.stages.insert(key.clone(), Stage::Waiting);
        self.line.push_back(key);
    }

    /// The first in the line, or when one will next be there.
    fn take(&mut self, now: Instant) -> Result<K, Option<Instant>> {
        while let Some((_, key)) = self.first_later().filter(|(at, _)| *at <= now) {
            self.push(key);
        }
        let Some(key) = self.line.pop_front() else {
            return Err(self.first_later().map(|(at, _)| at));
        };
        self.stages.insert(key.clone(), Stage::Running);
        Ok(key)
    }

    fn first_later(&self) -> Option<(Instant, K)> {
        let ((at, _), key) = self.later.first_key_value()?;
        Some((*at, key.clone()))
    }

    fn done(&mut self, key: K, again: Option<Instant>) {
        let stage = self.stages.remove(&key);
        if let Some(Stage::Outrun) = stage {
            return self.push(key);
        }
        if let Some(at) = again {
            self.number += 1;
            let due = (at, self.number);
            self.stages.insert(key.clone(), Stage::Later(due));
            self.later.insert(due, key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(1);

    fn queue(keys: &[&'static str]) -> Queue<&'static str> {
        let queue = Queue::new();
        for key in keys {
            queue.push(*key);
        }
        queue
    }

    async fn is_empty(queue: &Queue<&'static str>) -> bool {
        let instant = tokio::time::timeout(Duration::ZERO, queue.next());
        instant.await.is_err()
    }

    #[tokio::test(start_paused = true)]
    async fn who_came_first_is_first_and_nobody_waits_twice() {
        let queue = queue(&["one", "other", "one"]);
        assert_eq!(queue.next().await, "one");
        assert_eq!(queue.next().await, "other");
        assert!(is_empty(&queue).await);
    }

    #[tokio::test(start_paused = true)]
    async fn what_happens_in_a_pass_leads_to_another_after_it() {
        let queue = queue(&["one"]);
        queue.next().await;
        queue.push("one");
        assert!(is_empty(&queue).await, "two passes at once");
        queue.done("one", Some(SOON));
        assert_eq!(queue.next().await, "one");
        queue.done("one", None);
        assert!(is_empty(&queue).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_later_pass_comes_in_its_time() {
        let queue = queue(&["one"]);
        queue.done(queue.next().await, Some(SOON));
        let began = Instant::now();
        assert_eq!(queue.next().await, "one");
        assert_eq!(began.elapsed(), SOON);
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_replaces_the_later_pass() {
        let queue = queue(&["one"]);
        queue.done(queue.next().await, Some(SOON));
        queue.push("one");
        queue.done(queue.next().await, None);
        tokio::time::sleep(SOON * 2).await;
        assert!(is_empty(&queue).await);
    }

    #[tokio::test(start_paused = true)]
    async fn those_of_the_same_time_all_come() {
        let queue = queue(&["one", "other"]);
        let both = [queue.next().await, queue.next().await];
        for key in both {
            queue.done(key, Some(SOON));
        }
        assert_eq!([queue.next().await, queue.next().await], both);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_kept_of_who_asks_for_nothing() {
        let queue = queue(&["one"]);
        queue.done(queue.next().await, None);
        assert!(queue.state().stages.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_crowd_is_who_waits_for_a_pass_or_is_in_it() {
        let queue = Queue::new();
        for number in 0..CROWD {
            assert!(!queue.is_crowded());
            queue.push(number);
        }
        assert!(queue.is_crowded());
        let number = queue.next().await;
        assert!(queue.is_crowded());
        queue.done(number, Some(SOON));
        assert!(!queue.is_crowded());
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_is_woken() {
        let queue = std::sync::Arc::new(queue(&[]));
        let waiter = tokio::spawn({
            let queue = queue.clone();
            async move { queue.next().await }
        });
        tokio::task::yield_now().await;
        queue.push("one");
        assert_eq!(waiter.await.unwrap(), "one");
    }
}
