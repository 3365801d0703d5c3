//! Why a node was not told something.

use std::io;

use tripod_dial::Refused;

use crate::wire::Broken;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failed {
    /// By the rules about whom a node connects to. The text has a code of its own.
    #[error("{0}")]
    Refused(Refused),
    #[error("there is no connection: {0}")]
    Unreached(io::Error),
    /// Whether the node has heard what was sent last is not known.
    #[error("the connection is lost: {0}")]
    Lost(#[from] io::Error),
    #[error("{0}")]
    Broken(#[from] Broken),
    /// The node answers what it was not asked.
    #[error("{count} answers came that nobody waits for")]
    Unasked { count: u32 },
    #[error("it did not take what was sent within {seconds} s")]
    Untaken { seconds: u64 },
    /// The connection is there, and no answer comes.
    #[error("it has not answered for {seconds} s")]
    Silent { seconds: u64 },
}

impl Failed {
    /// What came of connecting.
    pub(super) fn to_connect(error: io::Error) -> Self {
        let refused = error.get_ref().and_then(|cause| cause.downcast_ref::<Refused>());
        match refused {
            Some(refused) => Self::Refused(refused.clone()),
            None => Self::Unreached(error),
        }
    }

    /// Whether another attempt at once is worth it, if the connection was an old one: its other end may have gone while
    /// nothing was said.
    pub(crate) fn may_be_old(&self) -> bool {
        matches!(self, Self::Lost(_))
    }
}
