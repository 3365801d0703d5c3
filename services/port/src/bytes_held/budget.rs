//! What a node holds for all of its clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tripod_proto::code::Code;

use super::account::Account;
use super::identity_share::{IdentityShare, IdentityShares};
use super::limits::{MemoryLimits, SHORT_SHARE};
use super::short::Short;

/// Between two words to the operator that memory for clients is used up.
const WORD_EVERY: Duration = Duration::from_secs(10);

/// Counts the bytes that are held for clients, on all ports together. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Budget {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    limits: MemoryLimits,
    held: AtomicU64,
    refused: AtomicU64,
    identities: IdentityShares,
    /// When it was last said that there is no room.
    told: Mutex<Option<Instant>>,
}

impl Budget {
    #[must_use]
    pub fn new(limits: MemoryLimits) -> Self {
        let (held, refused) = (AtomicU64::new(0), AtomicU64::new(0));
        let identities = IdentityShares::default();
        Self { shared: Arc::new(Shared { limits, held, refused, identities, told: Mutex::default() }) }
    }

    /// An account for a new connection.
    #[must_use]
    pub fn account(&self) -> Account {
        Account::of(self.clone())
    }

    /// What is held for those who have proved this name.
    pub(super) fn identity(&self, name: &str) -> Arc<IdentityShare> {
        self.shared.identities.of(name, self.shared.limits)
    }

    #[must_use]
    pub fn limits(&self) -> MemoryLimits {
        self.shared.limits
    }

    /// Bytes that are held now.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.shared.held.load(Ordering::Relaxed)
    }

    /// Requests and answers for which there was no room, since the start.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.shared.refused.load(Ordering::Relaxed)
    }

    /// Whether so much is held that nobody may hold for long what he does not use.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.held() > self.shared.limits.all / SHORT_SHARE
    }

    /// Holds bytes if there is room.
    pub(super) fn hold(&self, bytes: u64) -> Result<(), Short> {
        let limit = self.shared.limits.all;
        let before = self.shared.held.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > limit {
            self.release(bytes);
            return Err(Short::Node { limit });
        }
        Ok(())
    }

    /// Holds bytes that there must be room for.
    pub(super) fn hold_anyway(&self, bytes: u64) {
        self.shared.held.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn release(&self, bytes: u64) {
        self.shared.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Counts that something was refused, and says so unless it was said a moment ago.
    pub(super) fn refuse(&self, short: Short) {
        let refused = self.shared.refused.fetch_add(1, Ordering::Relaxed) + 1;
        let mut told = self.shared.told.lock();
        if told.is_none_or(|told| told.elapsed() >= WORD_EVERY) {
            *told = Some(Instant::now());
            let (held, code) = (self.held(), short.code());
            tracing::warn!(code = Code::number(code), refused, held, "{short}");
        }
    }
}
