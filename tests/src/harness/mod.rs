//! What end-to-end tests are written with: a cluster that all tests of a process share, namespaces of
//! their own, and words that make sentences.
//!
//! ```no_run
//! use boxes_tests::harness::{Reason, State, a_box, e2e};
//!
//! # async fn a_test() {
//! e2e(async |world| {
//!     let it = a_box("exit-3").runs(["sh", "-c", "exit 3"]).create(world).await?;
//!     it.ends_as(State::Exited, Reason::Exit).with_code(3).await?;
//!     Ok(())
//! })
//! .await;
//! # }
//! ```
//!
//! Guarantees: every wait is a watch with a deadline; a failed test panics with the Boxes, pods and
//! events of its namespace and what the controller logged about it; the namespace is removed in every
//! case; a controller that a test paused runs again before the next one that cares is let in.
//!
//! Assumptions: `KUBECONFIG` names a cluster in which Boxes is installed as `make demo` does it; and a
//! test runs on the thread that carries its name, as `#[tokio::test]` does by default.

mod access;
mod actions;
mod ask;
mod audit;
mod behind;
mod builder;
mod collectors;
mod controller;
mod dump;
mod ending;
mod host;
mod host_collector;
mod kstatus;
mod kubectl;
mod live;
mod log_api;
mod metrics;
mod node;
mod output;
mod played_log;
mod process;
mod proxy;
mod recording;
mod slots;
mod slow_registry;
mod story;
mod watch;
mod world;

pub use ask::Ask;
pub use audit::{Audit, Request};
pub use boxes_crds::{Evidence, HistoryType, Reason, State, StopCause};
pub use builder::{BUSYBOX, BoxBuilder, WAIT, a_box};
pub use collectors::Collectors;
pub(crate) use collectors::{COLLECTOR, processes};
pub use controller::{Controller, DEPLOYMENT, NAMESPACE, SERVICE_ACCOUNT, chart_arguments};
pub use ending::{ExpectedEnding, history_data};
pub use host::HostController;
pub use host_collector::HostCollector;
pub use kstatus::{Kstatus, kstatus};
pub use kubectl::{Kubectl, Said};
pub use live::LiveBox;
pub use log_api::LogApi;
pub use metrics::Metrics;
pub use node::{PlayedNode, as_new_as_ours};
pub use output::OutputReader;
pub(crate) use output::{LOG_API, OUTPUT_READER};
pub use played_log::{PlayedLog, Written};
pub use proxy::{Fault, Met, Proxy};
pub use recording::recording;
pub use slots::Slots;
pub use slow_registry::SlowRegistry;
pub use story::{Moment, Seen, Story, tell};
pub use watch::{PATIENCE, first, gone, until};
pub use world::{World, e2e, e2e_alone, e2e_steady};
