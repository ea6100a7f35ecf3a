//! Tables: one row per row of the contract, and one per trap.

#![expect(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "rows read best with values, and a test that cannot go on fails"
)]
#![recursion_limit = "256"]

mod conditions;
mod confirmation;
mod endings;
mod fixtures;
mod manifest;
mod nodes;
mod observed;
mod orphans;
mod output;
mod reading;
mod records;
mod reported;
mod reports;
mod reserved;
mod said;
mod settling;
mod starting;
mod supervised;
mod supervision;
mod template;
mod traced;
mod traps;
mod ttl;
mod unreadable;
