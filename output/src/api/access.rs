//! Who may read: the API server decides, and its yes is remembered for a moment.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;
use sha2::{Digest, Sha256};

use super::cluster::{Cluster, Verdict};
use super::failure::Failure;
use super::names::Target;
use super::user::User;

/// How long an allowed read may be repeated without asking. A denial is never remembered: whoever
/// was just given the right need not wait for it.
const REMEMBER: Duration = Duration::from_secs(10);
/// How many are remembered.
const MOST: usize = 4096;

/// Digest of who asks for what, whole: two questions that differ in anything are two.
type Question = [u8; 32];

/// Asks for reviews.
pub(crate) struct Access {
    cluster: Arc<dyn Cluster>,
    allowed: Mutex<HashMap<Question, Instant>>,
}

impl Access {
    pub(crate) fn new(cluster: Arc<dyn Cluster>) -> Self {
        Self {
            cluster,
            allowed: Mutex::default(),
        }
    }

    /// Passes if the user may read. Without an answer nobody may.
    pub(crate) async fn check(&self, user: &User, target: &Target) -> Result<(), Failure> {
        let question = digest(user, target);
        if self.remembers(&question) {
            return Ok(());
        }
        match self.cluster.review(user, target).await {
            Ok(Verdict::Allowed) => {
                self.remember(question, Instant::now());
                Ok(())
            }
            Ok(Verdict::Denied(why)) => Err(Failure::forbidden(user, target, why.as_deref())),
            Err(error) => {
                tracing::warn!(error = %error, "a review was not answered");
                let message = "whether this is allowed cannot be found out now";
                Err(Failure::unavailable(message))
            }
        }
    }

    fn remembers(&self, question: &Question) -> bool {
        let allowed = self.allowed.lock().unwrap_or_else(PoisonError::into_inner);
        allowed
            .get(question)
            .is_some_and(|at| at.elapsed() < REMEMBER)
    }

    fn remember(&self, question: Question, now: Instant) {
        let mut allowed = self.allowed.lock().unwrap_or_else(PoisonError::into_inner);
        if allowed.len() >= MOST {
            allowed.retain(|_, at| now.duration_since(*at) < REMEMBER);
        }
        if allowed.len() < MOST {
            allowed.insert(question, now);
        }
    }
}

fn digest(user: &User, target: &Target) -> Question {
    // JSON keeps the parts apart, and strings and maps of strings always have one.
    let question = json!([user, target.namespace, target.name]);
    Sha256::digest(question.to_string()).into()
}

#[cfg(test)]
mod tests {
    use super::super::fake::FakeCluster;
    use super::*;

    fn user(name: &str) -> User {
        User {
            name: name.to_owned(),
            ..User::default()
        }
    }

    #[tokio::test]
    async fn a_yes_is_remembered_and_a_no_is_not() {
        let cluster = Arc::new(FakeCluster::default());
        cluster.allow("ann", "ns");
        let access = Access::new(cluster.clone());
        let target = Target::new("ns", "b").unwrap();
        for _ in 0..3 {
            access.check(&user("ann"), &target).await.unwrap();
            let no = access.check(&user("bob"), &target).await.unwrap_err();
            assert_eq!(no.code(), http::StatusCode::FORBIDDEN);
        }
        assert_eq!(cluster.reviews(), 1 + 3);
    }

    #[tokio::test]
    async fn a_yes_is_for_this_user_with_these_groups_and_this_box() {
        let cluster = Arc::new(FakeCluster::default());
        cluster.allow("ann", "ns");
        let access = Access::new(cluster.clone());
        let target = Target::new("ns", "b").unwrap();
        access.check(&user("ann"), &target).await.unwrap();
        let mut other = user("ann");
        other.groups.push("g".to_owned());
        access.check(&other, &target).await.unwrap();
        let elsewhere = Target::new("other", "b").unwrap();
        assert!(access.check(&user("ann"), &elsewhere).await.is_err());
        assert_eq!(cluster.reviews(), 3);
    }

    #[tokio::test]
    async fn without_an_answer_nobody_may() {
        let cluster = Arc::new(FakeCluster::default());
        cluster.allow("ann", "ns");
        cluster.fall_silent();
        let access = Access::new(cluster);
        let target = Target::new("ns", "b").unwrap();
        let no = access.check(&user("ann"), &target).await.unwrap_err();
        assert_eq!(no.code(), http::StatusCode::SERVICE_UNAVAILABLE);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let access = Access::new(Arc::new(FakeCluster::default()));
        let target = Target::new("ns", "b").unwrap();
        let now = Instant::now();
        for number in 0..MOST + 10 {
            access.remember(digest(&user(&number.to_string()), &target), now);
        }
        assert_eq!(access.allowed.lock().unwrap().len(), MOST);
        access.remember(digest(&user("late"), &target), now + REMEMBER);
        assert_eq!(access.allowed.lock().unwrap().len(), 1);
    }
}
