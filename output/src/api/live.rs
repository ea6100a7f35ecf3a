//! The cluster, over its API server.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use boxes_crds::{BoxStatus, OutputState, State, condition};
use boxes_program::says_absent;
use futures::future::BoxFuture;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec, SubjectAccessReviewStatus,
};
use kube::Client;
use kube::api::{Api, PostParams};
use serde::Deserialize;

use super::cluster::{Cluster, FoundBox, NoAnswer, Verdict};
use super::endpoints::Service;
use super::names::Target;
use super::route::{GROUP, VERSION};
use super::user::User;
use crate::archive::Uid;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// A real cluster.
#[derive(Clone)]
pub(crate) struct Live {
    client: Client,
}

/// A Box as far as it matters here: whatever else stands in it need not be understood.
#[derive(Deserialize)]
struct BoxView {
    metadata: Metadata,
    #[serde(default)]
    status: BoxStatus,
}

#[derive(Deserialize)]
struct Metadata {
    uid: String,
}

impl Live {
    pub(crate) const fn new(client: Client) -> Self {
        Self { client }
    }

    async fn get(&self, target: &Target) -> Result<Option<FoundBox>, NoAnswer> {
        // Both names were checked: they are segments of a path and nothing else.
        let Target { namespace, name } = target;
        let path = format!("/apis/boxes.run/v1alpha1/namespaces/{namespace}/boxes/{name}");
        let request = http::Request::get(path)
            .body(Vec::new())
            .map_err(|error| NoAnswer(error.to_string()))?;
        let answer = in_time(self.client.request::<BoxView>(request)).await?;
        match answer {
            Ok(view) => view.found().map(Some),
            Err(error) if says_absent(&error, name) => Ok(None),
            Err(error) => Err(NoAnswer(error.to_string())),
        }
    }

    async fn ask(&self, user: &User, target: &Target) -> Result<Verdict, NoAnswer> {
        let reviews = Api::<SubjectAccessReview>::all(self.client.clone());
        let review = question(user, target);
        let options = PostParams::default();
        let answer = in_time(reviews.create(&options, &review)).await?;
        let answer = answer.map_err(|error| NoAnswer(error.to_string()))?;
        answer
            .status
            .map(verdict)
            .ok_or_else(|| NoAnswer("a review without a status".to_owned()))
    }
}

impl Cluster for Live {
    fn find_box<'a>(
        &'a self,
        target: &'a Target,
    ) -> BoxFuture<'a, Result<Option<FoundBox>, NoAnswer>> {
        Box::pin(self.get(target))
    }

    fn addresses<'a>(
        &'a self,
        service: &'a Service,
    ) -> BoxFuture<'a, Result<Vec<SocketAddr>, NoAnswer>> {
        Box::pin(async move {
            let answer = in_time(service.addresses(&self.client)).await?;
            answer.map_err(|error| NoAnswer(error.to_string()))
        })
    }

    fn review<'a>(
        &'a self,
        user: &'a User,
        target: &'a Target,
    ) -> BoxFuture<'a, Result<Verdict, NoAnswer>> {
        Box::pin(self.ask(user, target))
    }
}

impl BoxView {
    fn found(self) -> Result<FoundBox, NoAnswer> {
        let uid = |text: &str| Uid::parse(text).map_err(|error| NoAnswer(error.to_string()));
        let run = self.status.run.as_ref();
        let state = self.status.state.clone().unwrap_or_default();
        Ok(FoundBox {
            uid: uid(&self.metadata.uid)?,
            pod_uid: run.map(|run| uid(&run.pod.uid)).transpose()?,
            ended: State::parse(&state).is_some_and(State::is_final),
            cleaned_up: self.is_cleaned_up(),
            unsaved: run.is_some() && self.is_unsaved(),
            state,
        })
    }

    fn is_unsaved(&self) -> bool {
        let output = self.status.output.as_ref();
        output.is_none_or(|output| output.state == OutputState::Unavailable.as_str())
    }

    fn is_cleaned_up(&self) -> bool {
        let mut conditions = self.status.conditions.iter();
        conditions.any(|known| known.type_ == condition::CLEANED_UP && known.status == "True")
    }
}

