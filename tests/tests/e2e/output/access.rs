//! Who may read output, and who may not.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use boxes_crds::OutputState;
use boxes_tests::harness::{OutputReader, PATIENCE, Reason, State, World, a_box, e2e};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::ResourceExt;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};

const SECRET: &str = "echo what-others-may-not-read";
const READ: &str = "what-others-may-not-read\n";

async fn make<K>(world: &World, object: Value) -> Result<()>
where
    K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
        + serde::Serialize
        + serde::de::DeserializeOwned
        + Clone
        + std::fmt::Debug,
{
    let object: K = serde_json::from_value(object)?;
    world
        .api::<K>()
        .create(&PostParams::default(), &object)
        .await?;
    Ok(())
}

/// Binds a role in the test's namespace to a user of this name.
async fn bind(world: &World, user: &str, kind: &str, role: &str) -> Result<()> {
    let group = "rbac.authorization.k8s.io";
    make::<RoleBinding>(
        world,
        json!({
            "metadata": {"name": user},
            "roleRef": {"apiGroup": group, "kind": kind, "name": role},
            "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
        }),
    )
    .await
}

/// Reads, once the API server knows of a binding that was just made.
async fn read_once_bound(output: &OutputReader) -> Result<String> {
    let bound = async {
        loop {
            match output.open("").await {
                Err(kube::Error::Api(status)) if status.code == 403 => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                _ => return,
            }
        }
    };
    tokio::time::timeout(PATIENCE, bound).await.context("403")?;
    output.text("").await
}

#[tokio::test]
async fn only_who_may_get_the_log_of_boxes_reads_it_and_only_in_that_namespace() {
    e2e(async |world| {
        let it = a_box("secret").shell(SECRET).create(world).await?;
        it.has_output(OutputState::Saved).await?;
        let (reader, stranger) = ("reader", "stranger");
        let rules = json!([{"apiGroups": ["output.boxes.run"], "resources": ["boxes/log"], "verbs": ["get"]}]);
        let role = json!({"metadata": {"name": reader}, "rules": rules});
        make::<Role>(world, role).await?;
        bind(world, reader, "Role", reader).await?;
        // Who may read the Box itself may not for that reason read what it wrote.
        let rules = json!([{"apiGroups": ["boxes.run"], "resources": ["*"], "verbs": ["*"]}]);
        let role = json!({"metadata": {"name": stranger}, "rules": rules});
        make::<Role>(world, role).await?;
        bind(world, stranger, "Role", stranger).await?;

        let by_reader = it.output().read_by(world.client_as(reader).await?);
        ensure!(read_once_bound(&by_reader).await? == READ);
        let elsewhere = by_reader.in_namespace(world.namespace(), "default");
        ensure!(elsewhere.refused("").await? == 403);
        let by_stranger = it.output().read_by(world.client_as(stranger).await?);
        ensure!(by_stranger.refused("").await? == 403);
        ensure!(by_stranger.refused("follow=true").await? == 403);
        let elsewhere = by_stranger.in_namespace(world.namespace(), "default");
        ensure!(elsewhere.refused("").await? == 403);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_clusters_view_role_may_read_it() {
    e2e(async |world| {
        let it = a_box("viewed").shell(SECRET).create(world).await?;
        it.has_output(OutputState::Saved).await?;
        bind(world, "viewer", "ClusterRole", "view").await?;
        let by_viewer = it.output().read_by(world.client_as("viewer").await?);
        ensure!(read_once_bound(&by_viewer).await? == READ);
        Ok(())
    })
    .await;
}

/// The log API believes nobody but the API server, the archive's reader nobody but the log API, and
/// nothing of the archive is in a box.
#[tokio::test]
async fn a_box_reaches_neither_its_own_output_nor_the_archive() {
    e2e(async |world| {
        let it = a_box("victim").shell(SECRET).create(world).await?;
        it.has_output(OutputState::Saved).await?;
        let log = it.output().path().to_owned();
        let line = format!(
            "grep -qi archive /proc/mounts && exit 10; [ -e /archive ] && exit 11; \
             env | grep -qiE 'archive|aws_|azure|google' && exit 12; \
             [ -e /var/run/secrets ] && exit 13; [ -e /var/log/pods ] && exit 14; \
             for url in https://boxes-log-api.boxes-system.svc:443 \
                 https://boxes-output-reader.boxes-system.svc:8443; do \
               for as in '' '--header=X-Remote-User:admin --header=X-Remote-Group:system:masters'; do \
                 wget -q -T 5 --no-check-certificate $as -O - $url{log} | grep -q others && exit 15; \
               done; \
             done; exit 0"
        );
        let curious = a_box("curious").shell(&line).create(world).await?;
        curious
            .ends_as(State::Exited, Reason::Exit)
            .with_code(0)
            .await?;
        Ok(())
    })
    .await;
}

/// Whoever may make pods can make one that says it is of a Box. It is not the Box's pod, so that what
/// it wrote is nobody's output.
#[tokio::test]
async fn a_pod_that_says_it_is_of_a_box_adds_nothing_to_its_output() {
    e2e(async |world| {
        let it = a_box("real").shell("echo real").create(world).await?;
        it.has_output(OutputState::Saved).await?;
        let forged: Pod = serde_json::from_value(json!({
            "metadata": {
                "name": "forged", "labels": {"boxes.run/box-uid": it.uid()},
                "annotations": {"boxes.run/box": "real"}, "finalizers": ["boxes.run/output"],
            },
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "box", "image": "busybox", "command": ["echo", "forged"]}],
            },
        }))?;
        let made = world.pods().create(&PostParams::default(), &forged).await?;
        it.has_a_pod("the forged pod to be let go", |pod| {
            pod.name_any() == "forged" && pod.finalizers().is_empty()
        })
        .await?;
        ensure!(it.output().text("").await? == "real\n");
        let name = made.name_any();
        world.pods().delete(&name, &DeleteParams::default()).await?;
        ensure!(it.output().text("").await? == "real\n");
        Ok(())
    })
    .await;
}
