//! End-to-end tests: Boxes as users meet them, on a real cluster. Each module is about one promise.
//!
//! `make test` runs them on a cluster that it starts; `KUBECONFIG` may name any other one in which
//! Boxes is installed. They mostly wait, so more of them at once than there are cores is right:
//! `cargo test -p boxes-tests --test e2e -- --test-threads 8`.

mod bad_input;
mod crowded_namespace;
mod endings;
mod exits;
mod foreign_pod;
mod help;
mod hostile;
mod immutable;
mod judged;
mod kubectl;
mod limits;
mod metrics;
mod namespace;
mod never_started;
mod order;
mod output;
mod races;
mod record;
mod recordings;
mod refused;
mod restart;
mod rights;
mod said;
mod signals;
mod stop_from;
mod stops;
mod supervised;
mod taken_away;
mod template;
mod traced;
mod unreadable;
mod writes;
