//! What only a supervisor can tell: a signal from a code, a failed start from a failed command.

use boxes_tests::harness::{Evidence, ExpectedEnding, LiveBox, Reason, State, World, a_box, e2e};

/// The ending of a command that ended by itself, by its supervisor's word.
fn observed(it: &LiveBox, reason: Reason) -> ExpectedEnding<'_> {
    it.ends_as(State::Exited, reason)
        .by_evidence(Evidence::Observed)
}

async fn a_shell(world: &World, name: &str, line: &str) -> anyhow::Result<LiveBox> {
    a_box(name).shell(line).create(world).await
}

#[tokio::test]
async fn signals_that_the_command_raises_are_signals_and_name_their_number() {
    e2e(async |world| {
        for (name, number) in [("SEGV", 11), ("ABRT", 6), ("KILL", 9), ("TERM", 15)] {
            let line = format!("kill -{name} $$$$; sleep 5");
            let it = a_shell(world, &name.to_lowercase(), &line).await?;
            observed(&it, Reason::Signal)
                .with_signal(number)
                .saying(&format!("signal {number}"))
                .await?;
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn codes_that_look_like_signals_are_codes() {
    e2e(async |world| {
        for code in [139, 137, 143, 255] {
            let it = a_shell(world, &format!("own-{code}"), &format!("exit {code}")).await?;
            observed(&it, Reason::Exit).with_code(code).await?;
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_kill_of_the_first_process_from_inside_changes_nothing() {
    e2e(async |world| {
        let it = a_shell(world, "kill-1", "kill -9 1; kill -STOP 1; exit 4").await?;
        observed(&it, Reason::Exit).with_code(4).await?;
        Ok(())
    })
    .await;
}

/// Otherwise a command could give its own end the look of a stop.
#[tokio::test]
async fn a_term_to_the_first_process_from_inside_is_the_commands_and_no_stop() {
    e2e(async |world| {
        let line = "trap 'exit 6' TERM; kill -TERM 1; sleep 1000 & wait; exit 7";
        let it = a_shell(world, "term-1", line).await?;
        observed(&it, Reason::Exit).with_code(6).await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_program_that_there_is_not_is_a_failed_start_with_127_and_its_name() {
    e2e(async |world| {
        let it = a_box("nosuch").runs(["nosuch"]).create(world).await?;
        it.ends_as(State::Stopped, Reason::StartFailed)
            .with_code(127)
            .by_evidence(Evidence::Observed)
            .saying("nosuch")
            .await?;
        let own = a_shell(world, "own-127", "nosuch").await?;
        observed(&own, Reason::Exit).with_code(127).await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_file_that_is_no_program_is_a_failed_start_with_126() {
    e2e(async |world| {
        for (name, file) in [("a-file", "/etc/passwd"), ("a-folder", "/etc")] {
            let it = a_box(name).runs([file]).create(world).await?;
            it.ends_as(State::Stopped, Reason::StartFailed)
                .with_code(126)
                .by_evidence(Evidence::Observed)
                .saying(file)
                .await?;
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_kill_for_memory_is_told_from_a_kill_by_the_command_itself() {
    e2e(async |world| {
        let greedy = ["dd", "if=/dev/zero", "of=/dev/null", "bs=200M", "count=1"];
        let oom = a_box("oom").runs(greedy).memory_limit("32Mi");
        let oom = oom.create(world).await?;
        let own = a_box("own").shell("kill -KILL $$$$").memory_limit("32Mi");
        let own = own.create(world).await?;
        oom.ends_as(State::Exited, Reason::OOM)
            .with_code(137)
            .await?;
        observed(&own, Reason::Signal).with_signal(9).await?;
        Ok(())
    })
    .await;
}
