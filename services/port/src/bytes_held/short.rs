//! Why bytes cannot be held.

use std::fmt;

use tripod_proto::code::Code;

/// There is no room. What was asked for was not begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Short {
    /// The node holds as much as it may.
    Node { limit: u64 },
    /// The node holds as much for this identity as it may, by all of its connections together.
    Identity { limit: u64 },
    /// The node holds as much for this connection as it may, and more cannot wait.
    Connection { limit: u64 },
    /// The request's bytes stopped coming, and memory is short.
    Stalled { seconds: u64 },
}

impl Short {
    /// Its page.
    #[must_use]
    pub fn code(self) -> Code {
        match self {
            Self::Node { .. } => Code::ClientMemoryFull,
            Self::Identity { .. } => Code::IdentityMemoryFull,
            Self::Connection { .. } => Code::ConnectionMemoryFull,
            Self::Stalled { .. } => Code::LeftUnfinished,
        }
    }
}

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.code();
        match self {
            Self::Node { limit } => write!(
                f,
                "{code}: this process holds {} MiB for its clients, all that it may (--client-memory-mib); try again \
                 later, or elsewhere",
                limit >> 20
            ),
            Self::Identity { limit } => write!(
                f,
                "{code}: this process holds {} MiB for all connections of this certificate's name, or of this token, all that \
                 one may (three quarters of --client-memory-mib); wait for answers before you ask for more",
                limit >> 20
            ),
            Self::Connection { limit } => write!(
                f,
                "{code}: this process holds {} MiB for this connection, all that it may (--connection-memory-mib); wait \
                 for answers before you ask for more",
                limit >> 20
            ),
            Self::Stalled { seconds } => write!(
                f,
                "{code}: nothing of the request's rest came for {seconds} s, and memory is short; send it again"
            ),
        }
    }
}

impl std::error::Error for Short {}
