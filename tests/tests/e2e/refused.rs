//! A pod that the API server does not want.

use anyhow::Result;
use boxes_tests::harness::{Reason, State, World, a_box, e2e, until};
use k8s_openapi::api::core::v1::{Namespace, ResourceQuota, ServiceAccount};
use kube::Api;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::json;

async fn a_quota_of_no_pods(world: &World) -> Result<Api<ResourceQuota>> {
    let quotas: Api<ResourceQuota> = world.api();
    let quota = serde_json::from_value(json!({
        "metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}},
    }))?;
    quotas.create(&PostParams::default(), &quota).await?;
    let patience = boxes_tests::harness::PATIENCE;
    until(
        &quotas,
        "none",
        "the quota to be in force",
        patience,
        |seen| seen?.status.as_ref()?.hard.as_ref().map(drop),
    )
    .await?;
    Ok(quotas)
}

#[tokio::test]
async fn an_invalid_pod_ends_the_box_with_the_servers_own_words() {
    e2e(async |world| {
        let it = a_box("invalid")
            .runs(["true"])
            .volume_mounts(json!([{"name": "not-there", "mountPath": "/data"}]))
            .create(world)
            .await?;
        it.ends_as(State::Stopped, Reason::StartFailed)
            .saying("not-there")
            .await?;
        let accepted = it.has_condition("Accepted", "False").await?;
        assert!(
            accepted.message.contains("not-there"),
            "{}",
            accepted.message
        );
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_quota_keeps_the_box_pending_with_the_servers_own_words() {
    e2e(async |world| {
        a_quota_of_no_pods(world).await?;
        let it = a_box("over-quota").runs(["true"]).create(world).await?;
        let accepted = it.has_condition("Accepted", "False").await?;
        assert!(
            accepted.message.contains("exceeded quota"),
            "{}",
            accepted.message
        );
        let status = it.is(State::Pending).await?;
        assert!(
            status.reason.is_none() && status.run.is_none(),
            "{status:?}"
        );
        it.delete().await?;
        it.is_gone().await
    })
    .await;
}

#[tokio::test]
async fn a_box_that_a_quota_forbids_ends_at_its_start_deadline() {
    e2e(async |world| {
        a_quota_of_no_pods(world).await?;
        let it = a_box("forbidden")
            .runs(["true"])
            .start_deadline_seconds(4)
            .create(world)
            .await?;
        it.ends_as(State::Stopped, Reason::StartFailed)
            .saying("startDeadlineSeconds (4)")
            .saying("exceeded quota")
            .await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_service_account_that_comes_later_lets_the_box_run() {
    e2e(async |world| {
        let it = a_box("patient")
            .shell("exit 3")
            .service_account_name("comes-later")
            .create(world)
            .await?;
        let accepted = it.has_condition("Accepted", "False").await?;
        assert!(
            accepted.message.contains("comes-later"),
            "{}",
            accepted.message
        );
        let accounts: Api<ServiceAccount> = world.api();
        let account = ServiceAccount {
            metadata: ObjectMeta {
                name: Some("comes-later".to_owned()),
                ..ObjectMeta::default()
            },
            ..ServiceAccount::default()
        };
        accounts.create(&PostParams::default(), &account).await?;
        it.ends_as(State::Exited, Reason::Exit).with_code(3).await?;
        it.has_condition("Accepted", "True").await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn pod_security_keeps_a_careless_box_pending_and_lets_a_careful_one_run() {
    e2e(async |world| {
        let namespaces: Api<Namespace> = Api::all(world.client());
        let enforce = json!({"metadata": {"labels": {
            "pod-security.kubernetes.io/enforce": "restricted",
        }}});
        let patch = Patch::Merge(&enforce);
        namespaces
            .patch(world.namespace(), &PatchParams::default(), &patch)
            .await?;

        let careless = a_box("careless").runs(["true"]).create(world).await?;
        let accepted = careless.has_condition("Accepted", "False").await?;
        assert!(
            accepted.message.contains("PodSecurity"),
            "{}",
            accepted.message
        );

        let careful = a_box("careful")
            .shell("exit 3")
            .pod_security_context(json!({
                "runAsNonRoot": true, "runAsUser": 65534,
                "seccompProfile": {"type": "RuntimeDefault"},
            }))
            .security_context(json!({
                "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]},
            }))
            .create(world)
            .await?;
        careful
            .ends_as(State::Exited, Reason::Exit)
            .with_code(3)
            .await?;
        assert_eq!(careless.status().await?.state.as_deref(), Some("Pending"));
        Ok(())
    })
    .await;
}
