//! What a namespace's owner limits: room, and the memory of those who ask for none.

use anyhow::Result;
use boxes_crds::condition;
use boxes_tests::harness::{Reason, State, World, a_box, e2e};
use k8s_openapi::api::core::v1::{LimitRange, ResourceQuota};
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use crate::help::{UNTIL_TOLD, history};

async fn room_for_one_pod(world: &World) -> Result<()> {
    let quotas: Api<ResourceQuota> = world.api();
    let one = serde_json::from_value(json!({
        "metadata": {"name": "one"}, "spec": {"hard": {"pods": "1"}},
    }))?;
    quotas.create(&PostParams::default(), &one).await?;
    Ok(())
}

async fn memory_limits(world: &World, range: serde_json::Value) -> Result<()> {
    let ranges: Api<LimitRange> = world.api();
    let range = serde_json::from_value(json!({
        "metadata": {"name": "memory"}, "spec": {"limits": [range]},
    }))?;
    ranges.create(&PostParams::default(), &range).await?;
    Ok(())
}

#[tokio::test]
async fn a_box_that_a_quota_forbids_goes_on_when_there_is_room() {
    e2e(async |world| {
        room_for_one_pod(world).await?;
        let first = a_box("first").shell(UNTIL_TOLD).create(world).await?;
        first.says("ready").await?;
        let second = a_box("second").shell("exit 3").create(world).await?;
        let accepted = second.has_condition(condition::ACCEPTED, "False").await?;
        assert!(
            accepted.message.contains("exceeded quota: one"),
            "{}",
            accepted.message
        );
        let status = second.is(State::Pending).await?;
        assert!(
            status.run.is_none() && status.reason.is_none(),
            "{status:?}"
        );
        first.stop().await?;
        first
            .ends_as(State::Stopped, Reason::Stopped)
            .with_code(0)
            .await?;
        second
            .ends_as(State::Exited, Reason::Exit)
            .with_code(3)
            .await?;
        second.has_condition(condition::ACCEPTED, "True").await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_memory_limit_by_default_kills_as_one_that_was_asked_for_and_own_codes_stay() {
    e2e(async |world| {
        let range = json!({"type": "Container", "default": {"memory": "32Mi"}});
        memory_limits(world, range).await?;
        let hungry = a_box("hungry")
            .runs(["dd", "if=/dev/zero", "of=/dev/null", "bs=200M", "count=1"])
            .create(world)
            .await?;
        let own = a_box("own-137").shell("exit 137").create(world).await?;
        let stopped = a_box("stopped").shell(UNTIL_TOLD).create(world).await?;
        stopped.says("ready").await?;
        stopped.stop().await?;
        let status = hungry
            .ends_as(State::Exited, Reason::OOM)
            .with_code(137)
            .await?;
        assert!(history(&status).contains(&"OOMKilled"), "{status:?}");
        own.ends_as(State::Exited, Reason::Exit)
            .with_code(137)
            .await?;
        stopped
            .ends_as(State::Stopped, Reason::Stopped)
            .with_code(0)
            .await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_box_that_asks_for_more_than_anyone_may_stays_pending_with_the_servers_words() {
    e2e(async |world| {
        let range = json!({"type": "Container", "max": {"memory": "64Mi"}});
        memory_limits(world, range).await?;
        let it = a_box("greedy").memory_limit("128Mi").create(world).await?;
        let accepted = it.has_condition(condition::ACCEPTED, "False").await?;
        assert!(
            accepted.message.contains("maximum memory usage"),
            "{}",
            accepted.message
        );
        it.is(State::Pending).await?;
        it.change(json!({"resources": {"limits": {"memory": "64Mi"}}, "command": ["true"]}))
            .await?;
        it.ends_as(State::Exited, Reason::Exit).with_code(0).await?;
        Ok(())
    })
    .await;
}
