//! The log API of Boxes.

use boxes_output::api::{args::Args, run::run};
use clap::Parser;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    run(Args::parse()).await
}
