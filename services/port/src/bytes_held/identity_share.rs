//! What a node holds for one identity, by whichever connections its clients came.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::limits::MemoryLimits;
use super::short::Short;

/// So many names are kept before those are looked for whose connections have gone.
const NAMES_KEPT: usize = 64;

/// The bytes of one identity: those of all of its connections together.
#[derive(Debug)]
pub(super) struct IdentityShare {
    limit: u64,
    held: AtomicU64,
}

impl IdentityShare {
    /// Holds bytes if there is room.
    pub(super) fn hold(&self, bytes: u64) -> Result<(), Short> {
        let before = self.held.fetch_add(bytes, Ordering::SeqCst);
        if before.saturating_add(bytes) > self.limit {
            self.release(bytes);
            return Err(Short::Identity { limit: self.limit });
        }
        Ok(())
    }

    /// Holds bytes that there must be room for.
    pub(super) fn hold_anyway(&self, bytes: u64) {
        self.held.fetch_add(bytes, Ordering::SeqCst);
    }

    pub(super) fn release(&self, bytes: u64) {
        self.held.fetch_sub(bytes, Ordering::SeqCst);
    }
}

/// Those of all identities that have a connection. There are no more of them than connections, of which each has a permit.
#[derive(Debug, Default)]
pub(super) struct IdentityShares {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    by_name: HashMap<Box<str>, Weak<IdentityShare>>,
    /// When there are so many names, those that have gone are forgotten: twice as many as were left the last time, so that
    /// a new name costs no look at all others.
    look_at: usize,
}

impl IdentityShares {
    /// That of a name; it lives for as long as somebody has it.
    pub(super) fn of(&self, name: &str, limits: MemoryLimits) -> Arc<IdentityShare> {
        let mut known = self.known.lock();
        if let Some(share) = known.by_name.get(name).and_then(Weak::upgrade) {
            return share;
        }
        if known.by_name.len() >= known.look_at.max(NAMES_KEPT) {
            known.by_name.retain(|_, share| share.strong_count() > 0);
            known.look_at = known.by_name.len().saturating_mul(2);
        }
        let share = Arc::new(IdentityShare { limit: limits.one_identity(), held: AtomicU64::new(0) });
        known.by_name.insert(name.into(), Arc::downgrade(&share));
        share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_have_gone_are_forgotten_and_those_that_are_there_are_not() {
        let shares = IdentityShares::default();
        let limits = MemoryLimits::of(1 << 20);
        let kept: Vec<_> = (0..100).map(|number| shares.of(&format!("kept/{number}"), limits)).collect();
        for number in 0..10_000 {
            drop(shares.of(&format!("gone/{number}"), limits));
        }
        let known = shares.known.lock().by_name.len();
        assert!(known <= 2 * kept.len() + 1, "{known} names for {} connections", kept.len());
        for (number, share) in kept.iter().enumerate() {
            assert!(Arc::ptr_eq(share, &shares.of(&format!("kept/{number}"), limits)), "{number}");
        }
    }
}
