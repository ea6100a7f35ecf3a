//! An archive that may not be there yet: the server is ready without it, and each request says so.

use std::sync::{Mutex, PoisonError};

use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt};

use crate::archive::{
    Archive, Entry, Error, Manifest, Options, Reader, Result, RunKey, Start, Uid,
};

/// Opens the archive when it is first needed, and again until that succeeds.
pub(crate) struct LateArchive {
    url: String,
    options: Options,
    open: Mutex<Option<Archive>>,
}

impl LateArchive {
    pub(crate) fn new(url: String, options: Options) -> Self {
        Self {
            url,
            options,
            open: Mutex::default(),
        }
    }

    /// The archive, opened by now or before.
    pub(crate) fn archive(&self) -> Result<Archive> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(archive) = &*open {
            return Ok(archive.clone());
        }
        let archive = Archive::open(&self.url, &self.options).map_err(|error| {
            let message = error.to_string();
            Error::Unavailable { message }
        })?;
        Ok(open.insert(archive).clone())
    }
}

impl Reader for LateArchive {
    fn runs<'a>(&'a self, box_uid: &'a Uid) -> BoxFuture<'a, Result<Vec<RunKey>>> {
        Box::pin(async move { self.archive()?.runs(box_uid).await })
    }

    fn manifest<'a>(&'a self, run: &'a RunKey) -> BoxFuture<'a, Result<Option<Manifest>>> {
        Box::pin(async move { self.archive()?.manifest(run).await })
    }

    fn read(&self, run: &RunKey, start: Start) -> BoxStream<'static, Result<Vec<Entry>>> {
        match self.archive() {
            Ok(archive) => archive.read(run, start),
            Err(error) => stream::once(async { Err(error) }).boxed(),
        }
    }

    fn follow(&self, run: &RunKey, start: Start) -> BoxStream<'static, Result<Vec<Entry>>> {
        match self.archive() {
            Ok(archive) => archive.follow(run, start),
            Err(error) => stream::once(async { Err(error) }).boxed(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_archive_that_comes_later_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("archive");
        let late = LateArchive::new(format!("file://{}", place.display()), Options::default());
        let uid = Uid::parse("u").unwrap();
        assert!(matches!(
            late.runs(&uid).await,
            Err(Error::Unavailable { .. })
        ));
        std::fs::create_dir(&place).unwrap();
        assert!(late.runs(&uid).await.unwrap().is_empty());
    }
}
