//! The spec is free until a pod was made, and then fixed but for three fields.

use anyhow::{Context, Result, bail};
use boxes_tests::harness::{LiveBox, Reason, State, World, a_box, e2e};
use serde_json::{Value, json};

use crate::help::UNTIL_TOLD;

/// A Box that runs until it is told to end.
async fn a_running_box(world: &World) -> Result<LiveBox> {
    let it = a_box("fixed")
        .shell(UNTIL_TOLD)
        .working_dir("/tmp")
        .active_deadline_seconds(600)
        .create(world)
        .await?;
    it.says("ready").await?;
    it.is(State::Running).await?;
    Ok(it)
}

/// What the API server says to a change that it must refuse.
async fn refusal(it: &LiveBox, change: Value) -> Result<String> {
    match it.try_change(change.clone()).await {
        Ok(_) => bail!("{change} was accepted"),
        Err(error) => Ok(error.to_string()),
    }
}

#[tokio::test]
async fn once_a_pod_was_made_a_change_is_refused_with_the_name_of_its_field() {
    e2e(async |world| {
        let it = a_running_box(world).await?;
        let before = it.get().await?.spec;
        let rows = [
            ("image", json!("other")),
            ("command", json!(["false"])),
            ("command", Value::Null),
            ("args", json!(["more"])),
            ("env", json!([{"name": "NEW", "value": "1"}])),
            ("workingDir", json!("/")),
            ("workingDir", Value::Null),
            ("resources", json!({"limits": {"memory": "1Gi"}})),
            ("volumes", json!([{"name": "new", "emptyDir": {}}])),
            ("serviceAccountName", json!("other")),
            ("nodeSelector", json!({"other": "node"})),
            ("affinity", json!({"nodeAffinity": {}})),
            ("terminationGracePeriodSeconds", json!(1)),
            ("startDeadlineSeconds", json!(1)),
            ("template", json!({"spec": {"hostNetwork": true}})),
            ("tty", json!(true)),
        ];
        for (field, value) in rows {
            let said = refusal(&it, json!({field: value})).await?;
            assert!(
                said.contains(&format!("spec.{field}")),
                "{field}: {value}: {said}"
            );
            assert!(said.contains("immutable"), "{field}: {value}: {said}");
        }
        assert_eq!(it.get().await?.spec, before);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_deadline_can_only_be_lowered_and_then_reaches_the_pod() {
    e2e(async |world| {
        let it = a_running_box(world).await?;
        for change in [json!(700), Value::Null] {
            let said = refusal(&it, json!({"activeDeadlineSeconds": change})).await?;
            assert!(
                said.contains("spec.activeDeadlineSeconds"),
                "{change}: {said}"
            );
        }
        it.change(json!({"activeDeadlineSeconds": 500})).await?;
        it.has_a_pod("the lower deadline", |pod| {
            let spec = pod.spec.as_ref();
            spec.and_then(|spec| spec.active_deadline_seconds) == Some(500)
        })
        .await?;
        it.change(json!({"activeDeadlineSeconds": 1})).await?;
        it.ends_as(State::Exited, Reason::Timeout).await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_ttl_may_change_at_any_time() {
    e2e(async |world| {
        let it = a_running_box(world).await?;
        it.change(json!({"ttlSecondsAfterFinished": 3600})).await?;
        it.change(json!({"ttlSecondsAfterFinished": null})).await?;
        it.stop().await?;
        it.ends_as(State::Stopped, Reason::Stopped)
            .with_code(0)
            .await?;
        it.is_cleaned_up().await?;
        it.change(json!({"ttlSecondsAfterFinished": 0})).await?;
        it.is_gone().await
    })
    .await;
}

#[tokio::test]
async fn before_a_pod_was_made_everything_may_change() {
    e2e(async |world| {
        let it = a_box("free")
            .image("127.0.0.1:1/none:1")
            .runs(["false"])
            .active_deadline_seconds(1)
            .stopped(true)
            .create(world)
            .await?;
        it.is(State::Pending).await?;
        it.change(json!({
            "image": "busybox",
            "command": ["sh", "-c", "exit $CODE"],
            "env": [{"name": "CODE", "value": "4"}],
            "activeDeadlineSeconds": 600,
            "template": {"metadata": {"labels": {"changed": "yes"}}},
        }))
        .await?;
        let still = it.get().await?;
        assert!(still.status.is_some_and(|status| status.run.is_none()));
        it.change(json!({"stopped": false})).await?;
        let status = it.ends_as(State::Exited, Reason::Exit).with_code(4).await?;
        let seen = status
            .observed_generation
            .context("no observedGeneration")?;
        assert!(seen >= 3, "{seen}");
        Ok(())
    })
    .await;
}
