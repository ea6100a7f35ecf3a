//! The supervisor as it is used: as the first process of real PID namespaces, with real process trees
//! below it. Needs root, or whatever else lets `unshare` make namespaces.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails"
)]
#![expect(
    unsafe_code,
    reason = "signals by number and ptrace are not offered safely"
)]

mod ending;
mod harness;
mod inherited;
mod installing;
mod misbehaviour;
mod processes;
mod protection;
mod reporting;
mod shared;
mod signalling;
mod starting;
mod stopping;
mod terminal;
mod tracing;
