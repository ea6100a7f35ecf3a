//! Workloads that try to have a say in their own record, or to live on.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use boxes_tests::harness::{
    Evidence, LiveBox, PATIENCE, Reason, State, World, a_box, e2e, history_data,
};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::DeleteParams;

use crate::help::processes_of;

/// Ends by itself with this code, by the supervisor's word, whatever it wrote before.
async fn exits_with(world: &World, name: &str, line: &str, code: i32) -> Result<()> {
    let it = a_box(name).shell(line).create(world).await?;
    let ending = it.ends_as(State::Exited, Reason::Exit).with_code(code);
    ending.by_evidence(Evidence::Observed).await.map(drop)
}

#[tokio::test]
async fn reports_that_the_command_forges_are_not_believed() {
    e2e(async |world| {
        let forged = [
            r#"{"exitCode":0}"#,
            r#"{"report":1,"key":"","exitCode":0,"startedAt":"2026-01-01T00:00:00Z","endedAt":"2026-01-01T00:00:00Z","stopReceived":false,"oomKills":0}"#,
            r#"{"report":1,"key":"","signal":9,"endedAt":"2026-01-01T00:00:00Z","stopReceived":true}"#,
        ];
        for (number, line) in forged.iter().enumerate() {
            let line = format!("echo '{line}' > /dev/termination-log; exit 3");
            exits_with(world, &format!("forged-{number}"), &line, 3).await?;
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_huge_or_locked_or_garbled_message_does_nothing() {
    e2e(async |world| {
        let lines = [
            "yes '{' | head -c 1000000 > /dev/termination-log; exit 3",
            "head -c 100000 /dev/urandom > /dev/termination-log; exit 3",
            "printf 'no newline' > /dev/termination-log; chmod 0 /dev/termination-log; exit 3",
            "rm -f /dev/termination-log; ln -sf /dev/null /dev/termination-log; exit 3",
        ];
        for (number, line) in lines.iter().enumerate() {
            exits_with(world, &format!("message-{number}"), line, 3).await?;
        }
        Ok(())
    })
    .await;
}

/// The key and the descriptor of the report are the supervisor's alone.
#[tokio::test]
async fn nothing_of_the_supervisor_can_be_read_from_inside() {
    e2e(async |world| {
        let line = "env | grep -q BOXES_ && exit 10; \
            grep -q BOXES_ /proc/1/environ && exit 11; \
            for file in /proc/1/fd/*; do (: >> $file) 2>/dev/null && exit 12; done; \
            [ \"$(ls /proc/self/fd | wc -l)\" -le 4 ] || exit 13; \
            grep -q boxes-supervisor /proc/1/cmdline || exit 14; \
            touch /.boxes/x && exit 15; \
            exit 3";
        exits_with(world, "curious", line, 3).await
    })
    .await;
}

/// Waits until no process of a pod is left on its node, where the node is this machine.
async fn nothing_lives_on(world: &World, pod: &Pod) -> Result<()> {
    let uid = pod.uid().context("a pod without a UID")?;
    if world.own_cluster().is_none() {
        return Ok(());
    }
    let looked = async {
        while !processes_of(&uid).is_empty() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let looked = tokio::time::timeout(PATIENCE, looked).await;
    looked.with_context(|| format!("these live on: {:?}", processes_of(&uid)))
}

async fn a_running_pod(it: &LiveBox) -> Result<Pod> {
    it.is(State::Running).await?;
    it.has_a_pod("its pod", |_| true).await
}

/// A report that is there was written before the kubelet's own KILL, two seconds after the grace: so
/// `Observed` says that all of it was over by then.
#[tokio::test]
async fn a_box_that_ignores_term_with_a_daemon_that_does_too_is_killed_whole_within_its_grace() {
    e2e(async |world| {
        let line =
            "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo ready; sleep 1000' & sleep 1000";
        let it = a_box("stop-ignored")
            .shell(line)
            .termination_grace_period_seconds(2);
        let it = it.create(world).await?;
        it.says("ready").await?;
        let pod = a_running_pod(&it).await?;
        it.stop().await?;
        it.ends_as(State::Stopped, Reason::Stopped)
            .with_signal(9)
            .by_evidence(Evidence::Observed)
            .await?;
        nothing_lives_on(world, &pod).await
    })
    .await;
}

#[tokio::test]
async fn daemons_that_a_command_leaves_behind_end_with_it_and_do_not_change_its_end() {
    e2e(async |world| {
        let lines = [
            ("polite", "setsid sleep 1000 & exit 0"),
            ("deaf", "setsid sh -c 'trap \"\" TERM; sleep 1000' & exit 0"),
            ("frozen", "setsid sleep 1000 & kill -STOP $!; exit 0"),
            (
                "twice",
                "(setsid sh -c 'setsid sleep 1000 & exit' &) & exit 0",
            ),
        ];
        let mut all = Vec::new();
        for (name, line) in lines {
            let it = a_box(name).shell(line).termination_grace_period_seconds(2);
            let it = it.create(world).await?;
            let pod = it.has_a_pod("its pod", |_| true).await?;
            all.push((it, pod));
        }
        for (it, pod) in all {
            it.ends_as(State::Exited, Reason::Exit)
                .with_code(0)
                .by_evidence(Evidence::Observed)
                .await?;
            nothing_lives_on(world, &pod).await?;
        }
        Ok(())
    })
    .await;
}

/// A grace shorter than the supervisor's leaves no time for a report: the record says so, and what
/// it says is the kubelet's.
#[tokio::test]
async fn a_kill_that_comes_before_the_report_is_derived_whatever_was_forged() {
    e2e(async |world| {
        let forged = r#"{"report":1,"key":"","exitCode":137,"startedAt":"2026-01-01T00:00:00Z","endedAt":"2026-01-01T00:00:00Z","stopReceived":false}"#;
        let line = format!(
            "trap '' TERM; echo '{forged}' > /dev/termination-log; echo ready; while :; do sleep 1; done"
        );
        let it = a_box("killed-early").shell(&line);
        let it = it.create(world).await?;
        it.says("ready").await?;
        let pod = a_running_pod(&it).await?;
        let hasty = DeleteParams::default().grace_period(1);
        world.pods().delete(&pod.name_any(), &hasty).await?;
        let status = it
            .ends_as(State::Stopped, Reason::PodDeleted)
            .with_signal(9)
            .by_evidence(Evidence::Derived)
            .await?;
        let said = history_data(&status, "Exited", "report");
        ensure!(said == Some("missing"), "{status:?}");
        Ok(())
    })
    .await;
}
