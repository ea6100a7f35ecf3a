//! `make bench`: what Boxes costs and how fast it is, on a real control plane.
//!
//! The controller runs as a process of this machine, with the rights that the chart gives it, so that
//! its CPU time and memory can be read from `/proc`; so do kwok, which plays nodes and their kubelets,
//! and the cluster itself. What is seen of Boxes and pods is seen by watches of this program, and
//! timed by its own monotonic clock. `docs/performance.md` says how each figure is taken.
//!
//! Guarantees: whatever a scenario made is removed and the cluster's own controller runs again, also
//! after an error and after Ctrl-C; what a killed run left is removed by the next.

mod audit;
mod child;
mod cleanup;
mod cluster_access;
mod controller;
mod figures;
mod installed;
mod kubeconfig;
mod kwok;
mod life;
mod load;
mod manifest;
mod meter;
mod observer;
mod processes;
mod report;
mod run;
mod scenarios;
mod stats;
mod table;

pub use run::{Options, run};
pub use scenarios::Scenario;
