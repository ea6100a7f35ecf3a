//! The collector of Boxes' output.

use boxes_output::node::{args::Args, run::run};
use boxes_output::tail::raise_limit;
use clap::Parser;
use tokio::runtime::Builder;

/// Threads that read logs and, with a folder as the archive, wait for its disk.
const READERS: usize = 32;

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    // Before anything is opened: log files are held.
    raise_limit()?;
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(READERS)
        .enable_all()
        .build()?;
    runtime.block_on(run(args))
}
