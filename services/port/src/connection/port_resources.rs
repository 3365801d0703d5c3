//! What new connections of a port depend on.

use std::sync::Arc;

use tripod_local::{ConnectionLimits, Connections, Full};
use tripod_proto::code::Code;

use super::silent::SilentConnections;
use crate::bytes_held::{Budget, MemoryLimits};
use crate::call_tally::CallTally;
use crate::calls::{Gather, StreamTally};
use crate::contact::Contact;
use crate::throttle::Throttle;

/// What the ports of a process share.
#[derive(Debug, Clone)]
pub struct PortResources {
    /// Whether the node is in contact with the others.
    pub contact: Contact,
    /// Counts connections, on all ports together.
    pub connections: Connections,
    /// Counts the bytes that are held for clients, on all ports together.
    pub memory: Budget,
    /// What is done around the ops of one frame of a stream of calls while each of them begins.
    pub gather: Gather,
    /// Counts streams of calls, on all ports together.
    pub streams: StreamTally,
    /// Counts calls, on all ports together.
    pub(crate) calls: CallTally,
    /// Those that give way when there is no permit.
    pub(crate) silent: SilentConnections,
    /// When it is said that there is no permit.
    told: Arc<Throttle>,
}

impl PortResources {
    /// One that lets everybody in.
    #[must_use]
    pub fn open() -> Self {
        Self::new(Contact::never_lost(), Connections::new(ConnectionLimits::none()))
    }

    /// One with these, and without a limit of bytes.
    #[must_use]
    pub fn new(contact: Contact, connections: Connections) -> Self {
        let memory = Budget::new(MemoryLimits::none());
        Self {
            contact,
            connections,
            memory,
            gather: Gather::default(),
            streams: StreamTally::default(),
            calls: CallTally::default(),
            silent: SilentConnections::default(),
            told: Arc::default(),
        }
    }

    /// The same with this around the ops of each frame, which all begin within it.
    #[must_use]
    pub fn gathering(self, gather: Gather) -> Self {
        Self { gather, ..self }
    }

    /// The same with streams of calls counted there.
    #[must_use]
    pub fn tallying(self, streams: StreamTally) -> Self {
        Self { streams, ..self }
    }

    /// The same with calls counted there.
    #[must_use]
    pub fn counting(self, calls: CallTally) -> Self {
        Self { calls, ..self }
    }

    /// The same with bytes counted there.
    #[must_use]
    pub fn charging(self, memory: Budget) -> Self {
        Self { memory, ..self }
    }

    /// Says that there was no permit, and which connection was closed, unless it was said a moment ago.
    pub(super) fn tell(&self, full: Full, closed: &str) {
        if self.told.note().is_some() {
            let refused = self.connections.refused();
            tracing::warn!(refused, "{}: {full}; {closed} was closed", Code::ConnectionsFull);
        }
    }
}
