//! Stop, then confirm, then record, then delete. A watch of everything from the beginning on tells.

use boxes_tests::harness::{Moment, a_box, e2e, tell};

use crate::help::{end_of, has_ended};

/// The first moment of which something holds.
fn first(told: &[Moment], is: impl Fn(&Moment) -> bool) -> &Moment {
    told.iter()
        .find(|moment| is(moment))
        .unwrap_or_else(|| panic!("{}", tell(told)))
}

fn box_is_gone(all: &[Moment]) -> bool {
    all.iter()
        .any(|moment| moment.gone && moment.a_box().is_some())
}

fn pod_is_gone(all: &[Moment]) -> bool {
    all.iter()
        .any(|moment| moment.gone && moment.pod().is_some())
}

/// The last moment of the Box before a version.
fn box_before(told: &[Moment], version: u64) -> &Moment {
    let is_before = |moment: &&Moment| moment.a_box().is_some() && moment.version < version;
    told.iter()
        .rfind(is_before)
        .unwrap_or_else(|| panic!("{}", tell(told)))
}

#[tokio::test]
async fn a_deleted_box_stays_until_its_command_has_stopped_and_its_pod_is_gone() {
    e2e(async |world| {
        let mut story = world.story().await?;
        let it = a_box("deleted")
            .shell("trap 'sleep 2; exit 0' TERM; echo ready; sleep 1000 & wait")
            .create(world)
            .await?;
        it.says("ready").await?;
        it.delete().await?;
        let told = story.until("the box to be gone", box_is_gone).await?;

        let terminating = first(&told, |moment| {
            moment
                .a_box()
                .is_some_and(|it| it.metadata.deletion_timestamp.is_some())
        });
        let stopped = first(&told, |moment| {
            moment.pod().is_some_and(|pod| end_of(pod).is_some())
        });
        let pod_gone = first(&told, |moment| moment.gone && moment.pod().is_some());
        let box_gone = first(&told, |moment| moment.gone && moment.a_box().is_some());
        let order = [terminating, stopped, pod_gone, box_gone].map(|moment| moment.version);
        assert!(order.is_sorted(), "{order:?}: {}", tell(&told));

        let last = box_gone
            .status()
            .unwrap_or_else(|| panic!("{}", tell(&told)));
        assert_eq!(last.reason.as_deref(), Some("Stopped"), "{}", tell(&told));
        assert_eq!(last.exit_code, Some(0), "{last:?}");
        assert_eq!(
            last.stop.as_ref().map(|stop| stop.by.as_str()),
            Some("Delete")
        );
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_stop_is_recorded_before_the_pod_is_asked_to_stop() {
    e2e(async |world| {
        let mut story = world.story().await?;
        let it = a_box("asked")
            .shell(crate::help::UNTIL_TOLD)
            .create(world)
            .await?;
        it.says("ready").await?;
        it.stop().await?;
        let told = story.until("the pod to be gone", pod_is_gone).await?;
        let asked = first(&told, |moment| {
            let spec = moment.pod().and_then(|pod| pod.spec.as_ref());
            spec.is_some_and(|spec| spec.active_deadline_seconds == Some(1))
        });
        let as_of_then = box_before(&told, asked.version).status();
        assert!(
            as_of_then.is_some_and(|status| status.stop.is_some()),
            "{}",
            tell(&told)
        );
        let deleted = first(&told, |moment| {
            moment
                .pod()
                .is_some_and(|pod| pod.metadata.deletion_timestamp.is_some())
        });
        let pod = deleted.pod().and_then(end_of);
        assert!(pod.is_some(), "deleted before it stopped: {}", tell(&told));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_pod_is_held_from_its_creation_and_released_only_after_its_end_was_recorded() {
    e2e(async |world| {
        let mut story = world.story().await?;
        a_box("held").shell("exit 3").create(world).await?;
        let told = story.until("the pod to be gone", pod_is_gone).await?;

        let made = first(&told, |moment| moment.pod().is_some());
        assert!(made.is_held_pod(), "{}", tell(&told));
        let released = first(&told, |moment| {
            moment.pod().is_some() && !moment.is_held_pod()
        });
        let as_of_then = box_before(&told, released.version).a_box();
        assert!(as_of_then.is_some_and(has_ended), "{}", tell(&told));
        let ending = as_of_then.and_then(|it| it.status.as_ref()?.exit_code);
        assert_eq!(ending, Some(3), "{}", tell(&told));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_record_is_held_before_a_pod_exists() {
    e2e(async |world| {
        let mut story = world.story().await?;
        a_box("guarded").runs(["true"]).create(world).await?;
        let told = story
            .until("a pod", |all| all.iter().any(|it| it.pod().is_some()))
            .await?;
        let made = first(&told, |moment| moment.pod().is_some());
        let as_of_then = box_before(&told, made.version).a_box();
        let finalizers = as_of_then.and_then(|it| it.metadata.finalizers.clone());
        assert!(
            finalizers
                .unwrap_or_default()
                .iter()
                .any(|it| it == boxes_crds::BOX_FINALIZER),
            "{}",
            tell(&told)
        );
        Ok(())
    })
    .await;
}

/// In one update: at no moment is there a part of an ending.
#[tokio::test]
async fn an_ending_appears_whole_and_never_changes() {
    e2e(async |world| {
        let mut story = world.story().await?;
        let it = a_box("whole").shell("exit 3").create(world).await?;
        it.is_cleaned_up().await?;
        it.change(serde_json::json!({"stopped": true})).await?;
        it.wait_for("the change to be seen", |object| {
            let seen = object
                .status
                .as_ref()
                .and_then(|status| status.observed_generation);
            seen == object.metadata.generation && seen > Some(1)
        })
        .await?;
        it.delete().await?;
        let told = story.until("the box to be gone", box_is_gone).await?;
        for status in told.iter().filter_map(Moment::status) {
            let ending = (
                status.state.as_deref(),
                status.reason.as_deref(),
                status.exit_code,
                status.signal,
            );
            let whole = ending == (Some("Exited"), Some("Exit"), Some(3), None);
            let none = ending.1.is_none() && ending.2.is_none() && ending.0 != Some("Exited");
            assert!(whole || none, "{ending:?}: {}", tell(&told));
        }
        let ended = told
            .iter()
            .skip_while(|it| !it.a_box().is_some_and(has_ended));
        let lost = ended
            .filter_map(Moment::a_box)
            .find(|object| !has_ended(object));
        assert!(lost.is_none(), "{}", tell(&told));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_box_whose_pod_no_node_takes_is_deleted_at_once() {
    e2e(async |world| {
        let mut story = world.story().await?;
        let it = a_box("nowhere")
            .runs(["true"])
            .node_selector(serde_json::json!({"no": "such-node"}))
            .create(world)
            .await?;
        it.wait_for("the scheduler's words", |object| {
            let message = object
                .status
                .as_ref()
                .and_then(|status| status.message.as_deref());
            message.is_some_and(|text| text.contains("node"))
        })
        .await?;
        it.delete().await?;
        let told = story.until("the box to be gone", box_is_gone).await?;
        let last = first(&told, |moment| moment.gone && moment.a_box().is_some()).status();
        let reason = last.and_then(|status| status.reason.as_deref());
        assert_eq!(reason, Some("Stopped"), "{}", tell(&told));
        assert!(pod_is_gone(&told), "{}", tell(&told));
        Ok(())
    })
    .await;
}
