//! The controller of Boxes.

use boxes_controller::{args::Args, run::run};
use clap::Parser;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    run(Args::parse()).await
}
