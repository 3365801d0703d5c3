//! What this node has seen itself: elections, its own pauses, its disk, contact with the others, and calls that failed here. It
//! is no part of the state and ends with the process. Each node tells its own, by its own clock, and whoever reads several
//! compares them with that in mind.

mod ring;
mod watch;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tripod_raft::NodeSilence;
use tripod_state::ids::NodeId;

use crate::clock::Clock;
use crate::gateway::Gateway;
use crate::peers::{Channel, Peers, on};

use self::ring::Ring;
pub(crate) use self::watch::{Watched, watch};

/// Something that a node has seen, or several things of one kind and name shortly one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeEvent {
    /// Among all that the node has told, from 1.
    pub number: u64,
    /// Milliseconds since the Unix epoch by the node's own clock: of the first one, and of the last one.
    pub at_ms: u64,
    pub until_ms: u64,
    /// One of [`NodeEvent::KINDS`], or a word of a later build.
    pub kind: String,
    /// An RPC, or a node; empty: none.
    pub name: String,
    /// What is to be said of the last one.
    pub text: String,
    pub times: u64,
}

/// What a node has seen, as far as it remembers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeEventsSeen {
    /// The oldest first.
    pub events: Vec<NodeEvent>,
    /// Events so far.
    pub made: u64,
    /// What was told by an event that was there.
    pub merged: u64,
    /// Events that made room for others.
    pub dropped: u64,
    /// When the node began to remember, by its clock.
    pub began_ms: u64,
    /// Since when none of what it has seen of itself is missing, and since when none at all: what callers bring about makes room
    /// among itself.
    pub own_since_ms: u64,
    pub since_ms: u64,
}

/// A kind of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    LeaderKnown,
    LeaderGone,
    Paused,
    ContactLost,
    ContactFound,
    DiskStalled,
    DiskAnswers,
    CallsRefused,
    CallsFailed,
    CallersGone,
    ConnectionsRefused,
    TurnsGivenUp,
}

impl Kind {
    const ALL: [Self; 12] = [
        Self::LeaderKnown,
        Self::LeaderGone,
        Self::Paused,
        Self::ContactLost,
        Self::ContactFound,
        Self::DiskStalled,
        Self::DiskAnswers,
        Self::CallsRefused,
        Self::CallsFailed,
        Self::CallersGone,
        Self::ConnectionsRefused,
        Self::TurnsGivenUp,
    ];

    const fn word(self) -> &'static str {
        match self {
            Self::LeaderKnown => "leader-known",
            Self::LeaderGone => "leader-gone",
            Self::Paused => "paused",
            Self::ContactLost => "contact-lost",
            Self::ContactFound => "contact-found",
            Self::DiskStalled => "disk-stalled",
            Self::DiskAnswers => "disk-answers",
            Self::CallsRefused => "calls-refused",
            Self::CallsFailed => "calls-failed",
            Self::CallersGone => "callers-gone",
            Self::ConnectionsRefused => "connections-refused",
            Self::TurnsGivenUp => "turns-given-up",
        }
    }

    /// Whether callers can bring it about as often as they like.
    fn is_of_callers(self) -> bool {
        match self {
            Self::CallsRefused
            | Self::CallsFailed
            | Self::CallersGone
            | Self::ConnectionsRefused
            | Self::TurnsGivenUp => true,
            Self::LeaderKnown
            | Self::LeaderGone
            | Self::Paused
            | Self::ContactLost
            | Self::ContactFound
            | Self::DiskStalled
            | Self::DiskAnswers => false,
        }
    }
}

impl NodeEvent {
    /// The words for kinds, as filters know them.
    pub const KINDS: [&'static str; Kind::ALL.len()] = {
        let mut words = [""; Kind::ALL.len()];
        let mut place = 0;
        while place < words.len() {
            words[place] = Kind::ALL[place].word();
            place += 1;
        }
        words
    };
}

/// What this node has seen so far. Its lock is held for a few instructions.
pub(crate) struct NodeEvents {
    clock: Clock,
    ring: Mutex<Ring>,
}

impl NodeEvents {
    pub(crate) fn new(clock: Clock) -> Self {
        let began = clock();
        Self { clock, ring: Mutex::new(Ring::begun(began.0)) }
    }

    /// Something has happened, so many times.
    pub(crate) fn note(&self, kind: Kind, (name, text): (&str, String), times: u64) {
        let now = (self.clock)();
        self.ring.lock().add(now.0, (kind, name), text, times);
    }

    fn seen(&self) -> NodeEventsSeen {
        self.ring.lock().seen()
    }
}

/// Has a node tell what it has seen. Needs no leader.
pub(crate) fn answer(peers: &Peers, events: &Arc<NodeEvents>) {
    let events = Arc::clone(events);
    peers.handle(Channel::NODE_EVENTS, Arc::new(move |_| Ok(wire::encode(&events.seen()))));
}

impl Gateway {
    /// What that member has seen itself, or why it does not say so. Needs no leader.
    ///
    /// # Errors
    /// [`NodeSilence`].
    pub async fn node_events(&self, node: NodeId, patience: Duration) -> Result<NodeEventsSeen, NodeSilence> {
        let question = on(Channel::NODE_EVENTS, &bytes::Bytes::new());
        let answer = self.backend.ask_node(node, question, patience).await?;
        wire::decode(answer).map_err(NodeSilence::Refuses)
    }
}
