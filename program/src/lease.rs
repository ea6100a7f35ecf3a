//! One participant does what only one should do at a time: a Lease that every write guards with its
//! resource version.
//!
//! Whether a holder is dead is judged by how long its record has not changed *here*, never by
//! comparing clocks. A leader that cannot renew exits: whoever reads "leading" in its log may
//! trust that it was.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::time::timeout;

/// How long a holder that leads may be silent before another takes over.
pub const DURATION: Duration = Duration::from_secs(15);

/// How often it renews.
const RENEWAL: Duration = Duration::from_secs(5);

/// How often one that waits looks.
const RETRY: Duration = Duration::from_secs(1);

/// How long it tries to renew before it gives up; well before another may take over.
const GIVE_UP: Duration = Duration::from_secs(10);

/// The lease, from one participant's view.
pub struct Election {
    api: Api<Lease>,
    name: String,
    me: String,
    /// How long a holder may be silent.
    duration: Duration,
    /// The last record seen of another holder, and when it was first seen so.
    seen: Option<(LeaseSpec, Instant)>,
}

/// What to do about a lease that was read.
#[derive(Debug, PartialEq)]
enum Claim {
    /// Write this record.
    Take(Box<LeaseSpec>),
    /// Another holds it.
    Wait,
}

impl Election {
    /// A participant of this name, which must be its own. Others take over from a holder that was silent
    /// for so long.
    #[must_use]
    pub fn new(client: Client, namespace: &str, name: &str, me: &str, duration: Duration) -> Self {
        Self {
            api: Api::namespaced(client, namespace),
            name: name.to_owned(),
            me: me.to_owned(),
            duration,
            seen: None,
        }
    }

