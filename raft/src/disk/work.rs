//! Who does what would hold up the runtime.

use std::io;

use crate::disk::journal::SimulatedDisk;

/// Does work that blocks.
#[derive(Debug, Clone)]
pub(crate) enum Work {
    /// A thread of the runtime's pool.
    Threads,
    /// The caller, at once. What it asked of this disk takes its time afterwards.
    Inline(SimulatedDisk),
}

impl Work {
    /// Whether the caller does it.
    pub(crate) fn is_inline(&self) -> bool {
        matches!(self, Self::Inline(_))
    }

    /// Does it, or has it done soon; nobody waits for it.
    pub(crate) fn detach(&self, work: impl FnOnce() + Send + 'static) {
        match (self, tokio::runtime::Handle::try_current()) {
            (Self::Threads, Ok(runtime)) => drop(runtime.spawn_blocking(work)),
            // Outside of a runtime there is nothing to hold up.
            _ => work(),
        }
    }

    /// Does it, and waits for what it asked of the disk.
    ///
    /// # Errors
    /// The work panicked.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        match self {
            Self::Threads => tokio::task::spawn_blocking(work).await.map_err(io::Error::other),
            Self::Inline(disk) => {
                let done = work();
                disk.settle().await;
                Ok(done)
            }
        }
    }
}
