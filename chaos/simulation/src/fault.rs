//! What may be done to a cluster.

use std::fmt;

/// Whom a fault hits, decided when it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Victim {
    /// Whoever leads; without a leader, the first node.
    Leader,
    /// One node, by its place.
    Node(usize),
}

/// A fault. Each lasts for a while and is then undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Power is lost, and with it what was not synced. Nobody hears of it: connections are not reset, and none is
    /// refused.
    PowerCut(Victim),
    /// The process ends; the system keeps what it was given, resets its connections and refuses others.
    Kill(Victim),
    /// Power is lost everywhere at once.
    PowerCutOfAll,
    /// A node hears nobody and is heard by nobody.
    Isolate(Victim),
    /// A node is heard by nobody, but hears all.
    Mute(Victim),
    /// A node hears nobody, but is heard by all.
    Deaf(Victim),
    /// The two halves cannot reach each other, but one node reaches both.
    Bridge(Victim),
    /// The cluster falls in two.
    Split,
    /// The clients reach only this node.
    ClientsSee(Victim),
    /// Messages to and from a node are kept back, and all come when it is over: a node that stood still.
    Hold(Victim),
    /// The leader's connections to other nodes are reset, and new ones refused, while its process lives and clients reach
    /// it. When another one has led for a while, those to all but that one come back: it may ask whether it still leads, and
    /// has not heard that it does not.
    StaleLeader,
    /// Messages to and from a node take so many milliseconds.
    Slow(Victim, u64),
    /// Of a thousand messages between nodes so many are lost, and with each the connection.
    Lossy(u64),
    /// Every sync of a node's disk takes so many milliseconds longer.
    SlowDisk(Victim, u64),
    /// A node's clock jumps by so many milliseconds, and back.
    ClockJump(Victim, i64),
}

impl Fault {
    /// The kind, as reports count it.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::PowerCut(_) => "power-cut",
            Self::Kill(_) => "kill",
            Self::PowerCutOfAll => "power-cut-of-all",
            Self::Isolate(_) => "partition-isolate",
            Self::Mute(_) | Self::Deaf(_) => "partition-one-way",
            Self::Bridge(_) => "partition-bridge",
            Self::Split => "partition-split",
            Self::ClientsSee(_) => "partition-clients",
            Self::Hold(_) => "hold",
            Self::StaleLeader => "stale-leader",
            Self::Slow(..) => "slow-link",
            Self::Lossy(_) => "loss",
            Self::SlowDisk(_, ms) if ms >= 800 => "stalled-disk",
            Self::SlowDisk(..) => "slow-disk",
            Self::ClockJump(..) => "clock-jump",
        }
    }

    /// Whether it is done to the network.
    pub(crate) fn is_of_network(self) -> bool {
        !matches!(
            self,
            Self::PowerCut(_)
                | Self::Kill(_)
                | Self::PowerCutOfAll
                | Self::SlowDisk(..)
                | Self::ClockJump(..)
        )
    }

    pub(crate) fn victim(self) -> Option<Victim> {
        match self {
            Self::PowerCut(victim)
            | Self::Kill(victim)
            | Self::Isolate(victim)
            | Self::Mute(victim)
            | Self::Deaf(victim)
            | Self::Bridge(victim)
            | Self::ClientsSee(victim)
            | Self::Hold(victim)
            | Self::Slow(victim, _)
            | Self::SlowDisk(victim, _)
            | Self::ClockJump(victim, _) => Some(victim),
            Self::PowerCutOfAll | Self::Split | Self::StaleLeader | Self::Lossy(_) => None,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}
