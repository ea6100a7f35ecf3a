//! The log format of container runtimes: `<time> <stream> <tags> <content>`, a line each.
//!
//! The tag `F` ends a line of the command's, `P` does not: it goes on in the stream's next line of
//! the log. Content is any bytes but a newline.
//!
//! What containerd 2.4 makes of the command's bytes (its `internal/cri/io/logger.go`):
//!
//! - It cuts lines at 16 KiB, by its default, and tags the parts `P`.
//! - A last line without a newline is tagged `P`, so its missing newline can be told, at the end and
//!   where a rotation cuts a line in two. An empty rest is not logged.
//! - **It drops the `\r` of `\r\n`.** One carriage return directly before a newline is in no log and
//!   cannot be told from one that was never written. A terminal makes `\r\n` of every newline, so for
//!   a box with a terminal this gives back what the command wrote; for any other box it is the one
//!   way in which what is saved can differ from what was written without a gap that says so.
//! - When the disk is full it drops what it cannot write, and may leave a line cut off in the middle
//!   of a file: that line and the next one then look like one. Where they show, they are gaps.

mod head;
mod parser;

pub use head::head;
pub use parser::{Parser, Sink};
