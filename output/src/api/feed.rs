//! The entries of one request, in order, over whatever happens to the archive meanwhile.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::BoxStream;

use super::cluster::{Cluster, FoundBox};
use super::names::Target;
use crate::archive::{self, Entry, Reader, RunKey, Start, Uid};

/// How long is waited for what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    /// Between two looks for the pod of a Box: at first, and later.
    pub(crate) poll: (Duration, Duration),
    /// Of silence, until a follower asks whether anything may still come.
    pub(crate) recheck: Duration,
    /// Between two tries of an archive that fails.
    pub(crate) pause: Duration,
    /// Of failures in a row, until an answer that has begun is cut off.
    pub(crate) patience: Duration,
    /// For the archive, until an answer begins.
    pub(crate) answer: Duration,
    /// For the first output, until a follower's answer begins without any.
    pub(crate) first: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            poll: (Duration::from_millis(250), Duration::from_secs(1)),
            recheck: Duration::from_secs(15),
            pause: Duration::from_secs(1),
            patience: Duration::from_mins(1),
            answer: Duration::from_secs(45),
            first: Duration::from_millis(300),
        }
    }
}

/// Why entries end before the output does.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Cut {
    #[error("{0}")]
    Archive(#[from] archive::Error),
    #[error("the Box was deleted")]
    BoxGone,
}

impl Cut {
    /// A static word for metrics.
    pub(crate) const fn class(&self) -> &'static str {
        match self {
            Self::Archive(error) => error.class(),
            Self::BoxGone => "box_gone",
        }
    }
}

/// What entries are taken from.
pub(crate) struct Feed {
    pub(crate) cluster: Arc<dyn Cluster>,
    pub(crate) archive: Arc<dyn Reader>,
    pub(crate) timing: Timing,
    pub(crate) target: Target,
    pub(crate) uid: Uid,
    pub(crate) run: Option<RunKey>,
    pub(crate) follow: bool,
    pub(crate) start: Start,
    pub(crate) state: FeedState,
}

/// What a feed remembers.
#[derive(Default)]
pub(crate) struct FeedState {
    source: Option<BoxStream<'static, archive::Result<Vec<Entry>>>>,
    given: bool,
    failing_since: Option<Instant>,
    /// How often in a row nothing spoke for waiting on.
    doubts: u32,
}

impl Feed {
    /// The next entries; `None` at the end. May be dropped and called again at any time.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Entry>>, Cut> {
        loop {
            if self.state.source.is_none() && !self.open().await? {
                return Ok(None);
            }
            let Some(source) = &mut self.state.source else {
                return Ok(None);
            };
            tokio::select! {
                batch = source.next() => match batch {
                    Some(Ok(entries)) => return Ok(Some(self.took(entries))),
                    Some(Err(error)) => self.failed(error).await?,
                    None => return Ok(None),
                },
                () = tokio::time::sleep(self.timing.recheck), if self.follow => {
                    if !self.is_worth_waiting().await? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Opens the output; `false` if there is none and none will come.
    async fn open(&mut self) -> Result<bool, Cut> {
        let mut pause = self.timing.poll.0;
        while self.run.is_none() && self.follow {
            tokio::time::sleep(pause).await;
            pause = pause.mul_f32(1.5).min(self.timing.poll.1);
            if !self.look_for_run().await? {
                return Ok(false);
            }
        }
        let start = self.start;
        self.state.source = self.run.as_ref().map(|run| {
            if self.follow {
                self.archive.follow(run, start)
            } else {
                self.archive.read(run, start)
            }
        });
        Ok(self.state.source.is_some())
    }

    /// Looks whether the Box has a pod by now; `false` if it will never have one.
    async fn look_for_run(&mut self) -> Result<bool, Cut> {
        let Some(found) = self.find_box().await? else {
            return Ok(true);
        };
        self.state.doubts = 0;
        let pod_uid = found.pod_uid.clone();
        self.run = pod_uid.map(|pod_uid| RunKey::first(self.uid.clone(), pod_uid));
        Ok(self.run.is_some() || !found.ended)
    }

    /// The Box; `None` if that is not certain. A second look must confirm that it is gone.
    async fn find_box(&mut self) -> Result<Option<FoundBox>, Cut> {
        match self.cluster.find_box(&self.target).await {
            Ok(Some(found)) if found.uid == self.uid => Ok(Some(found)),
            Ok(_) if self.doubt() => Err(Cut::BoxGone),
            Ok(_) | Err(_) => Ok(None),
        }
    }

    /// Whether anything may still come. It may, unless two looks in a row find that the Box is
    /// cleaned up and the archive has neither more entries nor an end.
    async fn is_worth_waiting(&mut self) -> Result<bool, Cut> {
        match self.find_box().await? {
            None => Ok(true),
            Some(found) if found.cleaned_up && self.archive_has_no_more().await => {
                Ok(!self.doubt())
            }
            Some(_) => {
                self.state.doubts = 0;
                Ok(true)
            }
        }
    }

    async fn archive_has_no_more(&mut self) -> bool {
        let Some(run) = &self.run else {
            return true;
        };
        let unfinished = matches!(self.archive.manifest(run).await, Ok(None));
        unfinished && self.archive.read(run, self.start).next().await.is_none()
    }

    /// Counts a doubt; whether it is the second.
    const fn doubt(&mut self) -> bool {
        self.state.doubts += 1;
        self.state.doubts >= 2
    }

    fn took(&mut self, entries: Vec<Entry>) -> Vec<Entry> {
        if let Some(last) = entries.last() {
            self.start = Start::Entry(last.number + 1);
        }
        self.state.given = true;
        self.state.failing_since = None;
        self.state.doubts = 0;
        entries
    }

    /// Waits before the archive is tried again, unless that is no use.
    async fn failed(&mut self, error: archive::Error) -> Result<(), Cut> {
        self.state.source = None;
        let since = *self.state.failing_since.get_or_insert_with(Instant::now);
        let passing = matches!(error, archive::Error::Unavailable { .. });
        let begun = self.follow || self.state.given;
        if !passing || !begun || since.elapsed() >= self.timing.patience {
            return Err(error.into());
        }
        tokio::time::sleep(self.timing.pause).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake::{FakeArchive, FakeCluster, a_box};
    use super::*;

    #[tokio::test]
    async fn a_doubt_is_forgotten_when_the_box_is_seen_again() {
        let cluster = Arc::new(FakeCluster::default());
        let waiting = FoundBox {
            pod_uid: None,
            ..a_box("one")
        };
        let mut feed = Feed {
            cluster: cluster.clone(),
            archive: Arc::new(FakeArchive::new()),
            timing: Timing::default(),
            target: Target::new("ns", "b").unwrap(),
            uid: waiting.uid.clone(),
            run: None,
            follow: true,
            start: Start::Beginning,
            state: FeedState::default(),
        };
        for _ in 0..3 {
            assert!(feed.look_for_run().await.unwrap());
            cluster.put("ns", "b", waiting.clone());
            assert!(feed.look_for_run().await.unwrap());
            cluster.delete("ns", "b");
        }
        assert!(feed.look_for_run().await.unwrap());
        assert!(matches!(feed.look_for_run().await, Err(Cut::BoxGone)));
    }
}
