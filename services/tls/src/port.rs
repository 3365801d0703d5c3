//! What a port is for.

/// A class of ports, whose connections are judged alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Port {
    /// Where the other nodes connect: only they may.
    Peer,
    /// Where clients connect, and nodes as clients.
    Client,
    /// Health, status and metrics.
    Http,
    /// Of an object store: nodes and other processes of its job.
    Store,
    /// Of a worker: only nodes.
    Worker,
}

impl Port {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Peer, Self::Client, Self::Http, Self::Store, Self::Worker];

    /// Its label in metrics and logs.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Peer => "peer",
            Self::Client => "client",
            Self::Http => "http",
            Self::Store => "store",
            Self::Worker => "worker",
        }
    }

    /// The protocol that must be agreed on.
    pub(crate) fn protocol(self) -> &'static [u8] {
        match self {
            Self::Peer | Self::Client | Self::Store | Self::Worker => b"h2",
            Self::Http => b"http/1.1",
        }
    }
}
