//! What is done around the ops of one frame while each of them begins, and around those that go on together.

use std::fmt;
use std::sync::Arc;

type Around = dyn Fn(usize, &mut dyn FnMut()) + Send + Sync;

/// Whatever collects what the ops of one frame propose while they begin, or those that were woken as they go on, on the thread
/// that polls them, and proposes it together. It must call what it is given once, and is told how many of the ops bear a stamp
/// and so propose something; others may, too. Cheap to clone.
#[derive(Clone)]
pub struct Gather(Arc<Around>);

impl Gather {
    #[must_use]
    pub fn new(around: impl Fn(usize, &mut dyn FnMut()) + Send + Sync + 'static) -> Self {
        Self(Arc::new(around))
    }

    pub(super) fn around(&self, stamped: usize, begin: &mut dyn FnMut()) {
        (self.0)(stamped, begin);
    }
}

impl Default for Gather {
    /// Nothing is collected.
    fn default() -> Self {
        Self::new(|_, begin| begin())
    }
}

impl fmt::Debug for Gather {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gather")
    }
}
