//! Output through what happens to pods and collectors of a real node.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use boxes_crds::{OutputState, OutputStatus};
use boxes_tests::harness::{Collectors, LiveBox, Reason, State, a_box, e2e_alone, e2e_steady};
use serde_json::json;

/// Numbered lines, so that a hole or a repetition shows.
const COUNTING: &str = "i=0; while true; do i=$((i+1)); echo line-$i; \
    [ $((i % 100000)) = 0 ] && sleep 0.5; done";

/// So much of it that the kubelet rotates the log.
const SIZE: usize = 30_000_000;

/// How long a kubelet stands still.
const STILL: Duration = Duration::from_secs(2);

/// Numbered lines at a pace.
const SLOWLY: &str = "i=0; while true; do i=$((i+1)); echo line-$i; sleep 0.05; done";

/// The lines `line-1` to `line-n`, and the first letters of the next: what was read of `COUNTING`. The
/// number of whole lines.
fn counted(text: &str) -> Result<usize> {
    let (mut lines, all) = (0, text.lines().count());
    for (index, line) in text.lines().enumerate() {
        let expected = format!("line-{}", index + 1);
        let last = index + 1 == all && !text.ends_with('\n');
        ensure!(
            line == expected || (last && expected.starts_with(line)),
            "line {index}: {line:?}"
        );
        lines += usize::from(line == expected);
    }
    Ok(lines)
}

/// The output is final, and either whole or says what is missing.
async fn is_final(it: &LiveBox) -> Result<OutputStatus> {
    let is_final = |output: &OutputStatus| {
        OutputState::parse(&output.state).is_some_and(OutputState::is_final)
    };
    let object = it
        .wait_for("the output to be final", |object| {
            let status = object.status.as_ref();
            status
                .and_then(|status| status.output.as_ref())
                .is_some_and(is_final)
        })
        .await?;
    let output = object.status.and_then(|status| status.output);
    let output = output.context("what was just there")?;
    ensure!(
        output.state != OutputState::Unavailable.as_str(),
        "{output:?}"
    );
    ensure!(
        output.truncated == (output.state == "Partial"),
        "{output:?}"
    );
    ensure!(output.message.is_empty() != output.truncated, "{output:?}");
    Ok(output)
}

/// Waits until so much of its output can be read.
async fn has_written(it: &LiveBox, least: usize) -> Result<()> {
    use futures::AsyncReadExt;
    it.is(State::Running).await?;
    let mut follower = it.output().open("follow=true").await?;
    let mut buffer = vec![0; least];
    follower.read_exact(&mut buffer).await?;
    Ok(())
}

/// The kubelet removes the log of an evicted pod.
#[tokio::test]
async fn what_a_pod_wrote_before_it_is_evicted_for_its_disk_is_saved() {
    e2e_steady(async |world| {
        let line = format!("head -c 20000000 /dev/zero > /scratch/x & {SLOWLY}");
        let it = a_box("evicted")
            .shell(&line)
            .termination_grace_period_seconds(1)
            .volumes(json!([{"name": "scratch", "emptyDir": {"sizeLimit": "1Mi"}}]))
            .volume_mounts(json!([{"name": "scratch", "mountPath": "/scratch"}]))
            .create(world)
            .await?;
        let ended = it.wait_for("the box to be evicted", |object| {
            let status = object.status.as_ref();
            status.is_some_and(|status| status.reason.as_deref() == Some("Evicted"))
        });
        ended.await?;
        let saved = is_final(&it).await?;
        it.is_cleaned_up().await?;
        let text = it.output().text("").await?;
        ensure!(counted(&text)? > 10, "{text}");
        ensure!(usize::try_from(saved.bytes)? == text.len(), "{saved:?}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn what_was_read_of_a_pod_that_is_force_deleted_is_saved_and_the_rest_is_told() {
    e2e_steady(async |world| {
        let it = a_box("forced")
            .shell(&format!("trap '' TERM; {SLOWLY}"))
            .create(world)
            .await?;
        has_written(&it, 200).await?;
        let pod = it.has_a_pod("its pod", |_| true).await?;
        let name = pod.metadata.name.context("a pod without a name")?;
        let args = [
            "delete",
            "pod",
            &name,
            "--force",
            "--grace-period=0",
            "--wait=false",
        ];
        world.kubectl()?.run(args).await?.ok()?;
        it.wait_for("the box to end", crate::help::has_ended)
            .await?;
        let saved = is_final(&it).await?;
        it.is_cleaned_up().await?;
        let text = it.output().text("").await?;
        ensure!(counted(&text)? > 20, "{text}");
        ensure!(usize::try_from(saved.bytes)? == text.len(), "{saved:?}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn collectors_that_are_killed_again_and_again_lose_and_double_nothing_where_the_node_is_here()
{
    e2e_alone(async |world| {
        if world.own_cluster().is_none() {
            return Ok(());
        }
        let line = format!("({COUNTING}) | head -c {SIZE}; sleep 1; printf end >&2");
        let it = a_box("killed").shell(&line).create(world).await?;
        it.is(State::Running).await?;
        let collectors = Collectors::of(world);
        let mut kills = 0;
        while it.status().await?.reason.is_none() {
            kills += collectors.kill().await?;
        }
        ensure!(kills > 2, "{kills} kills");
        it.ends_as(State::Exited, Reason::Exit).with_code(0).await?;
        let saved = it.has_output(OutputState::Saved).await?;
        ensure!(
            usize::try_from(saved.bytes)? == SIZE + "end".len(),
            "{saved:?}"
        );
        let text = it.output().text("stream=stdout").await?;
        ensure!(text.len() == SIZE && counted(&text)? > 1_000_000);
        ensure!(it.output().text("stream=stderr").await? == "end");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_collector_that_comes_after_the_end_saves_it_all() {
    e2e_alone(async |world| {
        let collectors = Collectors::of(world);
        collectors.pause().await?;
        let late = async {
            let it = a_box("late")
                .shell("echo early; exit 3")
                .create(world)
                .await?;
            it.ends_as(State::Exited, Reason::Exit).with_code(3).await?;
            let waits = it.wait_for("it to say what it waits for", |object| {
                let conditions = object.status.iter().flat_map(|status| &status.conditions);
                let mut all = conditions.filter(|it| it.type_ == "CleanedUp");
                all.any(|it| it.reason == "OutputPending" && it.message.contains("collector"))
            });
            waits.await?;
            anyhow::Ok(it)
        };
        let it = late.await;
        collectors.resume().await?;
        let it = it?;
        it.has_output(OutputState::Saved).await?;
        it.is_cleaned_up().await?;
        ensure!(it.output().text("").await? == "early\n");
        Ok(())
    })
    .await;
}

/// A kubelet and a collector that start again, while the box goes on.
#[tokio::test]
async fn a_node_whose_programs_start_again_loses_and_doubles_nothing_where_the_node_is_here() {
    e2e_alone(async |world| {
        let Some(cluster) = world.own_cluster() else {
            return Ok(());
        };
        let line = "i=0; while [ $i -lt 200 ]; do i=$((i+1)); echo line-$i; sleep 0.05; done";
        let it = a_box("restarted").shell(line).create(world).await?;
        has_written(&it, 100).await?;
        let frozen = cluster.freeze("kubelet")?;
        tokio::time::sleep(STILL).await;
        drop(frozen);
        Collectors::of(world).kill().await?;
        it.ends_as(State::Exited, Reason::Exit).with_code(0).await?;
        it.has_output(OutputState::Saved).await?;
        ensure!(counted(&it.output().text("").await?)? == 200);
        Ok(())
    })
    .await;
}
