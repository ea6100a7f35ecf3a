//! Properties of the rules over random lives in the model of `tests/model`.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]

#[path = "../model/mod.rs"]
mod model;

mod lives;
mod outcomes;
mod plans;
mod traces;
