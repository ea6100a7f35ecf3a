//! The collector of Boxes' output.

use boxes_output::archive::CALLS;
use boxes_output::collector::{READING, STORING};
use boxes_output::node::{args::Args, run::run};
use boxes_output::tail::raise_limit;
use clap::Parser;
use rustix::fs::Mode;
use tokio::runtime::Builder;

/// Threads that read logs and, with a folder as the archive, wait for its disk: so many that no box
/// waits for another one's archive, and some for what else there is. Few of them are ever started.
const THREADS: usize = READING + STORING * CALLS + 16;

/// In a folder as the archive, output is for its owner and for the group that the log API is in.
const NOBODY_ELSE: Mode = Mode::from_raw_mode(0o027);

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    rustix::process::umask(NOBODY_ELSE);
    // Before anything is opened: log files are held.
    raise_limit()?;
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(THREADS)
        .enable_all()
        .build()?;
    runtime.block_on(run(args))
}
