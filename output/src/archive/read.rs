//! The archive as a [`Reader`].

use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt};

use super::cursor::Cursor;
use super::entry::Entry;
use super::error::{Error, Result};
use super::key::{RunKey, Uid};
use super::manifest::Manifest;
use super::names::Names;
use super::reader::{Reader, Start};
use super::seek::seek;
use super::store::Archive;

/// How often a follower looks for the next segment.
const POLL: Duration = Duration::from_millis(200);
/// Every how many polls it also looks for the end.
const END_EVERY: u32 = 5;
/// How often the beginning is looked for, while segments are merged away under the search.
const TRIES: u32 = 10;

impl Reader for Archive {
    fn runs<'a>(&'a self, box_uid: &'a Uid) -> BoxFuture<'a, Result<Vec<RunKey>>> {
        Box::pin(self.list_runs(box_uid))
    }

    fn manifest<'a>(&'a self, run: &'a RunKey) -> BoxFuture<'a, Result<Option<Manifest>>> {
        Box::pin(self.read_manifest(run))
    }

    fn read(&self, run: &RunKey, start: Start) -> BoxStream<'static, Result<Vec<Entry>>> {
        let reading = Reading::new(self, run, start, false);
        stream::try_unfold(reading, Reading::step).boxed()
    }

    fn follow(&self, run: &RunKey, start: Start) -> BoxStream<'static, Result<Vec<Entry>>> {
        let reading = Reading::new(self, run, start, true);
        stream::try_unfold(reading, Reading::step).boxed()
    }
}

/// One stream of entries.
struct Reading {
    archive: Archive,
    run: RunKey,
    start: Start,
    follow: bool,
    cursor: Option<Cursor>,
}

type Step = Option<(Vec<Entry>, Reading)>;

impl Reading {
    fn new(archive: &Archive, run: &RunKey, start: Start, follow: bool) -> Self {
        Self {
            archive: archive.clone(),
            run: run.clone(),
            start,
            follow,
            cursor: None,
        }
    }

    async fn step(mut self) -> Result<Step> {
        let mut cursor = match self.cursor.take() {
            Some(cursor) => cursor,
            None => self.begin().await?,
        };
        let mut found = cursor.next().await?;
        if found.is_none() && self.follow {
            found = self.wait(&mut cursor).await?;
        }
        self.cursor = Some(cursor);
        Ok(found.map(|entries| (entries, self)))
    }

    /// What is listed may be merged before it is looked at: then it is listed again.
    async fn begin(&self) -> Result<Cursor> {
        let mut tries = 1;
        loop {
            let names = self.archive.names(&self.run).await?;
            match seek(&self.archive, &self.run, &names, self.start).await {
                Err(Error::NotFound { .. }) if tries < TRIES => tries += 1,
                found => return found.map(|at| self.cursor(names, at)),
            }
        }
    }

    fn cursor(&self, names: Names, at: u64) -> Cursor {
        Cursor::new(self.archive.clone(), self.run.clone(), names, at)
    }

    /// The next entries when they come; `None` when the manifest says that there are no more.
    async fn wait(&self, cursor: &mut Cursor) -> Result<Option<Vec<Entry>>> {
        for poll in 0_u32.. {
            if let Some(entries) = cursor.probe().await? {
                return Ok(Some(entries));
            }
            if poll.is_multiple_of(END_EVERY) {
                let manifest = self.archive.read_manifest(&self.run).await?;
                if cursor.has_news().await? {
                    cursor.list().await?;
                    if let Some(entries) = cursor.next().await? {
                        return Ok(Some(entries));
                    }
                }
                if let Some(manifest) = manifest {
                    return self.ended(cursor, &manifest);
                }
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(None)
    }

    fn ended(&self, cursor: &Cursor, manifest: &Manifest) -> Result<Option<Vec<Entry>>> {
        if cursor.at() >= manifest.entries {
            return Ok(None);
        }
        Err(Error::missing(&self.run, cursor.at()))
    }
}
