//! The controller of Boxes: watches, asks the rules in `boxes-lifecycle`, and writes.
//!
//! `observe.rs` is the one file that reads the cluster for a decision, `apply.rs` the one that
//! writes what was decided. No rule about Boxes lives here.

#![forbid(unsafe_code)]

mod announce;
mod apply;
pub mod args;
mod cache;
mod context;
mod error;
#[cfg(test)]
mod fake;
mod health;
mod http_sender;
mod memory;
mod metrics;
mod observe;
mod orphans;
mod otlp;
#[cfg(test)]
mod pass_tests;
mod passes;
mod queue;
#[cfg(test)]
mod reading_tests;
mod reconcile;
mod requests;
#[cfg(test)]
mod retry_tests;
pub mod run;
mod spans;
mod supervision;
#[cfg(test)]
mod tls_tests;
mod traces;
#[cfg(test)]
mod tracing_tests;
mod watches;
#[cfg(test)]
mod writing_tests;
