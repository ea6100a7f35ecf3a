//! `spec.template`: what a Box has no field for.

use anyhow::{Context, Result};
use boxes_tests::harness::{LiveBox, Reason, State, World, a_box, e2e};
use kube::ResourceExt;
use serde_json::{Value, json};

#[tokio::test]
async fn labels_annotations_and_pod_fields_reach_the_pod() {
    e2e(async |world| {
        let it = a_box("extended")
            .shell("sleep 1; grep -q archive /etc/hosts && [ -e /data/made ] && exit 7")
            .volumes(json!([{"name": "data", "emptyDir": {}}]))
            .volume_mounts(json!([{"name": "data", "mountPath": "/data"}]))
            .template(json!({
                "metadata": {"labels": {"team": "reports"}, "annotations": {"note": "kept"}},
                "spec": {
                    "hostAliases": [{"ip": "10.0.0.7", "hostnames": ["archive"]}],
                    "initContainers": [{
                        "name": "prepare",
                        "image": "busybox",
                        "command": ["touch", "/data/made"],
                        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                    }],
                },
            }))
            .create(world)
            .await?;
        let pod = it.has_a_pod("the pod", |_| true).await?;
        assert_eq!(
            pod.labels().get("team").map(String::as_str),
            Some("reports")
        );
        assert_eq!(
            pod.annotations().get("note").map(String::as_str),
            Some("kept")
        );
        it.ends_as(State::Exited, Reason::Exit).with_code(7).await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_box_container_is_merged_by_its_name() {
    e2e(async |world| {
        let it = a_box("merged")
            .shell("sleep 1; [ \"$FROM_TEMPLATE\" = yes ] && exit 7")
            .pod_template(&json!({"containers": [
                {"name": "box", "env": [{"name": "FROM_TEMPLATE", "value": "yes"}]},
            ]}))
            .create(world)
            .await?;
        let pod = it.has_a_pod("the pod", |_| true).await?;
        assert_eq!(pod.spec.context("no spec")?.containers.len(), 1);
        it.ends_as(State::Exited, Reason::Exit).with_code(7).await?;
        Ok(())
    })
    .await;
}

/// What a Box with a refused template says.
async fn refusal(it: &LiveBox) -> Result<String> {
    let accepted = it.has_condition("Accepted", "False").await?;
    assert_eq!(accepted.reason, "TemplateInvalid", "{}", accepted.message);
    let status = it.status().await?;
    assert_eq!(status.state.as_deref(), Some("Pending"), "{status:?}");
    assert!(status.run.is_none(), "{status:?}");
    Ok(accepted.message)
}

#[tokio::test]
async fn an_unknown_field_is_named_and_nothing_is_run() {
    e2e(async |world| {
        let it = a_box("typo")
            .pod_template(&json!({"hostAlias": []}))
            .create(world)
            .await?;
        let said = refusal(&it).await?;
        assert!(said.contains("hostAlias"), "{said}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_unknown_field_deep_inside_is_named_with_its_path() {
    e2e(async |world| {
        let side = json!({"name": "side", "image": "busybox", "comand": ["true"]});
        let it = a_box("deep")
            .pod_template(&json!({"containers": [side]}))
            .create(world)
            .await?;
        let said = refusal(&it).await?;
        assert!(
            said.contains("containers") && said.contains("comand"),
            "{said}"
        );
        Ok(())
    })
    .await;
}

/// Boxes that differ in their templates, and the word that each refusal must have in it.
async fn all_are_refused(world: &World, rows: &[(Value, &str)]) -> Result<()> {
    let mut boxes = Vec::new();
    for (number, (template, _)) in rows.iter().enumerate() {
        let name = format!("refused-{number}");
        boxes.push(
            a_box(name)
                .runs(["true"])
                .template(template)
                .create(world)
                .await?,
        );
    }
    for (it, (template, word)) in boxes.iter().zip(rows) {
        let said = refusal(it).await.with_context(|| template.to_string())?;
        assert!(said.contains(word), "{template}: {said}");
    }
    let pods = world.pods().list(&kube::api::ListParams::default()).await?;
    assert!(pods.items.is_empty(), "{:?}", pods.items);
    Ok(())
}

#[tokio::test]
async fn what_a_template_may_not_set_of_the_pod_is_refused_by_name() {
    e2e(async |world| {
        let spec = |spec: Value| json!({"spec": spec});
        all_are_refused(
            world,
            &[
                (spec(json!({"restartPolicy": "Always"})), "restartPolicy"),
                (spec(json!({"restartPolicy": "OnFailure"})), "restartPolicy"),
                (
                    spec(json!({"activeDeadlineSeconds": 5})),
                    "activeDeadlineSeconds",
                ),
                (
                    spec(json!({"terminationGracePeriodSeconds": 5})),
                    "terminationGracePeriodSeconds",
                ),
                (spec(json!({"nodeName": "boxes"})), "nodeName"),
                (
                    spec(json!({"schedulingGates": [{"name": "a/b"}]})),
                    "schedulingGates",
                ),
                (
                    json!({"metadata": {"labels": {"boxes.run/box-uid": "x"}}}),
                    "boxes.run/box-uid",
                ),
                (
                    json!({"metadata": {"annotations": {"boxes.run/box": "x"}}}),
                    "boxes.run/box",
                ),
            ],
        )
        .await
    })
    .await;
}

#[tokio::test]
async fn what_a_template_may_not_set_of_containers_is_refused_by_name() {
    e2e(async |world| {
        let of_box = |field: &str, value: Value| {
            let mut container = json!({"name": "box"});
            container[field] = value;
            json!({"spec": {"containers": [container]}})
        };
        let rule = json!([{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}]);
        let side = json!({"name": "side", "image": "busybox", "restartPolicyRules": rule});
        all_are_refused(
            world,
            &[
                (of_box("command", json!(["false"])), "command"),
                (of_box("args", json!(["x"])), "args"),
                (of_box("restartPolicy", json!("Always")), "restartPolicy"),
                (of_box("restartPolicyRules", rule.clone()), "RestartAllContainers"),
                (of_box("terminationMessagePath", json!("/x")), "terminationMessagePath"),
                (
                    of_box("terminationMessagePolicy", json!("FallbackToLogsOnError")),
                    "terminationMessagePolicy",
                ),
                (json!({"spec": {"containers": [side]}}), "RestartAllContainers"),
            ],
        )
        .await
    })
    .await;
}

#[tokio::test]
async fn a_refused_template_can_be_corrected_before_a_pod_was_made() {
    e2e(async |world| {
        let it = a_box("corrected")
            .shell("exit 3")
            .pod_template(&json!({"hostAlias": []}))
            .create(world)
            .await?;
        refusal(&it).await?;
        it.change(json!({"template": null})).await?;
        it.ends_as(State::Exited, Reason::Exit).with_code(3).await?;
        it.has_condition("Accepted", "True").await?;
        Ok(())
    })
    .await;
}
