//! How many logs are read at once: each holds a piece of output in memory and calls on the archive.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::failure::Failure;

/// Room for reads.
pub(crate) struct Slots {
    most: usize,
    most_per_user: usize,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    all: usize,
    by_user: HashMap<String, usize>,
}

/// Room for one read; given back when dropped.
pub(crate) struct Slot {
    slots: Arc<Slots>,
    user: String,
}

impl Slots {
    pub(crate) fn new(most: usize, most_per_user: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            most_per_user,
            taken: Mutex::default(),
        })
    }

    /// Takes room for a read of this user.
    pub(crate) fn take(self: &Arc<Self>, user: &str) -> Result<Slot, Failure> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.all >= self.most {
            return Err(Failure::too_many("here"));
        }
        let theirs = taken.by_user.get(user).copied().unwrap_or(0);
        if theirs >= self.most_per_user {
            return Err(Failure::too_many("by this user"));
        }
        taken.all += 1;
        taken.by_user.insert(user.to_owned(), theirs + 1);
        Ok(Slot {
            slots: self.clone(),
            user: user.to_owned(),
        })
    }

    /// How many reads there are.
    pub(crate) fn taken(&self) -> usize {
        self.taken
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .all
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self
            .slots
            .taken
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        taken.all -= 1;
        if let Some(theirs) = taken.by_user.get_mut(&self.user) {
            *theirs -= 1;
            if *theirs == 0 {
                taken.by_user.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_so_many_and_for_so_many_of_one_user() {
        let slots = Slots::new(3, 2);
        let first = slots.take("ann").ok().unwrap();
        let _second = slots.take("ann").ok().unwrap();
        assert!(slots.take("ann").is_err());
        let _third = slots.take("bob").ok().unwrap();
        assert!(slots.take("cid").is_err());
        drop(first);
        assert_eq!(slots.taken(), 2);
        assert!(slots.take("cid").is_ok());
        assert_eq!(slots.taken.lock().unwrap().by_user.len(), 2);
    }
}