    /// Waits until this participant leads. `standing_by` hears when another does.
    pub async fn win(&mut self, standing_by: impl Fn()) {
        loop {
            // A call may never be answered.
            let attempt = timeout(RENEWAL, self.attempt()).await;
            match attempt.unwrap_or_else(|late| Err(late.into())) {
                Ok(true) => return,
                Ok(false) => standing_by(),
                Err(error) => {
                    tracing::warn!(error = format!("{error:#}"), "the lease cannot be taken");
                }
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Keeps the lease. Returns only when it is lost.
    pub async fn keep(&mut self) -> anyhow::Error {
        let mut renewed = Instant::now();
        loop {
            tokio::time::sleep(RENEWAL.min(RETRY * 2)).await;
            match timeout(RENEWAL, self.attempt()).await {
                Ok(Ok(true)) => renewed = Instant::now(),
                Ok(Ok(false)) => return anyhow::anyhow!("another one has taken the lease"),
                Ok(Err(error)) if renewed.elapsed() > GIVE_UP => {
                    return error.context("the lease could not be renewed");
                }
                Err(_) if renewed.elapsed() > GIVE_UP => {
                    return anyhow::anyhow!("the lease could not be renewed: no answer");
                }
                Ok(Err(_)) | Err(_) => {}
            }
        }
    }

    /// Gives the lease up, so that the next one need not wait.
    ///
    /// # Errors
    /// The API server does not take it.
    pub async fn release(&self) -> anyhow::Result<()> {
        let lease = self.api.get(&self.name).await?;
        let spec = lease.spec.clone().unwrap_or_default();
        if spec.holder_identity.as_deref() != Some(&self.me) {
            return Ok(());
        }
        let free = LeaseSpec {
            holder_identity: None,
            ..spec
        };
        self.api
            .replace(
                &self.name,
                &PostParams::default(),
                &Lease {
                    spec: Some(free),
                    ..lease
                },
            )
            .await?;
        Ok(())
    }

    /// One try to take or renew. `false`: another holds it.
    ///
    /// # Errors
    /// The lease cannot be read or written.
    pub async fn attempt(&mut self) -> anyhow::Result<bool> {
        let lease = self.read_or_make().await?;
        let spec = lease.spec.clone().unwrap_or_default();
        let unchanged = self.unchanged_for(&spec);
        match claim(&spec, &self.me, self.duration, unchanged, Timestamp::now()) {
            Claim::Wait => Ok(false),
            Claim::Take(spec) => {
                self.replace(Lease {
                    spec: Some(*spec),
                    ..lease
                })
                .await
            }
        }
    }

    async fn read_or_make(&self) -> anyhow::Result<Lease> {
        let name = &self.name;
        if let Some(lease) = self.api.get_opt(name).await.context("reading the lease")? {
            return Ok(lease);
        }
        let new = Lease {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                ..ObjectMeta::default()
            },
            spec: None,
        };
        match self.api.create(&PostParams::default(), &new).await {
            Ok(lease) => Ok(lease),
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                bail!("another one made the lease at the same time")
            }
            Err(error) => Err(error).context("making the lease"),
        }
    }

    /// A conflict means that another was faster.
    async fn replace(&self, lease: Lease) -> anyhow::Result<bool> {
        match self
            .api
            .replace(&self.name, &PostParams::default(), &lease)
            .await
        {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.is_conflict() => Ok(false),
            Err(error) => Err(error).context("writing the lease"),
        }
    }

    fn unchanged_for(&mut self, spec: &LeaseSpec) -> Duration {
        match &self.seen {
            Some((seen, since)) if seen == spec => since.elapsed(),
            Some(_) | None => {
                self.seen = Some((spec.clone(), Instant::now()));
                Duration::ZERO
            }
        }
    }
}

/// What one participant may do about a lease whose record has not changed for so long.
fn claim(
    seen: &LeaseSpec,
    me: &str,
    duration: Duration,
    unchanged: Duration,
    now: Timestamp,
) -> Claim {
    let holder = seen.holder_identity.as_deref().unwrap_or_default();
    let stated = seen
        .lease_duration_seconds
        .and_then(|seconds| u64::try_from(seconds).ok());
    let silent = unchanged > stated.map_or(duration, Duration::from_secs);
    let mine = holder == me;
    if !mine && !holder.is_empty() && !silent {
        return Claim::Wait;
    }
    let transitions = seen.lease_transitions.unwrap_or(0);
    Claim::Take(Box::new(LeaseSpec {
        holder_identity: Some(me.to_owned()),
        lease_duration_seconds: i32::try_from(duration.as_secs()).ok(),
        acquire_time: if mine {
            seen.acquire_time.clone()
        } else {
            Some(MicroTime(now))
        },
        renew_time: Some(MicroTime(now)),
        lease_transitions: Some(if mine {
            transitions
        } else {
            transitions.saturating_add(1)
        }),
        ..seen.clone()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held_by(holder: &str) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(holder.to_owned()),
            lease_duration_seconds: Some(15),
            ..LeaseSpec::default()
        }
    }

    fn taken(claim: Claim) -> LeaseSpec {
        match claim {
            Claim::Take(spec) => *spec,
            Claim::Wait => panic!("waits"),
        }
    }

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    #[test]
    fn a_free_lease_is_taken() {
        let spec = taken(claim(
            &LeaseSpec::default(),
            "me",
            DURATION,
            Duration::ZERO,
            NOW,
        ));
        assert_eq!(spec.holder_identity.as_deref(), Some("me"));
        assert_eq!(spec.lease_transitions, Some(1));
    }

    #[test]
    fn anothers_lease_is_waited_for() {
        assert_eq!(
            claim(
                &held_by("other"),
                "me",
                DURATION,
                Duration::from_secs(14),
                NOW
            ),
            Claim::Wait
        );
    }

    #[test]
    fn a_silent_holders_lease_is_taken_over() {
        let spec = taken(claim(
            &held_by("other"),
            "me",
            DURATION,
            Duration::from_secs(16),
            NOW,
        ));
        assert_eq!(spec.holder_identity.as_deref(), Some("me"));
    }

    #[test]
    fn the_holders_own_word_for_the_duration_counts() {
        let patient = LeaseSpec {
            lease_duration_seconds: Some(60),
            ..held_by("other")
        };
        assert_eq!(
            claim(&patient, "me", DURATION, Duration::from_secs(59), NOW),
            Claim::Wait
        );
    }

    #[test]
    fn renewing_is_no_transition() {
        let mine = LeaseSpec {
            lease_transitions: Some(4),
            ..held_by("me")
        };
        assert_eq!(
            taken(claim(&mine, "me", DURATION, Duration::ZERO, NOW)).lease_transitions,
            Some(4)
        );
    }
}
