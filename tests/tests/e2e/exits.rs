//! A command that ends by itself: its status is the Box's.

use boxes_tests::harness::{Evidence, Reason, State, a_box, e2e};

#[tokio::test]
async fn a_command_that_exits_with_3_is_recorded_with_3() {
    e2e(async |world| {
        let it = a_box("exit-3")
            .shell("echo out; echo err >&2; exit 3")
            .create(world)
            .await?;
        it.ends_as(State::Exited, Reason::Exit)
            .with_code(3)
            .by_evidence(Evidence::Observed)
            .await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_command_that_succeeds_is_recorded_with_0_and_not_without_a_code() {
    e2e(async |world| {
        let it = a_box("exit-0").runs(["true"]).create(world).await?;
        it.ends_as(State::Exited, Reason::Exit).with_code(0).await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_exit_status_of_256_wraps_to_0() {
    e2e(async |world| {
        let it = a_box("exit-256").shell("exit 256").create(world).await?;
        it.ends_as(State::Exited, Reason::Exit).with_code(0).await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_highest_exit_status_is_kept() {
    e2e(async |world| {
        let it = a_box("exit-255").shell("exit 255").create(world).await?;
        it.ends_as(State::Exited, Reason::Exit)
            .with_code(255)
            .await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_own_143_is_an_exit_code_and_not_a_signal() {
    e2e(async |world| {
        let it = a_box("own-143").shell("exit 143").create(world).await?;
        it.ends_as(State::Exited, Reason::Exit)
            .with_code(143)
            .await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_own_137_under_a_memory_limit_is_an_exit_code_and_not_an_oom() {
    e2e(async |world| {
        let it = a_box("own-137")
            .shell("exit 137")
            .memory_limit("64Mi")
            .create(world)
            .await?;
        it.ends_as(State::Exited, Reason::Exit)
            .with_code(137)
            .await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn arguments_environment_and_folder_reach_the_command() {
    e2e(async |world| {
        let line = r#"[ "$PWD $NAME $0 $1" = "/tmp box first second" ] && exit 7"#;
        let it = a_box("fields")
            .runs(["sh", "-c"])
            .args([line, "first", "second"])
            .env(serde_json::json!([{"name": "NAME", "value": "box"}]))
            .working_dir("/tmp")
            .create(world)
            .await?;
        it.ends_as(State::Exited, Reason::Exit).with_code(7).await?;
        Ok(())
    })
    .await;
}