fn question(user: &User, target: &Target) -> SubjectAccessReview {
    SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(user.name.clone()),
            uid: Some(user.uid.clone()).filter(|uid| !uid.is_empty()),
            groups: Some(user.groups.clone()),
            extra: Some(user.extra.clone()),
            resource_attributes: Some(ResourceAttributes {
                group: Some(GROUP.to_owned()),
                version: Some(VERSION.to_owned()),
                resource: Some("boxes".to_owned()),
                subresource: Some("log".to_owned()),
                verb: Some("get".to_owned()),
                namespace: Some(target.namespace.clone()),
                name: Some(target.name.clone()),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    }
}

/// Denied wins over allowed, and an authorizer that failed has not allowed.
fn verdict(status: SubjectAccessReviewStatus) -> Verdict {
    if status.allowed && status.denied != Some(true) {
        Verdict::Allowed
    } else {
        Verdict::Denied(status.reason.filter(|reason| !reason.is_empty()))
    }
}

async fn in_time<T>(call: impl Future<Output = T>) -> Result<T, NoAnswer> {
    tokio::time::timeout(PATIENCE, call)
        .await
        .map_err(|_| NoAnswer(format!("none within {PATIENCE:?}")))
}

#[cfg(test)]
mod tests {
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;

    fn found(object: Value) -> Result<FoundBox, NoAnswer> {
        serde_json::from_value::<BoxView>(object).unwrap().found()
    }

    #[test]
    fn a_box_that_nothing_is_recorded_of() {
        let found =
            found(json!({"metadata": {"uid": "u", "name": "b"}, "spec": {"new": 1}})).unwrap();
        assert_eq!((found.pod_uid, found.state.as_str()), (None, ""));
        assert!(!found.ended && !found.cleaned_up);
    }

    #[test]
    fn a_box_that_ended() {
        let found = found(json!({
            "metadata": {"uid": "u"},
            "status": {
                "state": "Stopped", "run": {"number": 1, "pod": {"name": "p", "uid": "p-1"}},
                "conditions": [{
                    "type": "CleanedUp", "status": "True", "reason": "", "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }],
            },
        }))
        .unwrap();
        assert_eq!(found.pod_uid, Some(Uid::parse("p-1").unwrap()));
        assert!(found.ended && found.cleaned_up);
    }

    #[rstest::rstest]
    #[case(json!({}), true)]
    #[case(json!({"output": {"state": "Unavailable", "bytes": 0, "truncated": true}}), true)]
    #[case(json!({"output": {"state": "Saving", "bytes": 0, "truncated": false}}), false)]
    fn whether_the_output_of_a_run_is_saved(#[case] mut status: Value, #[case] unsaved: bool) {
        status["run"] = json!({"number": 1, "pod": {"name": "p", "uid": "p-1"}});
        let found = found(json!({"metadata": {"uid": "u"}, "status": status})).unwrap();
        assert_eq!(found.unsaved, unsaved);
    }

    #[test]
    fn a_uid_that_would_lead_elsewhere_is_no_answer() {
        assert!(found(json!({"metadata": {"uid": "../other"}})).is_err());
    }

    #[test]
    fn a_review_names_the_user_and_the_log() {
        let user = User {
            name: "u".into(),
            groups: vec!["g".into()],
            ..User::default()
        };
        let target = Target::new("ns", "b").unwrap();
        let asked = serde_json::to_value(question(&user, &target).spec).unwrap();
        let expected = json!({
            "user": "u", "groups": ["g"], "extra": {},
            "resourceAttributes": {
                "group": "output.boxes.run", "version": "v1alpha1", "resource": "boxes",
                "subresource": "log", "verb": "get", "namespace": "ns", "name": "b",
            },
        });
        assert_eq!(asked, expected);
    }

    #[rstest::rstest]
    #[case("b", true)]
    #[case("", false)]
    #[case("boxes.boxes.run", false)]
    #[tokio::test]
    async fn only_a_typed_answer_says_that_there_is_no_box(
        #[case] name: &str,
        #[case] absent: bool,
    ) {
        let (service, mut handle) = tower_test::mock::pair::<http::Request<Body>, _>();
        let answer = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "message": "",
            "reason": "NotFound", "code": 404, "details": {"name": name}});
        tokio::spawn(async move {
            let (_, send) = handle.next_request().await.unwrap();
            let body = Body::from(answer.to_string().into_bytes());
            send.send_response(http::Response::builder().status(404).body(body).unwrap());
        });
        let live = Live::new(Client::new(service, "default"));
        let found = live.get(&Target::new("ns", "b").unwrap()).await;
        assert_eq!(found.ok(), absent.then_some(None));
    }

    #[rstest::rstest]
    #[case(json!({"allowed": true}), Verdict::Allowed)]
    #[case(json!({"allowed": true, "denied": true}), Verdict::Denied(None))]
    #[case(json!({"allowed": false, "reason": "no"}), Verdict::Denied(Some("no".into())))]
    #[case(json!({"allowed": false, "evaluationError": "broken"}), Verdict::Denied(None))]
    fn only_allowed_is_allowed(#[case] status: Value, #[case] expected: Verdict) {
        assert_eq!(verdict(serde_json::from_value(status).unwrap()), expected);
    }
}
