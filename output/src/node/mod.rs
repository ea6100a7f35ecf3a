//! The collector in a cluster: which pods of this node it collects, and when it lets them go.
//!
//! The controller puts the finalizer `boxes.run/output` on a pod when it makes it. This lets go of
//! it, in one patch that also says what was saved, when the manifest is durable; or without waiting
//! when the Box, or its namespace, is being deleted.

pub mod args;
mod cluster;
mod errand;
mod health;
mod known;
mod owner;
mod patience;
mod pod;
mod pods;
mod release;
pub mod run;
mod sweep;

#[cfg(test)]
mod api_tests;
#[cfg(test)]
mod pods_tests;
