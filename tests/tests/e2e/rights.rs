//! What the controller may do, and as whom it runs.

use anyhow::{Context, Result, ensure};
use boxes_tests::harness::{NAMESPACE, SERVICE_ACCOUNT, World, e2e, e2e_steady};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;

/// Verbs on a resource: `group/resource/subresource`, where the group of pods is empty.
type Right = (&'static str, &'static [&'static str]);

const NEEDED: &[Right] = &[
    (
        "boxes.run/boxes",
        &["get", "list", "watch", "patch", "delete"],
    ),
    ("boxes.run/boxes/status", &["patch"]),
    (
        "/pods",
        &["get", "list", "watch", "create", "patch", "delete"],
    ),
    ("/nodes", &["get"]),
    ("/namespaces", &["get"]),
    ("events.k8s.io/events", &["create"]),
];

const FORBIDDEN: &[Right] = &[
    (
        "/secrets",
        &[
            "get", "list", "watch", "create", "update", "patch", "delete",
        ],
    ),
    (
        "/configmaps",
        &[
            "get", "list", "watch", "create", "update", "patch", "delete",
        ],
    ),
    ("/pods/exec", &["create", "get"]),
    ("/pods/attach", &["create", "get"]),
    ("/pods/portforward", &["create", "get"]),
    ("/pods/log", &["get"]),
    ("/pods/eviction", &["create"]),
    ("/pods/ephemeralcontainers", &["patch", "update"]),
    ("/pods/status", &["patch", "update"]),
    ("/pods", &["deletecollection"]),
    ("/nodes", &["create", "update", "patch", "delete"]),
    ("/nodes/proxy", &["get"]),
    ("/namespaces", &["create", "update", "patch", "delete"]),
    ("/serviceaccounts", &["get", "create", "impersonate"]),
    ("/serviceaccounts/token", &["create"]),
    ("/persistentvolumeclaims", &["create", "delete"]),
    ("boxes.run/boxes", &["create", "deletecollection"]),
    ("boxes.run/boxes/status", &["delete"]),
    ("apps/deployments", &["get", "create", "patch", "delete"]),
    ("batch/jobs", &["create"]),
    (
        "coordination.k8s.io/leases",
        &["get", "create", "update", "patch", "delete"],
    ),
    (
        "rbac.authorization.k8s.io/clusterroles",
        &["get", "create", "bind", "escalate", "patch"],
    ),
    (
        "apiextensions.k8s.io/customresourcedefinitions",
        &["create", "update", "patch", "delete"],
    ),
    ("*/*", &["*"]),
];

/// Whether the controller may do something in a namespace.
async fn may(world: &World, namespace: &str, verb: &str, what: &str) -> Result<bool> {
    let mut parts = what.split('/').map(str::to_owned);
    let resource = ResourceAttributes {
        namespace: Some(namespace.to_owned()),
        verb: Some(verb.to_owned()),
        group: parts.next(),
        resource: parts.next(),
        subresource: parts.next(),
        ..ResourceAttributes::default()
    };
    let groups = ["system:authenticated", "system:serviceaccounts"].map(str::to_owned);
    let own = format!("system:serviceaccounts:{NAMESPACE}");
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(SERVICE_ACCOUNT.to_owned()),
            groups: Some(groups.into_iter().chain([own]).collect()),
            resource_attributes: Some(resource),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let reviews: Api<SubjectAccessReview> = Api::all(world.client());
    let answer = reviews.create(&PostParams::default(), &review).await?;
    Ok(answer.status.context("no answer")?.allowed)
}

async fn check(world: &World, rights: &[Right], expected: bool) -> Result<()> {
    for (what, verbs) in rights {
        for verb in *verbs {
            let allowed = may(world, world.namespace(), verb, what).await?;
            ensure!(
                allowed == expected,
                "{verb} {what}: allowed is {allowed}, not {expected}"
            );
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_controller_has_the_rights_that_it_needs() {
    e2e(async |world| check(world, NEEDED, true).await).await;
}

#[tokio::test]
async fn the_controller_has_no_other_rights() {
    e2e(async |world| check(world, FORBIDDEN, false).await).await;
}

#[tokio::test]
async fn its_lease_is_in_its_own_namespace_only() {
    e2e(async |world| {
        let create = may(world, NAMESPACE, "create", "coordination.k8s.io/leases").await?;
        assert!(create, "it cannot make its lease");
        for what in ["/secrets", "/configmaps"] {
            assert!(
                !may(world, NAMESPACE, "get", what).await?,
                "{what} in its own namespace"
            );
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_controller_is_not_root_and_cannot_write_or_gain_anything() {
    e2e_steady(async |world| {
        let pod = world.controller().ready_pod().await?;
        let spec = pod.spec.context("no spec")?;
        let own = spec.security_context.unwrap_or_default();
        assert_eq!(own.run_as_non_root, Some(true));
        assert!(
            own.run_as_user.is_some_and(|user| user > 0),
            "{:?}",
            own.run_as_user
        );
        assert_ne!(spec.host_network, Some(true));
        let context = spec.containers[0]
            .security_context
            .clone()
            .unwrap_or_default();
        assert_eq!(context.read_only_root_filesystem, Some(true));
        assert_eq!(context.allow_privilege_escalation, Some(false));
        assert_ne!(context.privileged, Some(true));
        let dropped = context
            .capabilities
            .and_then(|all| all.drop)
            .unwrap_or_default();
        assert_eq!(dropped, ["ALL"]);
        let status = pod
            .status
            .and_then(|status| status.container_statuses)
            .unwrap_or_default();
        let user = status
            .first()
            .and_then(|it| it.user.clone())
            .and_then(|it| it.linux);
        // Told by the runtime, where it is new enough: what the process really runs as.
        if let Some(user) = user {
            assert!(user.uid > 0 && user.gid > 0, "{user:?}");
        }
        Ok(())
    })
    .await;
}
