//! A record of a newer build: shown as written, and left alone.

use std::time::Duration;

use boxes_tests::harness::{Moment, State, a_box, e2e_steady};
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::help::UNTIL_TOLD;

#[tokio::test]
async fn a_state_of_a_newer_build_stays_as_written_until_a_person_confirms_the_stop() {
    e2e_steady(async |world| {
        let it = a_box("newer").shell(UNTIL_TOLD).create(world).await?;
        it.says("ready").await?;
        it.is(State::Running).await?;
        let pod = it.has_a_pod("the pod", |_| true).await?;
        let newer = json!({"status": {"state": "Hibernating", "dream": {"depth": 3}}});
        let params = PatchParams::default();
        let boxes = world.dynamic_boxes();
        boxes
            .patch_status(it.name(), &params, &Patch::Merge(&newer))
            .await?;

        let mut story = world.story().await?;
        it.stop().await?;
        // The stop's own write is the one of generation 2; nothing follows it.
        let acted = |all: &[Moment]| all.len() > 1 || all.iter().any(|it| it.pod().is_some());
        story
            .never(
                "an unreadable box was acted on",
                Duration::from_secs(5),
                acted,
            )
            .await?;
        let raw = boxes.get(it.name()).await?;
        assert_eq!(raw.data["status"]["state"], "Hibernating");
        assert_eq!(raw.data["status"]["dream"]["depth"], 3);
        let log = world.controller().log_since(world.began()).await?;
        let about = |line: &&str| line.contains(it.uid()) && line.contains("unreadable");
        let named = log.lines().find(about).unwrap_or_default();
        let what = ["Hibernating", "dream"];
        assert!(
            what.iter().any(|word| named.contains(word)),
            "what it is is not named: {named}"
        );

        it.annotate(
            boxes_crds::CONFIRM_STOPPED_ANNOTATION,
            &pod.uid().unwrap_or_default(),
        )
        .await?;
        it.delete().await?;
        it.is_gone().await?;
        it.has_no_pod_left(&pod).await
    })
    .await;
}
