//! The tailer: reads one container's log files as they are written, rotated, compressed and removed.
//!
//! The kubelet renames `0.log` to `0.log.<time>` when it is 10 MiB or larger, has the runtime open a
//! new `0.log`, compresses what was rotated before to `0.log.<time>.gz`, and keeps five files. The
//! runtime may add to a renamed file for a moment: the part of a line that it had not finished. The
//! files of a pod that is deleted or evicted are removed at once.
//!
//! So each file is opened as soon as it is there and the descriptor is kept until all of it was
//! read: what is renamed or removed meanwhile is still read to its end. Nothing is followed that
//! leads out of the log folder.

mod folder;
mod held;
mod late;
mod limit;
mod name;
mod packed;
mod snapshot;
mod source;
mod tailer;
mod writers;

#[cfg(test)]
pub(crate) mod kubelet;
#[cfg(test)]
mod tests;

pub use folder::LogRoot;
pub use held::Sink;
pub use limit::{is_ours, raise_limit, share_of_limit};
pub use tailer::{HELD, Progress, SETTLE, Tail};
