//! The collector: for each box of the node, from its log files to the archive.
//!
//! ```text
//! Assignment ─▶ Collector ─▶ one task a pod: look ─▶ read ─▶ segment ─▶ archive ─▶ manifest ─▶ Outcome
//! ```
//! - A task opens log files at once and holds them, also while the archive does not answer.
//! - Output waits in memory up to a budget that all tasks share; past it nothing is read. What is
//!   rotated away meanwhile is read later through the descriptors, up to [`crate::tail::HELD`] files
//!   a box.
//! - Every turn of a task reads a few buffers at most, and turns queue for the threads that read: a
//!   box that writes much gets no more turns than one that writes little.
//! - It has no state but what the archive holds: a new collector goes on from the last segment.

mod assignment;
mod budget;
mod collect;
mod pool;
mod retry;
mod stats;
mod turn;

#[cfg(test)]
mod tests;

pub use assignment::{Assignment, Ended, Outcome};
pub use budget::Budget;
pub use pool::{Collector, READING, STORING};
pub use stats::Stats;
