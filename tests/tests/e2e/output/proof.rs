//! What the project exists for, in one test.

use anyhow::{Context, Result, ensure};
use boxes_crds::OutputState;
use boxes_tests::harness::{
    Evidence, PATIENCE, Reason, State, WAIT, World, a_box, e2e_steady, history_data,
};
use futures::AsyncBufReadExt;
use serde_json::Value;

/// Writes on both streams in turns, slowly enough for an order between them.
fn task() -> String {
    let lines = |numbers: &str| {
        format!("for i in {numbers}; do echo out-$i; sleep 0.5; echo err-$i >&2; sleep 0.5; done")
    };
    let (before, after) = (lines("1 2 3"), lines("4 5 6"));
    format!("{before}; {WAIT}; {after}; printf last; exit 3")
}

const OUT: &str = "out-1\nout-2\nout-3\nout-4\nout-5\nout-6\nlast";
const ERR: &str = "err-1\nerr-2\nerr-3\nerr-4\nerr-5\nerr-6\n";
const BOTH: &str = "out-1\nerr-1\nout-2\nerr-2\nout-3\nerr-3\n\
    out-4\nerr-4\nout-5\nerr-5\nout-6\nerr-6\nlast";

/// The lines of a log in JSON that name this Box and say this.
fn lines(log: &str, world: &World, name: &str, message: &str) -> Vec<Value> {
    let all = log
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    all.filter(|line: &Value| {
        line["namespace"] == world.namespace() && line["name"] == name && line["message"] == message
    })
    .collect()
}

/// What a process writes is in its log a moment later.
async fn five_reads_are_logged(world: &World) -> Result<()> {
    let mut reads = 0;
    let search = async {
        while reads != 5 {
            let log = world.log_of_the_log_api().await?;
            reads = lines(&log, world, "proof", "output read").len();
        }
        anyhow::Ok(())
    };
    let found = tokio::time::timeout(PATIENCE, search).await;
    found.with_context(|| format!("{reads} reads are logged, not 5"))?
}

#[tokio::test]
async fn a_cut_client_an_end_by_itself_and_the_whole_output_after_the_pod_is_gone() {
    e2e_steady(async |world| {
        let it = a_box("proof").shell(&task()).create(world).await?;
        let output = it.output();

        // A client follows from before the start, and is cut off in the middle.
        let mut seen = String::new();
        let mut follower = output.open("follow=true").await?;
        while !seen.ends_with("err-3\n") {
            let read = follower.read_line(&mut seen).await?;
            ensure!(read > 0, "the output ended too early: {seen:?}");
        }
        drop(follower);
        ensure!(BOTH.starts_with(&seen), "{seen:?}");
        it.tell().await?;

        let ended = it.ends_as(State::Exited, Reason::Exit).with_code(3);
        ended.by_evidence(Evidence::Observed).await?;
        let status = it.is_cleaned_up().await?;
        ensure!(history_data(&status, "Exited", "reason") == Some("Exit"));
        let exited = status.history.iter().find(|entry| entry.type_ == "Exited");
        ensure!(exited.context("no Exited")?.data["exitCode"] == 3);
        let run = status.run.context("no run")?;
        ensure!(
            world.pods().get_opt(&run.pod.name).await?.is_none(),
            "the pod is gone"
        );

        let saved = it.has_output(OutputState::Saved).await?;
        ensure!(
            usize::try_from(saved.bytes)? == BOTH.len() && !saved.truncated,
            "{saved:?}"
        );
        it.has_condition("OutputSaved", "True").await?;
        ensure!(history_data(&it.status().await?, "OutputSaved", "state") == Some("Saved"));

        for query in ["", "follow=true"] {
            ensure!(output.text(query).await? == BOTH);
        }
        ensure!(output.text("stream=stdout").await? == OUT);
        ensure!(output.text("stream=stderr").await? == ERR);

        let log = world.controller().log_since(world.began()).await?;
        let ends = lines(&log, world, "proof", "the box ended");
        ensure!(ends.len() == 1 && ends[0]["exit_code"] == 3, "{ends:?}");
        five_reads_are_logged(world).await
    })
    .await;
}
