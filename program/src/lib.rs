//! What the controller, the collector and the log API have in common as programs of a cluster.
//!
//! | question | file |
//! |---|---|
//! | how do log lines look, and which are written | `logging.rs` |
//! | what is answered to probes and scrapers, and over which connections | `health.rs`, `door.rs` |
//! | who does what only one should do at a time | `lease.rs` |
//! | which signals end the process | `signals.rs` |
//! | does an answer say that an object does not exist | `absence.rs` |

#![forbid(unsafe_code)]

mod absence;
mod door;
mod health;
mod lease;
mod logging;
mod signals;

pub use absence::says_absent;
pub use health::{Health, serve, text};
pub use lease::{DURATION, Election};
pub use logging::Logging;
pub use signals::asked_to_stop;
