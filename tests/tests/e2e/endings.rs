//! Ends that something else has a part in: memory, deadlines, other people, the node.

use anyhow::Context;
use boxes_crds::BoxObject;
use boxes_tests::harness::{Reason, State, a_box, e2e, e2e_alone, e2e_steady, tell};
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use crate::help::{a_second_after, end_of, ended_in_a_pause, history, report_of};

#[tokio::test]
async fn a_command_that_the_kernel_kills_for_memory_ends_as_oom() {
    e2e(async |world| {
        let it = a_box("oom")
            .runs(["dd", "if=/dev/zero", "of=/dev/null", "bs=200M", "count=1"])
            .memory_limit("32Mi")
            .create(world)
            .await?;
        let status = it
            .ends_as(State::Exited, Reason::OOM)
            .with_code(137)
            .await?;
        assert!(
            history(&status).contains(&"OOMKilled"),
            "{:?}",
            history(&status)
        );
        Ok(())
    })
    .await;
}

/// Where the kernel kills the whole group at once (cgroup v2, by the kubelet's default), there is no
/// survivor; the kubelet's code tells which it was.
#[tokio::test]
async fn an_oom_kill_that_the_command_survives_is_in_the_history_and_is_not_the_end() {
    e2e(async |world| {
        let mut story = world.story().await?;
        let it = a_box("survivor")
            .shell("dd if=/dev/zero of=/dev/null bs=200M count=1; exit 5")
            .memory_limit("32Mi")
            .create(world)
            .await?;
        let status = it.is_cleaned_up().await?;
        let told = story
            .until("the pod to be gone", |all| all.iter().any(|it| it.gone))
            .await?;
        let end = told
            .iter()
            .filter_map(|moment| moment.pod())
            .find_map(end_of);
        match end.context("the kubelet told no end")?.exit_code {
            5 => it.ends_as(State::Exited, Reason::Exit).with_code(5).await?,
            _ => {
                it.ends_as(State::Exited, Reason::OOM)
                    .with_code(137)
                    .await?
            }
        };
        assert!(
            history(&status).contains(&"OOMKilled"),
            "{:?}",
            history(&status)
        );
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_command_that_runs_past_its_deadline_ends_as_timeout_without_a_code() {
    e2e_steady(async |world| {
        let it = a_box("timeout")
            .runs(["sleep", "1000"])
            .active_deadline_seconds(2)
            .termination_grace_period_seconds(1)
            .create(world)
            .await?;
        it.ends_as(State::Exited, Reason::Timeout)
            .saying("activeDeadlineSeconds (2)")
            .await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_handler_that_exits_0_at_the_deadline_makes_it_no_success() {
    e2e_steady(async |world| {
        let it = a_box("handled-timeout")
            .shell("trap 'exit 0' TERM; sleep 1000 & wait")
            .active_deadline_seconds(2)
            .create(world)
            .await?;
        it.ends_as(State::Exited, Reason::Timeout).await?;
        Ok(())
    })
    .await;
}

/// The kubelet may well call such a pod `DeadlineExceeded`; the supervisor's report decides, and without
/// one the times of the command. On a machine so slow that the command really ran into its deadline, that is the right answer.
#[tokio::test]
async fn a_command_that_is_done_before_its_deadline_has_no_timeout() {
    e2e_steady(async |world| {
        let mut story = world.story().await?;
        let it = a_box("just-in-time")
            .shell("sleep 2; exit 0")
            .active_deadline_seconds(3)
            .create(world)
            .await?;
        it.is_cleaned_up().await?;
        let told = story
            .until("the pod to be gone", |all| all.iter().any(|it| it.gone))
            .await?;
        let pod = told
            .iter()
            .filter_map(|moment| moment.pod())
            .find(|pod| end_of(pod).is_some());
        let pod = pod.with_context(|| tell(&told))?;
        let started = pod
            .status
            .as_ref()
            .and_then(|status| status.start_time.as_ref());
        let end = end_of(pod).context("no end")?;
        let times = started.zip(end.finished_at.as_ref());
        let (started, finished) = times.context("the kubelet gave no times")?;
        let report = report_of(end).unwrap_or_default();
        let told = report["stopReceived"].as_bool();
        let late = finished.0.duration_since(started.0).as_secs() >= 3;
        if told.unwrap_or(late) {
            it.ends_as(State::Exited, Reason::Timeout).await?;
        } else {
            it.ends_as(State::Exited, Reason::Exit).with_code(0).await?;
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_image_that_never_comes_ends_the_box_at_its_start_deadline() {
    e2e(async |world| {
        let it = a_box("never")
            .image("127.0.0.1:1/none:1")
            .runs(["true"])
            .start_deadline_seconds(30)
            .create(world)
            .await?;
        let refused = |object: &BoxObject| {
            let status = object.status.as_ref();
            let message = status.and_then(|status| status.message.as_deref());
            message.is_some_and(|message| message.contains("refused"))
        };
        it.wait_for("the reason why it does not come", refused)
            .await?;
        it.ends_as(State::Stopped, Reason::StartFailed)
            .saying("127.0.0.1:1/none:1")
            .saying("refused")
            .saying("startDeadlineSeconds")
            .await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_deadline_that_passes_before_the_command_started_is_a_failed_start() {
    e2e(async |world| {
        let it = a_box("late")
            .image("127.0.0.1:1/none:1")
            .runs(["true"])
            .active_deadline_seconds(3)
            .create(world)
            .await?;
        it.ends_as(State::Stopped, Reason::StartFailed)
            .saying("activeDeadlineSeconds (3)")
            .await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_program_that_does_not_exist_is_a_failed_start_that_names_it() {
    e2e(async |world| {
        let it = a_box("no-such-program")
            .runs(["nosuch"])
            .create(world)
            .await?;
        let status = it.is_cleaned_up().await?;
        assert_eq!(status.state.as_deref(), Some("Stopped"), "{status:?}");
        assert_eq!(status.reason.as_deref(), Some("StartFailed"), "{status:?}");
        assert!(
            status
                .message
                .is_some_and(|message| message.contains("nosuch"))
        );
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_pod_that_a_person_deletes_ends_the_box_with_the_code_of_its_handler() {
    e2e(async |world| {
        let it = a_box("deleted-pod")
            .shell("trap 'exit 9' TERM; echo ready; sleep 1000 & wait")
            .create(world)
            .await?;
        it.says("ready").await?;
        let pod = it.has_a_pod("the pod", |_| true).await?;
        it.delete_pod(&pod).await?;
        it.ends_as(State::Stopped, Reason::PodDeleted)
            .with_code(9)
            .await?;
        it.has_no_pod_left(&pod).await
    })
    .await;
}

#[tokio::test]
async fn a_pod_that_is_drained_ends_the_box_as_evicted() {
    e2e(async |world| {
        let it = a_box("drained")
            .shell("trap 'exit 9' TERM; echo ready; sleep 1000 & wait")
            .create(world)
            .await?;
        it.says("ready").await?;
        let pod = it.has_a_pod("the pod", |_| true).await?;
        it.evict_pod(&pod).await?;
        it.ends_as(State::Stopped, Reason::Evicted)
            .with_code(9)
            .await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_sidecar_that_outlives_the_command_is_stopped_and_has_no_part_in_the_end() {
    e2e(async |world| {
        let side = json!({"name": "side", "image": "busybox", "command": ["sleep", "1000"]});
        let it = a_box("sidecar")
            .shell("sleep 1; exit 6")
            .termination_grace_period_seconds(1)
            .pod_template(&json!({"containers": [side]}))
            .create(world)
            .await?;
        let pod = it.has_a_pod("the pod", |_| true).await?;
        let status = it.ends_as(State::Exited, Reason::Exit).with_code(6).await?;
        assert!(
            status.stop.is_none(),
            "nobody asked for a stop: {:?}",
            status.stop
        );
        it.has_no_pod_left(&pod).await
    })
    .await;
}

#[tokio::test]
async fn a_drain_that_comes_after_the_end_changes_nothing() {
    e2e_alone(async |world| {
        let it = a_box("late-drain")
            .when_told("exit 5")
            .create(world)
            .await?;
        let (pod, end) = ended_in_a_pause(world, &it).await?;
        a_second_after(end.finished_at.as_ref()).await?;
        it.evict_pod(&pod).await?;
        world.controller().resume().await?;
        it.ends_as(State::Exited, Reason::Exit).with_code(5).await?;
        it.has_no_pod_left(&pod).await
    })
    .await;
}

#[tokio::test]
async fn a_pod_that_is_force_deleted_after_the_end_still_gives_its_evidence() {
    e2e_alone(async |world| {
        let it = a_box("forced").when_told("exit 8").create(world).await?;
        let (_, end) = ended_in_a_pause(world, &it).await?;
        a_second_after(end.finished_at.as_ref()).await?;
        let kubectl = world.kubectl()?;
        let args = [
            "delete",
            "pod",
            "forced",
            "--force",
            "--grace-period=0",
            "--wait=false",
        ];
        kubectl.run(args).await?.ok()?;
        world.controller().resume().await?;
        it.ends_as(State::Exited, Reason::Exit).with_code(8).await?;
        Ok(())
    })
    .await;
}

/// The kubelet's last word about a deleted pod moves its `deletionTimestamp` to that moment, after the
/// end of the command: that time says nothing about which came first.
#[tokio::test]
async fn a_pod_that_was_deleted_while_there_was_no_controller_is_still_seen_as_deleted() {
    e2e_alone(async |world| {
        let it = a_box("unseen-deletion")
            .shell("trap 'exit 9' TERM; echo ready; sleep 1000 & wait")
            .create(world)
            .await?;
        it.says("ready").await?;
        let pod = it.has_a_pod("the pod", |_| true).await?;
        it.is(State::Running).await?;
        world.controller().pause().await?;
        it.delete_pod(&pod).await?;
        it.has_a_pod("the kubelet's last word", |pod| {
            end_of(pod).is_some() && pod.metadata.deletion_grace_period_seconds == Some(0)
        })
        .await?;
        world.controller().resume().await?;
        it.ends_as(State::Stopped, Reason::PodDeleted)
            .with_code(9)
            .await?;
        Ok(())
    })
    .await;
}

/// The kubelet's last word about a container that was never made is `ContainerStatusUnknown`, with a
/// code that it made up and without a container: that is no command that ran.
#[tokio::test]
async fn a_deadline_before_the_start_that_nobody_saw_is_still_told_as_such() {
    e2e_alone(async |world| {
        let it = a_box("unseen-late")
            .image("127.0.0.1:1/none:1")
            .runs(["true"])
            .active_deadline_seconds(6)
            .create(world)
            .await?;
        it.is(State::Materializing).await?;
        world.controller().pause().await?;
        let told = |pod: &Pod| end_of(pod).is_some();
        it.has_a_pod("the kubelet's last word", told).await?;
        world.controller().resume().await?;
        it.ends_as(State::Stopped, Reason::StartFailed)
            .saying("activeDeadlineSeconds (6)")
            .await?;
        Ok(())
    })
    .await;
}
