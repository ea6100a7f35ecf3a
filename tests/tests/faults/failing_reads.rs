//! Reads that fail say nothing: while they do nothing is stopped, deleted, released or called ended.

use std::time::Duration;

use anyhow::{Result, ensure};
use boxes_tests::harness::{
    Fault, HostController, LiveBox, Met, Moment, Reason, State, Story, World, a_box, e2e_alone,
    tell,
};
use futures::future::try_join_all;
use kube::ResourceExt;

use crate::help::{UNTIL_TOLD, has_ended};

/// How long nothing destructive may happen.
const A_WHILE: Duration = Duration::from_secs(6);

/// The same, for each kind of failure of a list or a watch.
const A_MOMENT: Duration = Duration::from_secs(2);

const FAULTS: [(&str, Fault); 5] = [
    ("internal-error", Fault::Refused(500)),
    ("forbidden", Fault::Refused(403)),
    ("throttled", Fault::Refused(429)),
    ("bare-404", Fault::Page404),
    ("silence", Fault::Hangs),
];

async fn a_running_box(world: &World, name: String) -> Result<LiveBox> {
    let it = a_box(name).shell(UNTIL_TOLD).create(world).await?;
    it.says("ready").await?;
    it.is(State::Running).await?;
    Ok(it)
}

/// Takes the pod of a box away, with everything that held it.
async fn lose_the_pod(it: &LiveBox) -> Result<()> {
    let pod = it.has_a_pod("the pod", |_| true).await?;
    it.set_pod_finalizers(&pod, &[]).await?;
    it.force_delete_pod(&pod).await?;
    it.has_no_pod_left(&pod).await
}

/// The last status of a box that is gone.
async fn ended_and_went(story: &mut Story, it: &LiveBox) -> Result<()> {
    let gone = |moment: &&Moment| {
        let object = moment.a_box();
        moment.gone && object.is_some_and(|object| object.uid().as_deref() == Some(it.uid()))
    };
    let told = story
        .until("the box to be gone", |all| all.iter().any(|it| gone(&it)))
        .await?;
    let last = told.iter().find(gone).and_then(Moment::status);
    let seen = last.map(|status| (status.reason.as_deref(), status.exit_code));
    ensure!(
        seen == Some((Some("Stopped"), Some(0))),
        "{seen:?}: {}",
        tell(&told)
    );
    Ok(())
}

/// Whether something was taken away or called ended.
fn destroys(met: &Met) -> bool {
    met.ask.is_destructive()
}

#[tokio::test]
async fn a_read_of_one_object_that_fails_in_any_way_takes_nothing_away() {
    e2e_alone(async |world| {
        let mut story = world.story().await?;
        let controller = world.host_controller().await?;
        let for_each_fault = async |end: &str| {
            let names = FAULTS.map(|(name, _)| format!("{name}-{end}"));
            try_join_all(names.map(|name| a_running_box(world, name))).await
        };
        let (deleted, stopped, lost) = tokio::try_join!(
            for_each_fault("deleted"),
            for_each_fault("stopped"),
            for_each_fault("lost")
        )?;
        let proxy = controller.proxy();
        let namespace = world.namespace().to_owned();
        proxy.fails(move |ask| {
            let named = |(name, _): &&(&str, Fault)| ask.name.starts_with(name);
            let ours = ask.namespace == namespace && ask.verb == "get";
            let fault = FAULTS.iter().find(named).map(|(_, fault)| *fault);
            fault.filter(|_| ours)
        });
        let since = proxy.count();
        for it in &deleted {
            it.delete().await?;
        }
        for it in &stopped {
            it.stop().await?;
        }
        for it in &lost {
            lose_the_pod(it).await?;
        }
        let all_met = |met: &[Met]| {
            let failed = |it: &LiveBox| {
                met.iter()
                    .any(|met| met.fault.is_some() && met.ask.name == it.name())
            };
            deleted.iter().chain(&stopped).chain(&lost).all(failed)
        };
        proxy
            .until(since, "every box to meet its failure", all_met)
            .await?;
        let ours = |met: &Met| met.ask.namespace == world.namespace() && destroys(met);
        proxy
            .never("taken away on a read that failed", A_WHILE, ours)
            .await?;
        ensure!(!proxy.since(since).iter().any(ours), "taken away early");

        proxy.heals();
        for it in &stopped {
            it.ends_as(State::Stopped, Reason::Stopped)
                .with_code(0)
                .await?;
        }
        for it in &lost {
            it.ends_as(State::Stopped, Reason::PodLost).await?;
        }
        for it in &deleted {
            ended_and_went(&mut story, it).await?;
        }
        controller.stop().await
    })
    .await;
}

