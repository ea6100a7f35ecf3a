//! Calls on the API server come to an end: its client would wait for ever.

use std::time::Duration;

use tokio::time::timeout;

/// How long an answer may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// The answer, or an error if there is none in time.
pub(crate) async fn in_time<T, E: Into<anyhow::Error>>(
    call: impl Future<Output = Result<T, E>>,
) -> anyhow::Result<T> {
    timeout(PATIENCE, call).await?.map_err(Into::into)
}
