//! The controller's memory without a Box, after what it does at its start.

use std::time::Duration;

use anyhow::Result;

use super::super::run::Bench;

/// Its first minute is not over then, but its lists are in and its connections open.
const SETTLED: Duration = Duration::from_secs(5);

pub(super) async fn run(bench: &mut Bench) -> Result<()> {
    let controller = bench.fresh_controller().await?;
    tokio::time::sleep(SETTLED).await;
    let memory = controller.memory()?;
    bench
        .report
        .at_most("controller, empty: RSS", "MiB", memory.resident, 12.0);
    Ok(())
}
