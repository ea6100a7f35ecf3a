//! Input that is wrong, or right and strange.

use anyhow::{Context, Result};
use boxes_tests::harness::{Reason, State, World, a_box, e2e};
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::help::has_ended;

/// What the API server says to a Box that it refuses.
async fn refusal(world: &World, field: &str, value: Value) -> Result<String> {
    let refused = a_box("wrong")
        .runs(["true"])
        .with(field, value.clone())
        .try_create(world)
        .await;
    let error = refused
        .err()
        .with_context(|| format!("{field}: {value} was accepted"))?;
    Ok(error.to_string())
}

#[tokio::test]
async fn a_box_without_an_image_is_refused_by_the_api_server_which_names_the_field() {
    e2e(async |world| {
        let said = refusal(world, "image", Value::Null).await?;
        assert!(said.contains("spec.image"), "{said}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn values_that_cannot_be_are_refused_with_the_name_of_their_field() {
    e2e(async |world| {
        let rows = [
            ("image", json!("")),
            ("image", json!(7)),
            ("command", json!("true")),
            ("activeDeadlineSeconds", json!(0)),
            ("terminationGracePeriodSeconds", json!(-1)),
            ("startDeadlineSeconds", json!(0)),
            ("ttlSecondsAfterFinished", json!(-1)),
            ("imagePullPolicy", json!("Sometimes")),
            ("stopped", json!("yes")),
            ("env", json!([{"value": "no name"}])),
        ];
        for (field, value) in rows {
            let said = refusal(world, field, value.clone()).await?;
            assert!(
                said.contains(&format!("spec.{field}")),
                "{field}: {value}: {said}"
            );
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn kubectl_refuses_an_unknown_field_by_its_name() {
    e2e(async |world| {
        let manifest = a_box("typo").with("comand", json!(["true"])).manifest();
        let kubectl = world.kubectl()?;
        let said = kubectl
            .run_with_input(["apply", "-f", "-"], &manifest.to_string())
            .await?;
        let said = said.refused()?;
        assert!(
            said.contains("unknown field") && said.contains("spec.comand"),
            "{said}"
        );
        assert!(world.boxes().get_opt("typo").await?.is_none());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_name_of_253_characters_runs_to_its_end() {
    e2e(async |world| {
        let name = format!("{}.{}", "long".repeat(32), "x".repeat(124));
        assert_eq!(name.len(), 253);
        let it = a_box(&name).shell("sleep 1; exit 3").create(world).await?;
        let pod = it.has_a_pod("the pod", |_| true).await?;
        let status = it.ends_as(State::Exited, Reason::Exit).with_code(3).await?;
        let run = status.run.context("no run")?;
        assert_eq!(Some(run.pod.uid.as_str()), pod.uid().as_deref());
        let annotation = pod.annotations().get(boxes_crds::BOX_NAME_ANNOTATION);
        assert_eq!(annotation, Some(&name), "the pod does not say whose it is");
        it.has_no_pod_left(&pod).await?;
        it.delete().await?;
        it.is_gone().await
    })
    .await;
}

#[tokio::test]
async fn two_names_that_differ_past_the_63rd_character_have_pods_of_their_own() {
    e2e(async |world| {
        let name = |end: &str| format!("{}{end}", "same".repeat(20));
        let one = a_box(name("-one"))
            .shell("sleep 2; exit 1")
            .create(world)
            .await?;
        let two = a_box(name("-two"))
            .shell("sleep 2; exit 2")
            .create(world)
            .await?;
        let one = one
            .ends_as(State::Exited, Reason::Exit)
            .with_code(1)
            .await?;
        let two = two
            .ends_as(State::Exited, Reason::Exit)
            .with_code(2)
            .await?;
        let (one, two) = one.run.zip(two.run).context("no run")?;
        assert_ne!(one.pod.name, two.pod.name);
        assert_ne!(one.pod.uid, two.pod.uid);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn names_that_are_cut_at_a_dot_or_begin_with_a_digit_run() {
    e2e(async |world| {
        let names = [
            format!("{}.{}", "a".repeat(51), "b".repeat(20)),
            "0.1-2".to_owned(),
        ];
        for name in names {
            let it = a_box(&name).shell("exit 3").create(world).await?;
            it.ends_as(State::Exited, Reason::Exit).with_code(3).await?;
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_image_that_cannot_be_pulled_is_waited_for_and_named_and_can_be_deleted() {
    e2e(async |world| {
        let it = a_box("no-image")
            .image("127.0.0.1:1/none:1")
            .runs(["true"])
            .create(world)
            .await?;
        let object = it
            .wait_for("a message about the image", |object| {
                let message = object.status.as_ref().and_then(|it| it.message.as_deref());
                message.is_some_and(|text| {
                    text.contains("127.0.0.1:1/none:1") && text.contains("refused")
                })
            })
            .await?;
        assert!(!has_ended(&object));
        let status = object
            .status
            .as_ref()
            .and_then(|status| status.state.as_deref());
        assert_eq!(status, Some("Materializing"));
        it.has_condition("Ended", "False").await?;
        let pod = it.has_a_pod("the pod", |_| true).await?;
        it.delete().await?;
        it.is_gone().await?;
        it.has_no_pod_left(&pod).await
    })
    .await;
}