/// Starts the controller while its lists and watches of a kind fail, and sees that it takes
/// nothing away; kills it again.
async fn start_without(
    controller: &mut HostController,
    resource: &'static str,
    fault: Fault,
) -> Result<()> {
    let lists = move |verb: &str| verb == "list" || verb == "watch";
    controller
        .proxy()
        .fails(move |ask| (lists(ask.verb) && ask.resource == resource).then_some(fault));
    let since = controller.proxy().count();
    controller.start()?;
    let failed = |met: &[Met]| met.iter().any(|met| met.fault.is_some());
    let proxy = controller.proxy();
    proxy.until(since, "a list that fails", failed).await?;
    proxy
        .never("taken away without a list", A_MOMENT, destroys)
        .await?;
    ensure!(!proxy.since(since).iter().any(destroys), "taken away early");
    controller.kill().await
}

#[tokio::test]
async fn a_list_or_watch_that_fails_in_any_way_takes_nothing_away() {
    e2e_alone(async |world| {
        let mut story = world.story().await?;
        let mut controller = world.host_controller().await?;
        let kept = a_running_box(world, "kept".to_owned()).await?;
        let deleted = a_running_box(world, "deleted".to_owned()).await?;
        let stopped = a_running_box(world, "stopped".to_owned()).await?;
        let waits = a_box("waits").when_told("exit 3").create(world).await?;
        waits.is(State::Running).await?;
        controller.kill().await?;
        waits.tell().await?;
        waits.has_a_finished_pod().await?;
        deleted.delete().await?;
        stopped.stop().await?;
        for (_, fault) in FAULTS {
            for resource in ["pods", "boxes"] {
                start_without(&mut controller, resource, fault).await?;
            }
        }
        let early = story.so_far().into_iter().filter(|moment| {
            let ended = moment.a_box().is_some_and(has_ended);
            ended || moment.gone || moment.pod().is_some_and(|_| !moment.is_held_pod())
        });
        let early: Vec<_> = early.collect();
        ensure!(early.is_empty(), "{}", tell(&early));

        controller.proxy().heals();
        controller.start()?;
        waits
            .ends_as(State::Exited, Reason::Exit)
            .with_code(3)
            .await?;
        stopped
            .ends_as(State::Stopped, Reason::Stopped)
            .with_code(0)
            .await?;
        ended_and_went(&mut story, &deleted).await?;
        let status = kept.status().await?;
        ensure!(status.state.as_deref() == Some("Running"), "{status:?}");
        kept.stop().await?;
        kept.is_cleaned_up().await?;
        controller.stop().await
    })
    .await;
}

/// What was seen once is not forgotten when the watch breaks for good, and not taken for true either.
#[tokio::test]
async fn a_watch_that_breaks_under_a_running_controller_takes_nothing_away() {
    e2e_alone(async |world| {
        let controller = world.host_controller().await?;
        let it = a_running_box(world, "unwatched".to_owned()).await?;
        let proxy = controller.proxy();
        let ours = world.namespace().to_owned();
        proxy.fails(move |ask| {
            let about_pods = ask.resource == "pods" && ask.is_read();
            let here = ask.namespace.is_empty() || ask.namespace == ours;
            (about_pods && here).then_some(Fault::Refused(500))
        });
        let since = proxy.count();
        it.stop().await?;
        lose_the_pod(&it).await?;
        let failed = |met: &[Met]| {
            met.iter()
                .any(|met| met.fault.is_some() && met.ask.verb == "get")
        };
        proxy.until(since, "a read that fails", failed).await?;
        let ours = |met: &Met| met.ask.namespace == world.namespace() && destroys(met);
        proxy
            .never("taken away on a read that failed", A_WHILE, ours)
            .await?;
        proxy.heals();
        it.ends_as(State::Stopped, Reason::PodLost).await?;
        controller.stop().await
    })
    .await;
}
