//! The deletion of a whole namespace always finishes, and the record comes first.

use boxes_tests::harness::{Moment, a_box, e2e, gone, tell};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::DeleteParams;

use crate::help::UNTIL_TOLD;

#[tokio::test]
async fn a_namespace_with_boxes_in_every_state_goes_and_each_is_recorded_before() {
    e2e(async |world| {
        let ended = a_box("ended").shell("exit 3").create(world).await?;
        let running = a_box("running").shell(UNTIL_TOLD).create(world).await?;
        let pending = a_box("pending")
            .runs(["true"])
            .stopped(true)
            .create(world)
            .await?;
        let pulling = a_box("pulling")
            .image("127.0.0.1:1/none:1")
            .create(world)
            .await?;
        ended.is_cleaned_up().await?;
        running.says("ready").await?;
        running.is(boxes_tests::harness::State::Running).await?;
        pending.is(boxes_tests::harness::State::Pending).await?;
        pulling
            .is(boxes_tests::harness::State::Materializing)
            .await?;

        let mut story = world.story().await?;
        let namespaces: Api<Namespace> = Api::all(world.client());
        namespaces
            .delete(world.namespace(), &DeleteParams::default())
            .await?;
        gone(&namespaces, world.namespace(), None).await?;
        let is_end = |moment: &&Moment| moment.gone && moment.a_box().is_some();
        let told = story.until("four boxes to be gone", |all| {
            all.iter().filter(is_end).count() == 4
        });
        let told = told.await?;
        let last = |name: &str| {
            let named = |moment: &&Moment| {
                moment
                    .a_box()
                    .is_some_and(|it| it.metadata.name.as_deref() == Some(name))
            };
            let last = told.iter().rfind(named).and_then(Moment::status);
            last.and_then(|status| status.reason.clone())
        };
        assert_eq!(last("ended").as_deref(), Some("Exit"), "{}", tell(&told));
        for name in ["running", "pulling"] {
            // The namespace's deletion takes pods and Boxes alike: whichever is seen first.
            let reason = last(name).unwrap_or_default();
            assert!(
                ["PodDeleted", "Stopped"].contains(&reason.as_str()),
                "{name}: {}",
                tell(&told)
            );
        }
        assert_eq!(last("pending"), None, "{}", tell(&told));
        Ok(())
    })
    .await;
}
