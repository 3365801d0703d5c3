//! Why a connection ends before its client ends it.

use std::io;

use prost::DecodeError;
use tripod_gateway::Outage;
use tripod_port::Short;
use tripod_proto::code::Code;

use crate::wire::{Broken, Word};

/// Neither protocol has words for it, so it is told to the log.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Ended {
    /// Nothing more can be read of it.
    #[error("{}: {}", Code::FrameBroken, .0)]
    Broken(#[from] Broken),
    /// A frame was in order, and what is in it is not.
    #[error("{}: the {what} in a frame cannot be read: {error}", Code::FrameBroken)]
    Unreadable { what: &'static str, error: DecodeError },
    /// An operator's request is none.
    #[error("{}: a request of HTTP cannot be read: {}", Code::FrameBroken, .0)]
    Request(hyper::Error),
    /// Nobody sends that to a scheduler, and to answer it would end the node.
    #[error("{}: command {command} is none that a node gives to its scheduler", Code::MessageUnknown)]
    Unknown { command: i32 },
    /// The stamp of an agent does not lead to an outcome, which it is told.
    #[error("an agent is told `{}`", .0.text())]
    Stamp(Word),
    /// It does not take its answers.
    #[error("{}: an answer was not taken within {seconds} s", Code::LeftUnfinished)]
    Untaken { seconds: u64 },
    /// There is no room for what it sends, or for its answers.
    #[error("{0}")]
    Short(#[from] Short),
    /// The cluster has no answer, and to say nothing would have the client wait for ever.
    #[error("{}: {}", outage_code(.0), .0)]
    Outage(Outage),
    /// The node stops, and what was asked last may or may not have taken effect.
    #[error("{}: the node stops", Code::OutcomeUnknown)]
    Overdue,
    /// The client has gone, or did not finish a frame in time, of which the port has told.
    #[error("the connection is lost: {0}")]
    Lost(#[from] io::Error),
}

impl Ended {
    /// Whether an operator should know: not of clients that have gone, and of what the budget has told already.
    pub(crate) fn is_told(&self) -> bool {
        !matches!(
            self,
            Self::Lost(_) | Self::Short(_) | Self::Overdue | Self::Stamp(_) | Self::Outage(Outage::Stopping)
        )
    }
}

/// The code of what the cluster could not do.
pub(crate) fn outage_code(outage: &Outage) -> Code {
    match outage {
        Outage::NoLeader { .. } | Outage::Stopping => Code::NoLeader,
        Outage::Unknown(_) => Code::OutcomeUnknown,
        Outage::Overloaded(_) => Code::Overloaded,
        Outage::DiskFull(_) => Code::DiskFull,
        Outage::JobFull(_) => Code::JobFull,
        Outage::StateFull(_) => Code::StateFull,
        Outage::Level(_) => Code::LevelLow,
    }
}
