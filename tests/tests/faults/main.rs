//! End-to-end tests of what goes wrong: the controller is killed, the API fails, nodes are lost, records
//! are of another build. As those of the target `e2e`, on a real cluster; here most tests take the
//! controller for themselves, and the others need nothing of it but that it works again soon.
//!
//! `make test` runs them after the others: `cargo test -p boxes-tests --test faults -- --test-threads 8`.

mod collected;
mod crash;
mod failing_reads;
mod failing_writes;
mod help;
mod kubelet;
mod log_api;
mod lost_node;
mod output;
mod strangers;
mod unreadable;
