//! A store for tests that fails as it is told.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};

use futures::stream::{BoxStream, StreamExt, TryStreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use tokio::sync::Notify;

/// What happens to a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// The disk is full.
    Full,
    /// The archive is read-only.
    ReadOnly,
    /// It cannot be reached.
    Away,
    /// It takes a while.
    Slow,
    /// It is done, but the answer is lost.
    AnswerLost,
    /// The collector's process ends before it is done.
    CrashBefore,
    /// The collector's process ends after it is done.
    CrashAfter,
}

/// A store in memory that outlives its users.
#[derive(Debug, Default)]
pub(crate) struct Faulty {
    inner: InMemory,
    plan: Mutex<VecDeque<Fault>>,
    /// Fails everything for as long as it is set, reads too.
    always: Mutex<Option<Fault>>,
    /// What the next list shows.
    stale: Mutex<Option<Vec<ObjectMeta>>>,
    crashed: Notify,
}

impl Faulty {
    pub(crate) fn new(plan: impl IntoIterator<Item = Fault>) -> Arc<Self> {
        Arc::new(Self {
            plan: Mutex::new(plan.into_iter().collect()),
            ..Self::default()
        })
    }

    pub(crate) fn always(&self, fault: Option<Fault>) {
        *self.always.lock().unwrap() = fault;
    }

    /// Lets the next list show what there is now, whenever it comes.
    pub(crate) async fn next_list_is_of_now(&self) {
        let now = self.inner.list(None).try_collect().await.unwrap();
        *self.stale.lock().unwrap() = Some(now);
    }

    /// Waits until a write crashes its writer.
    pub(crate) async fn crashed(&self) {
        self.crashed.notified().await;
    }

    fn next(&self) -> Fault {
        let always = *self.always.lock().unwrap();
        always.unwrap_or_else(|| self.plan.lock().unwrap().pop_front().unwrap_or(Fault::None))
    }

    fn check(&self) -> Result<()> {
        let always = *self.always.lock().unwrap();
        always
            .filter(|fault| *fault == Fault::Away)
            .map_or(Ok(()), |fault| Err(failed(fault)))
    }

    async fn crash<T>(&self) -> T {
        self.crashed.notify_one();
        std::future::pending().await
    }
}

fn failed(fault: Fault) -> Error {
    let kind = match fault {
        Fault::Full => std::io::ErrorKind::StorageFull,
        Fault::ReadOnly => std::io::ErrorKind::ReadOnlyFilesystem,
        _ => std::io::ErrorKind::ConnectionRefused,
    };
    Error::Generic {
        store: "Faulty",
        source: Box::new(std::io::Error::from(kind)),
    }
}

impl fmt::Display for Faulty {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Faulty")
    }
}

#[async_trait::async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let put = || self.inner.put_opts(location, payload, options);
        match self.next() {
            Fault::None => put().await,
            fault @ (Fault::Full | Fault::ReadOnly | Fault::Away) => Err(failed(fault)),
            Fault::Slow => {
                tokio::time::sleep(std::time::Duration::from_secs(4)).await;
                put().await
            }
            Fault::AnswerLost => {
                put().await?;
                Err(failed(Fault::AnswerLost))
            }
            Fault::CrashBefore => self.crash().await,
            Fault::CrashAfter => {
                put().await?;
                self.crash().await
            }
        }
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.check()?;
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        if let Some(stale) = self.stale.lock().unwrap().take() {
            return futures::stream::iter(stale.into_iter().map(Ok)).boxed();
        }
        match self.check() {
            Ok(()) => self.inner.list(prefix),
            Err(error) => Box::pin(futures::stream::once(std::future::ready(Err(error)))),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.check()?;
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
