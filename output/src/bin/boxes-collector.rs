//! The collector of Boxes' output.

use boxes_output::node::{args::Args, run::run};
use clap::Parser;
use rustix::fs::Mode;
use tokio::runtime::Builder;

/// Threads that read logs and, with a folder as the archive, wait for its disk.
const READERS: usize = 32;

/// In a folder as the archive, output is for its owner and for the group that the log API is in.
const NOBODY_ELSE: Mode = Mode::from_raw_mode(0o027);

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    rustix::process::umask(NOBODY_ELSE);
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(READERS)
        .enable_all()
        .build()?;
    runtime.block_on(run(args))
}
