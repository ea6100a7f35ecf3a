//! What people see with kubectl.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use boxes_tests::harness::{World, a_box, e2e};
use kube::ResourceExt;

/// A table of kubectl: its head, and its one row by column.
fn table(text: &str) -> Result<(Vec<&str>, BTreeMap<&str, &str>)> {
    let mut lines = text.lines();
    let head = lines.next().context("no table")?;
    let row = lines.next().context("no row")?;
    let names: Vec<_> = head.split_whitespace().collect();
    let starts: Vec<_> = names.iter().filter_map(|name| column(head, name)).collect();
    let ends = starts.iter().skip(1).copied().chain([usize::MAX]);
    let cells = starts.iter().zip(ends).map(|(start, end)| {
        let end = end.min(row.len());
        row.get(*start..end).unwrap_or_default().trim()
    });
    Ok((names.clone(), names.into_iter().zip(cells).collect()))
}

/// Where a column begins: names may begin alike.
fn column(head: &str, name: &str) -> Option<usize> {
    let is_whole = |at: &usize| {
        let before = head[..*at].chars().last();
        let after = head[at + name.len()..].chars().next();
        before.is_none_or(char::is_whitespace) && after.is_none_or(char::is_whitespace)
    };
    head.match_indices(name).map(|(at, _)| at).find(is_whole)
}

async fn an_ended_box(world: &World) -> Result<()> {
    let it = a_box("exit-3").shell("exit 3").create(world).await?;
    it.is_cleaned_up().await.map(drop)
}

#[tokio::test]
async fn get_boxes_shows_how_it_ended() {
    e2e(async |world| {
        an_ended_box(world).await?;
        let said = world.kubectl()?.run(["get", "boxes"]).await?.ok()?;
        let (head, row) = table(&said)?;
        assert_eq!(
            head,
            ["NAME", "STATE", "REASON", "EXIT", "SIGNAL", "AGE"],
            "{said}"
        );
        let row = ["NAME", "STATE", "REASON", "EXIT", "SIGNAL"].map(|name| row[name]);
        assert_eq!(row, ["exit-3", "Exited", "Exit", "3", ""], "{said}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn get_wide_adds_where_and_when_and_a_sentence() {
    e2e(async |world| {
        an_ended_box(world).await?;
        let said = world
            .kubectl()?
            .run(["get", "boxes", "-o", "wide"])
            .await?
            .ok()?;
        let (head, row) = table(&said)?;
        assert_eq!(
            head[6..],
            ["NODE", "POD", "STARTED", "ENDED", "OUTPUT", "MESSAGE"],
            "{said}"
        );
        for name in ["NODE", "STARTED", "ENDED"] {
            assert!(
                !row[name].is_empty() && !row[name].contains('<'),
                "{name}: {said}"
            );
        }
        assert_eq!(row["POD"], "exit-3", "{said}");
        assert!(row["MESSAGE"].contains("code 3"), "{said}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_short_name_and_the_category_all_work() {
    e2e(async |world| {
        an_ended_box(world).await?;
        let kubectl = world.kubectl()?;
        let short = kubectl
            .run(["get", "bx", "exit-3", "-o", "name"])
            .await?
            .ok()?;
        assert_eq!(short.trim(), "box.boxes.run/exit-3");
        let all = kubectl.run(["get", "all"]).await?.ok()?;
        assert!(all.contains("box.boxes.run/exit-3"), "{all}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn explain_is_worth_reading() {
    e2e(async |world| {
        let kubectl = world.kubectl()?;
        let explained = |path: &'static str| {
            let kubectl = kubectl.clone();
            async move { kubectl.run(["explain", path]).await?.ok() }
        };
        let command = explained("box.spec.command").await?;
        let words: Vec<_> = command.split_whitespace().collect();
        let command = words.join(" ");
        for part in ["<[]string>", "not run in a shell", "ENTRYPOINT", "$$"] {
            assert!(command.contains(part), "no {part:?} in: {command}");
        }
        let all = explained("box.spec").await?;
        for field in [
            "activeDeadlineSeconds",
            "stopped",
            "template",
            "startDeadlineSeconds",
        ] {
            assert!(all.contains(field), "no {field} in: {all}");
        }
        let status = explained("box.status.reason").await?;
        assert!(status.contains("PodDeleted"), "{status}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn wait_for_ended_and_then_the_exit_code_make_a_pipeline() {
    e2e(async |world| {
        a_box("piped")
            .shell("sleep 1; exit 3")
            .create(world)
            .await?;
        let kubectl = world.kubectl()?;
        let wait = [
            "wait",
            "--for=condition=Ended",
            "box/piped",
            "--timeout=80s",
        ];
        kubectl.run(wait).await?.ok()?;
        let get = ["get", "box", "piped", "-o", "jsonpath={.status.exitCode}"];
        assert_eq!(kubectl.run(get).await?.ok()?, "3");
        Ok(())
    })
    .await;
}

/// The shell's own way: one file, applied twice.
#[tokio::test]
async fn applying_the_same_manifest_again_changes_nothing() {
    e2e(async |world| {
        let manifest = a_box("twice").shell("exit 3").manifest().to_string();
        let kubectl = world.kubectl()?;
        kubectl
            .run_with_input(["apply", "-f", "-"], &manifest)
            .await?
            .ok()?;
        let wait = [
            "wait",
            "--for=condition=CleanedUp",
            "box/twice",
            "--timeout=80s",
        ];
        kubectl.run(wait).await?.ok()?;
        let before = world.boxes().get("twice").await?;
        let again = kubectl
            .run_with_input(["apply", "-f", "-"], &manifest)
            .await?
            .ok()?;
        assert!(again.contains("unchanged"), "{again}");
        let diff = kubectl
            .run_with_input(["diff", "-f", "-"], &manifest)
            .await?;
        assert!(diff.success && diff.out.is_empty(), "{diff:?}");
        let after = world.boxes().get("twice").await?;
        assert_eq!(after.resource_version(), before.resource_version());
        Ok(())
    })
    .await;
}

/// What users copy must be right, whatever became of the API.
#[tokio::test]
async fn every_example_is_accepted_by_the_api_server() {
    e2e(async |world| {
        let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples");
        let kubectl = world.kubectl()?;
        let args = [
            "apply",
            "--dry-run=server",
            "--validate=strict",
            "-f",
            examples,
        ];
        let said = kubectl.run(args).await?.ok()?;
        assert!(said.contains("box.boxes.run/exit-3 created"), "{said}");
        Ok(())
    })
    .await;
}
