//! What stands in the status after a life, and that it stays.

use anyhow::{Context, Result};
use boxes_crds::{BoxStatus, condition};
use boxes_tests::harness::{Evidence, Reason, State, World, a_box, e2e, e2e_steady, first, gone};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::help::{A_LIFE, history};

/// A Box that exited with 3 and was cleaned up, and the pod that it had.
async fn a_life(world: &World, name: &str) -> Result<(BoxStatus, Pod)> {
    let it = a_box(name).shell("sleep 1; exit 3").create(world).await?;
    let pod = it
        .has_a_pod("a bound pod", |pod| node_of(pod).is_some())
        .await?;
    it.ends_as(State::Exited, Reason::Exit).with_code(3).await?;
    Ok((it.is_cleaned_up().await?, pod))
}

fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

#[tokio::test]
async fn the_run_names_its_pod_and_node_and_its_times_are_in_order() {
    e2e(async |world| {
        let (status, pod) = a_life(world, "run").await?;
        let run = status.run.context("no run")?;
        assert_eq!(run.number, 1);
        assert_eq!(run.pod.name, pod.name_any());
        assert_eq!(Some(run.pod.uid.as_str()), pod.uid().as_deref());
        assert_eq!(run.node.as_deref(), node_of(&pod));
        let times = [run.scheduled_at, run.started_at, run.ended_at];
        let times: Vec<_> = times
            .into_iter()
            .map(|time| time.map(|time| time.0))
            .collect();
        assert!(times.iter().all(Option::is_some), "{times:?}");
        assert!(times.is_sorted(), "{times:?}");
        let lasted = times[2]
            .zip(times[1])
            .map(|(end, start)| end.duration_since(start));
        assert!(
            lasted.is_some_and(|lasted| (0..30).contains(&lasted.as_secs())),
            "{lasted:?}"
        );
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_history_has_every_step_in_order_and_the_code() {
    e2e(async |world| {
        let (status, _) = a_life(world, "history").await?;
        assert_eq!(history(&status), A_LIFE);
        let exited = status.history.iter().find(|entry| entry.type_ == "Exited");
        let data = Value::Object(exited.context("no Exited")?.data.clone());
        assert_eq!(data, json!({"reason": "Exit", "exitCode": 3}));
        let times: Vec<_> = status.history.iter().map(|entry| entry.time.0).collect();
        assert!(times.is_sorted(), "{times:?}");
        assert_eq!(status.history_dropped, None);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_evidence_is_the_kubelets_code_until_there_is_a_supervisor() {
    e2e(async |world| {
        let it = a_box("derived").shell("exit 3").create(world).await?;
        let ending = it.ends_as(State::Exited, Reason::Exit).with_code(3);
        ending.by_evidence(Evidence::Observed).await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_conditions_say_what_a_pipeline_and_kstatus_ask() {
    e2e(async |world| {
        let (status, _) = a_life(world, "conditions").await?;
        assert_eq!(status.observed_generation, Some(1));
        let told = |type_: &str| {
            let known = status.conditions.iter().find(|known| known.type_ == type_);
            known.map(|known| (known.status.as_str(), known.reason.as_str()))
        };
        assert_eq!(told(condition::ACCEPTED).map(|it| it.0), Some("True"));
        assert_eq!(told(condition::ENDED), Some(("True", "Exit")));
        assert_eq!(told(condition::CLEANED_UP).map(|it| it.0), Some("True"));
        assert_eq!(told(condition::RECONCILING).map(|it| it.0), Some("False"));
        assert_eq!(
            told(condition::STALLED).map(|it| it.0),
            Some("True"),
            "3 is a failure"
        );
        for known in &status.conditions {
            assert!(!known.reason.is_empty(), "{known:?}");
            assert_eq!(known.observed_generation, Some(1), "{known:?}");
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_box_that_succeeded_reads_current_and_not_failed() {
    e2e(async |world| {
        let it = a_box("current").runs(["true"]).create(world).await?;
        it.is_cleaned_up().await?;
        it.has_condition(condition::STALLED, "False").await?;
        it.has_condition(condition::RECONCILING, "False").await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_box_stays_when_its_pod_is_gone() {
    e2e(async |world| {
        let (_, pod) = a_life(world, "stays").await?;
        gone(&world.pods(), &pod.name_any(), pod.uid().as_deref()).await?;
        let there = world.boxes().get("stays").await?;
        assert!(there.metadata.deletion_timestamp.is_none());
        assert_eq!(there.status.and_then(|status| status.exit_code), Some(3));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_spec_is_as_the_user_wrote_it_after_a_whole_life() {
    e2e(async |world| {
        let asked = a_box("untouched").shell("exit 3");
        let spec = asked.manifest()["spec"].clone();
        let it = asked.create(world).await?;
        it.is_cleaned_up().await?;
        let raw = world.dynamic_boxes().get("untouched").await?;
        assert_eq!(raw.data["spec"], spec);
        assert_eq!(raw.metadata.generation, Some(1));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn generations_are_observed_also_after_the_end() {
    e2e(async |world| {
        let it = a_box("followed").runs(["true"]).create(world).await?;
        let before = it.is_cleaned_up().await?;
        it.change(json!({"ttlSecondsAfterFinished": 3600})).await?;
        let object = it
            .wait_for("the change to be observed", |object| {
                object
                    .status
                    .as_ref()
                    .and_then(|status| status.observed_generation)
                    == Some(2)
            })
            .await?;
        let after = object.status.context("no status")?;
        assert_eq!((after.history, after.run), (before.history, before.run));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_ttl_deletes_the_box_after_its_end() {
    e2e(async |world| {
        let it = a_box("brief")
            .runs(["true"])
            .ttl_seconds_after_finished(1)
            .create(world)
            .await?;
        it.ends_as(State::Exited, Reason::Exit).with_code(0).await?;
        it.is_gone().await
    })
    .await;
}

#[tokio::test]
async fn kubernetes_events_tell_the_life_too() {
    e2e_steady(async |world| {
        let (_, _) = a_life(world, "events").await?;
        let events: Api<Event> = world.api();
        for reason in ["Started", "Exited"] {
            let is_it = |event: &Event| (event.reason.as_deref() == Some(reason)).then_some(());
            first(&events, "", reason, is_it).await?;
        }
        let list = events.list(&ListParams::default()).await?;
        let about_box = |event: &&Event| {
            event
                .regarding
                .as_ref()
                .is_some_and(|it| it.kind.as_deref() == Some("Box"))
        };
        let told: Vec<_> = list.items.iter().filter(about_box).collect();
        for reason in ["Started", "Exited"] {
            let is_it = |event: &&&Event| event.reason.as_deref() == Some(reason);
            assert_eq!(told.iter().filter(is_it).count(), 1, "{reason}: {told:#?}");
        }
        Ok(())
    })
    .await;
}

/// One line, and everything in it that an operator looks for.
#[tokio::test]
async fn one_log_line_names_the_end() {
    e2e_steady(async |world| {
        let it = a_box("logged").shell("exit 3").create(world).await?;
        it.is_cleaned_up().await?;
        let log = world.controller().log_since(world.began()).await?;
        let about = |line: &&str| line.contains(it.uid()) && line.contains("the box ended");
        let lines: Vec<_> = log.lines().filter(about).collect();
        assert_eq!(lines.len(), 1, "{log}");
        let line = lines[0];
        let pairs = [
            ("namespace", world.namespace()),
            ("name", "logged"),
            ("uid", it.uid()),
            ("reason", "Exit"),
            ("exit_code", "3"),
        ];
        for (key, value) in pairs {
            assert!(
                has_field(line, key, value),
                "{key}={value} is not in {line}"
            );
        }
        Ok(())
    })
    .await;
}

/// A field of a log line, whether for people or JSON.
fn has_field(line: &str, key: &str, value: &str) -> bool {
    let forms = [
        format!("{key}={value}"),
        format!("{key}=\"{value}\""),
        format!("\"{key}\":{value}"),
        format!("\"{key}\":\"{value}\""),
    ];
    forms.iter().any(|form| line.contains(form))
}
