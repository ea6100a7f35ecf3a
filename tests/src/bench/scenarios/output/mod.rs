//! What boxes write, on the real node: from the runtime's log files through the collector, the archive
//! and the log API to clients that follow through the API server.
//!
//! Lines carry the time at which they were written, and are timed by the same clock of this machine
//! when a client has them. All boxes of a part begin at once, when they run and are followed.

mod clock;
mod cost;
mod crowd;
mod fast;
mod follower;
mod gate;
mod idle;
mod part;
mod saved;
mod writer;

use anyhow::Result;

use super::super::run::Bench;

pub(super) async fn run(bench: &mut Bench) -> Result<()> {
    idle::run(bench).await?;
    crowd::beside_a_noisy_one(bench).await?;
    crowd::of_100(bench).await?;
    fast::run(bench).await
}
