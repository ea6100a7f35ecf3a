//! The log API fails. While it is not there at all, no namespace can be deleted; the way out that
//! `docs/guides/uninstall.md` names works.

use anyhow::{Context, Result, ensure};
use boxes_crds::OutputState;
use boxes_tests::harness::{LogApi, NAMESPACE, World, a_box, e2e_alone, gone, until};
use futures::AsyncBufReadExt;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{DeleteParams, EvictParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;

/// A client follows while every replica is killed, takes the answer up again where it was cut off, and
/// has lost and doubled nothing.
#[tokio::test]
async fn a_follower_whose_log_api_is_killed_goes_on_where_it_was() {
    e2e_alone(async |world| {
        let line = "i=0; while [ $i -lt 60 ]; do i=$((i+1)); echo line-$i; sleep 0.2; done";
        let it = a_box("followed").shell(line).create(world).await?;
        let output = it.output();
        let (mut seen, mut cuts) = (String::new(), 0);
        let log_api = LogApi::of(world);
        loop {
            let on = format!(
                "follow=true&uid={}&from=0&skipBytes={}",
                it.uid(),
                seen.len()
            );
            // While no replica answers, the request itself fails.
            let Ok(mut follower) = output.open(&on).await else {
                log_api.is_ready().await?;
                continue;
            };
            let end = loop {
                match follower.read_line(&mut seen).await {
                    Ok(0) => break true,
                    Ok(_) if cuts < 2 && seen.lines().count() >= 10 * (cuts + 1) => {
                        cuts += 1;
                        log_api.kill().await?;
                    }
                    Ok(_) => {}
                    Err(_) => break false,
                }
            };
            if end {
                break;
            }
        }
        let lines = (1..=60).map(|line| format!("line-{line}"));
        ensure!(seen.lines().eq(lines), "{seen}");
        ensure!(cuts == 2, "it was never killed");
        Ok(())
    })
    .await;
}

async fn a_namespace(world: &World, name: &str) -> Result<Api<Namespace>> {
    let all: Api<Namespace> = Api::all(world.client());
    let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
    all.create(&PostParams::default(), &namespace).await?;
    let maps: Api<ConfigMap> = Api::namespaced(world.client(), name);
    let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "content"}}))?;
    maps.create(&PostParams::default(), &map).await?;
    Ok(all)
}

#[tokio::test]
async fn without_a_log_api_boxes_are_there_and_a_stuck_namespace_is_freed_as_documented() {
    e2e_alone(async |world| {
        let log_api = LogApi::of(world);
        let it = a_box("unread").shell("echo kept").create(world).await?;
        it.has_output(OutputState::Saved).await?;
        let registered = log_api.registration().await?;
        log_api.scale(0).await?;
        log_api.is_unavailable().await?;

        let said = world.kubectl()?.run(["get", "boxes"]).await?.ok()?;
        ensure!(said.contains("unread"), "{said}");
        let name = format!("{}-stuck", world.namespace());
        let all = a_namespace(world, &name).await?;
        all.delete(&name, &DeleteParams::default()).await?;
        let what = "the deletion to fail for want of the log API";
        until(&all, &name, what, boxes_tests::harness::PATIENCE, |seen| {
            let conditions = seen?.status.as_ref()?.conditions.as_ref()?;
            let mut failures = conditions.iter();
            failures
                .find(|it| it.type_ == "NamespaceDeletionDiscoveryFailure" && it.status == "True")
                .map(drop)
        })
        .await?;

        // As the guide says.
        let command = ["delete", "apiservice", "v1alpha1.output.boxes.run"];
        let freed = world.kubectl()?.run(command).await?.ok();
        let freed = async {
            freed?;
            gone(&all, &name, None).await
        }
        .await;
        log_api.register(registered).await?;
        log_api.scale(2).await?;
        log_api.is_ready().await?;
        freed.context("the namespace stays")?;
        ensure!(it.output().text("").await? == "kept\n");
        Ok(())
    })
    .await;
}

/// What keeps the archive's volume from its pods keeps output from being read, and nothing else.
#[tokio::test]
async fn without_a_reader_of_the_archive_reads_are_refused_and_namespaces_are_deleted() {
    e2e_alone(async |world| {
        let log_api = LogApi::of(world);
        let it = a_box("unread").shell("echo kept").create(world).await?;
        it.has_output(OutputState::Saved).await?;
        let without = async {
            log_api.scale_readers(0).await?;
            // Our own client would try for minutes.
            let output = it.output();
            let read = ["get", "--raw", output.path()];
            let said = world.kubectl()?.run(read).await?.refused()?;
            ensure!(said.contains("its reader gives no answer"), "{said}");
            let name = format!("{}-free", world.namespace());
            let all = a_namespace(world, &name).await?;
            all.delete(&name, &DeleteParams::default()).await?;
            gone(&all, &name, None).await?;
            log_api.is_ready().await
        }
        .await;
        log_api.scale_readers(2).await?;
        without?;
        ensure!(it.output().text("").await? == "kept\n");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_drain_takes_one_replica_at_a_time() {
    e2e_alone(async |world| {
        let log_api = LogApi::of(world);
        log_api.is_ready().await?;
        let budget = "pdb/boxes-log-api --namespace boxes-system --timeout 90s";
        let allows = "--for=jsonpath={.status.disruptionsAllowed}=1";
        let wait = ["wait", allows].into_iter().chain(budget.split(' '));
        world.kubectl()?.run(wait).await?.ok()?;
        let pods: Api<Pod> = Api::namespaced(world.client(), NAMESPACE);
        let mut all = log_api.pods().await?.into_iter();
        let pod = all.find(|pod| pod.metadata.deletion_timestamp.is_none());
        let name = pod.context("no replica")?.name_any();
        pods.evict(&name, &EvictParams::default()).await?;
        // Until there is another one, no more are let go.
        let budgets: Api<PodDisruptionBudget> = Api::namespaced(world.client(), NAMESPACE);
        let status = budgets.get("boxes-log-api").await?.status;
        let allowed = status.context("no status")?.disruptions_allowed;
        ensure!(allowed.unwrap_or(0) == 0, "{allowed:?} more may be taken");
        log_api.is_ready().await
    })
    .await;
}
