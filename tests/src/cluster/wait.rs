//! Waiting for a condition, with a deadline.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// What a probe saw.
pub(crate) enum Seen<T> {
    /// The condition holds.
    Ready(T),
    /// It does not hold yet; this is what there is instead.
    NotYet(String),
}

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// Looks until `probe` finds the condition, fails for good, or `limit` is over.
pub(crate) async fn until<T>(
    what: &str,
    limit: Duration,
    mut probe: impl AsyncFnMut() -> Result<Seen<T>>,
) -> Result<T> {
    let start = Instant::now();
    loop {
        match probe().await? {
            Seen::Ready(value) => return Ok(value),
            Seen::NotYet(seen) if start.elapsed() >= limit => {
                bail!("waited {} s for {what}; last seen: {seen}", limit.as_secs())
            }
            Seen::NotYet(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn ends_as_soon_as_the_condition_holds() {
        let mut looks = 0;
        let seen = until("three looks", Duration::from_secs(5), async || {
            looks += 1;
            Ok(if looks == 3 {
                Seen::Ready(looks)
            } else {
                Seen::NotYet("fewer".into())
            })
        });
        assert_eq!(seen.await.unwrap(), 3);
    }

    #[tokio::test]
    async fn names_what_was_seen_last() {
        let never = until::<()>("a miracle", Duration::ZERO, async || {
            Ok(Seen::NotYet("nothing".into()))
        });
        let error = never.await.unwrap_err().to_string();
        assert_eq!(error, "waited 0 s for a miracle; last seen: nothing");
    }
}
