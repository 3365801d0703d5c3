//! Why a client's connection ends before the client ends it.

use std::io;

use tripod_mindspore_wire::Broken;
use tripod_port::Short;
use tripod_proto::code::Code;

/// Neither protocol has words for it, so it is told to the log.
#[derive(Debug, thiserror::Error)]
pub(super) enum Ended {
    /// Nothing more can be read of it, or a node could not.
    #[error("{}: {}", Code::FrameBroken, .0)]
    Broken(#[from] Broken),
    /// It speaks a protocol that is not passed on.
    #[error("{}: an agent passes no {} on; ask a node of the cluster", Code::MessageUnknown, .0)]
    Unserved(&'static str),
    /// It does not take its answers.
    #[error("{}: an answer was not taken within {seconds} s", Code::LeftUnfinished)]
    Untaken { seconds: u64 },
    /// There is no room for what it sends, or for its answers.
    #[error("{0}")]
    Short(#[from] Short),
    /// A node would end the connection of a client that says this.
    #[error(
        "{}: the cluster refuses what a client says; the log of the node has the reason",
        Code::MessageRefused
    )]
    Refused,
    /// A message may have been executed, and must not be again.
    #[error("{}: the session of a message expired while it was under way", Code::OutcomeUnknown)]
    Unknown,
    /// There is no job, or it is another one than is meant; or no session can be opened.
    #[error("{}: {}", Code::AgentFailed, .0)]
    NotServed(String),
    /// Nobody has answered for as long as messages are held.
    #[error("{}: {}", Code::NoAnswer, .0)]
    GivenUp(String),
    /// The agent stops, and what was asked last may or may not have taken effect.
    #[error("{}: the agent stops", Code::OutcomeUnknown)]
    Overdue,
    /// The client has gone, or did not finish a frame in time, of which the port has told.
    #[error("the connection is lost: {0}")]
    Lost(#[from] io::Error),
}

impl Ended {
    /// Whether an operator should know: not of clients that have gone, and of what the budget has told already.
    pub(super) fn is_told(&self) -> bool {
        !matches!(self, Self::Lost(_) | Self::Short(_) | Self::Overdue)
    }
}
