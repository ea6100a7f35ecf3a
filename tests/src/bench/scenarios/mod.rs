//! What is measured, one scenario a file.

mod burst;
mod empty;
mod neighbours;
mod output;
mod pairs;
mod restart;
mod steady;
mod supervisor;

use std::fmt;

use anyhow::Result;
use clap::ValueEnum;

use super::run::Bench;

/// A scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// The controller without a Box.
    Empty,
    /// 150 Boxes, 5 a second.
    Steady,
    /// 1,000 Boxes at once.
    #[value(name = "burst-1000")]
    Burst1000,
    /// 5,000 Boxes at once, and the controller with 5,000 finished ones.
    #[value(name = "burst-5000")]
    Burst5000,
    /// The controller's start with 5,000 finished Boxes.
    Restart,
    /// 200 Boxes among 10 that are stuck, against 200 alone.
    Neighbours,
    /// 50 Boxes on the real node, each beside a bare pod.
    Pairs,
    /// What boxes write, on the real node: how soon it is seen, and what saving it costs.
    Output,
    /// The supervisor's size, memory and start.
    Supervisor,
}

impl Scenario {
    pub(super) const ALL: [Self; 9] = [
        Self::Empty,
        Self::Steady,
        Self::Burst1000,
        Self::Burst5000,
        Self::Restart,
        Self::Neighbours,
        Self::Pairs,
        Self::Output,
        Self::Supervisor,
    ];

    /// Whether the controller is measured. What does not need that is taken with the installed one.
    pub(super) fn is_of_the_controller(self) -> bool {
        match self {
            Self::Output | Self::Supervisor => false,
            Self::Empty
            | Self::Steady
            | Self::Burst1000
            | Self::Burst5000
            | Self::Restart
            | Self::Neighbours
            | Self::Pairs => true,
        }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.to_possible_value();
        f.write_str(name.as_ref().map_or("", |name| name.get_name()))
    }
}

/// Runs a scenario and adds its figures to the report.
pub(super) async fn run(scenario: Scenario, bench: &mut Bench) -> Result<()> {
    let progress = bench.progress;
    let work = async {
        match scenario {
            Scenario::Empty => empty::run(bench).await,
            Scenario::Steady => steady::run(bench).await,
            Scenario::Burst1000 => burst::of_1000(bench).await,
            Scenario::Burst5000 => burst::of_5000(bench).await,
            Scenario::Restart => restart::run(bench).await,
            Scenario::Neighbours => neighbours::run(bench).await,
            Scenario::Pairs => pairs::run(bench).await,
            Scenario::Output => output::run(bench).await,
            Scenario::Supervisor => supervisor::run(bench),
        }
    };
    progress.step(&format!("scenario {scenario}"), work).await
}
