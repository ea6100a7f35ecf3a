//! How output is asked for.

use anyhow::{Context, Result, ensure};
use boxes_crds::OutputState;
use boxes_tests::harness::{LiveBox, State, World, a_box, e2e};
use futures::AsyncBufReadExt;
use kube::discovery::Discovery;

async fn saved(world: &World, name: &str, line: &str) -> Result<LiveBox> {
    let it = a_box(name).shell(line).create(world).await?;
    it.has_output(OutputState::Saved).await?;
    Ok(it)
}

#[tokio::test]
async fn the_parameters_are_those_of_a_pods_log() {
    e2e(async |world| {
        let line = "for i in 1 2 3 4; do echo line-$i; done; sleep 2; echo line-5";
        let it = saved(world, "parameters", line).await?;
        let output = it.output();
        ensure!(output.text("tailLines=2").await? == "line-4\nline-5\n");
        ensure!(output.text("tailLines=0").await?.is_empty());
        ensure!(output.text("limitBytes=8").await? == "line-1\nl");
        let stamped = output.text("timestamps=true&tailLines=1").await?;
        let (time, text) = stamped.split_once(' ').context("no time")?;
        ensure!(text == "line-5\n");
        let time: jiff::Timestamp = time.parse()?;
        let since = format!("sinceTime={time}");
        ensure!(output.text(&since).await? == "line-5\n");
        for (query, code) in [
            ("tailLines=x", 400),
            ("stream=three", 400),
            ("previous=true", 400),
        ] {
            ensure!(output.refused(query).await? == code, "{query}");
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn kubectl_reads_it() {
    e2e(async |world| {
        let it = saved(world, "by-kubectl", "echo hello; echo there >&2").await?;
        let said = world
            .kubectl()?
            .run(["get", "--raw", it.output().path()])
            .await?
            .ok()?;
        ensure!(
            said == "hello\nthere\n" || said == "there\nhello\n",
            "{said:?}"
        );
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_client_that_was_cut_off_goes_on_where_it_was() {
    e2e(async |world| {
        let line = "for i in 1 2 3; do echo line-$i; done; sleep 4; echo line-4";
        let it = a_box("resumed").shell(line).create(world).await?;
        let (output, mut seen) = (it.output(), String::new());
        let mut follower = output.open("follow=true").await?;
        while !seen.ends_with("line-2\n") {
            ensure!(follower.read_line(&mut seen).await? > 0, "{seen:?}");
        }
        drop(follower);
        let on = format!(
            "follow=true&uid={}&from=0&skipBytes={}",
            it.uid(),
            seen.len()
        );
        seen.push_str(&output.text(&on).await?);
        ensure!(seen == "line-1\nline-2\nline-3\nline-4\n", "{seen:?}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_name_that_becomes_another_boxs_never_gives_the_output_of_the_first() {
    e2e(async |world| {
        let first = saved(world, "twice", "echo first").await?;
        ensure!(first.output().text("").await? == "first\n");
        first.delete().await?;
        first.is_gone().await?;
        ensure!(first.output().refused("").await? == 404);
        let second = saved(world, "twice", "echo second").await?;
        ensure!(second.output().text("").await? == "second\n");
        let of_the_first = format!("uid={}", first.uid());
        ensure!(second.output().refused(&of_the_first).await? == 409);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_box_that_never_ran_has_no_output_and_a_follower_comes_to_an_end() {
    e2e(async |world| {
        let it = a_box("never")
            .image("127.0.0.1:1/none:1")
            .start_deadline_seconds(3)
            .create(world)
            .await?;
        it.is(State::Stopped).await?;
        it.has_output(OutputState::Saved).await?;
        ensure!(it.output().text("follow=true").await?.is_empty());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_group_is_found_with_the_log_alone_and_boxes_stay_ours() {
    e2e(async |world| {
        let discovery = Discovery::new(world.client()).filter(&["output.boxes.run"]);
        let found = discovery.run().await?;
        let group = found.groups().next().context("the group is not found")?;
        let top: Vec<_> = group.recommended_resources();
        ensure!(top.is_empty(), "{top:?}");
        let path = "/apis/output.boxes.run/v1alpha1";
        let list = world.kubectl()?.run(["get", "--raw", path]).await?.ok()?;
        let list: serde_json::Value = serde_json::from_str(&list)?;
        let all = list["resources"].as_array().context("no resources")?;
        ensure!(all.len() == 1 && all[0]["name"] == "boxes/log", "{all:?}");
        ensure!(all[0]["verbs"] == serde_json::json!(["get"]), "{all:?}");
        let said = world.kubectl()?.run(["get", "boxes", "-o", "name"]).await?;
        ensure!(said.ok().is_ok(), "kubectl get boxes");
        Ok(())
    })
    .await;
}
