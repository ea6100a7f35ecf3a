//! The collector of Boxes' output.

use boxes_output::node::{args::Args, run::run};
use clap::Parser;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    run(Args::parse()).await
}
