//! What new connections of a port depend on.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tripod_gateway::{ConnectionLimits, Connections, Contact, Full};
use tripod_proto::code::Code;

/// What the ports of a process share.
#[derive(Debug, Clone)]
pub struct Doorway {
    /// Whether the node is in contact with the others.
    pub contact: Contact,
    /// Counts connections, on all ports together.
    pub connections: Connections,
    /// When it was last said that there is no place.
    told: Arc<Mutex<Option<Instant>>>,
}

/// Between two words to the operator that there is no place.
const WORD_EVERY: Duration = Duration::from_secs(10);

impl Doorway {
    /// One that lets everybody in.
    #[must_use]
    pub fn open() -> Self {
        Self::new(Contact::never_lost(), Connections::new(ConnectionLimits::none()))
    }

    /// One with these.
    #[must_use]
    pub fn new(contact: Contact, connections: Connections) -> Self {
        Self { contact, connections, told: Arc::default() }
    }

    /// Says that there was no place, unless it was said a moment ago.
    pub(super) fn tell(&self, full: Full) {
        let mut told = self.told.lock();
        if told.is_none_or(|told| told.elapsed() >= WORD_EVERY) {
            *told = Some(Instant::now());
            let refused = self.connections.refused();
            tracing::warn!(refused, "{}: {full}; a new connection was closed", Code::ConnectionsFull);
        }
    }
}
