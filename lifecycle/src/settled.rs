//! Boxes about which nothing is left to do: most of those that a cluster keeps.

use boxes_crds::State;
use jiff::Timestamp;

use crate::decide::decide;
use crate::object::BoxView;
use crate::world::World;
use crate::writes::expires_at;

/// What must be remembered of a Box that asks for nothing, until it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Its final state.
    pub state: State,
    /// When it is to be deleted.
    pub expires_at: Option<Timestamp>,
}

/// Whether a Box has its ending, is cleaned up, and a decision on it proposes nothing but, perhaps,
/// its deletion at a later time.
#[must_use]
pub fn settled(object: &BoxView) -> Option<Settled> {
    let (spec, record) = object.content.as_ref().ok()?;
    let state = record.state.filter(|state| state.is_final())?;
    if object.deleting() || !record.cleaned_up() {
        return None;
    }
    // Before every time that a deletion can be due.
    let decision = decide(&World::unseen(object.clone(), Timestamp::UNIX_EPOCH));
    let asks_nothing = decision.write.is_none() && decision.status.is_none();
    asks_nothing.then(|| Settled {
        state,
        expires_at: expires_at(spec, record),
    })
}
