//! What nodes say to each other.

use crate::row::Row;
use crate::rpc::{PeerLeader, PeerRaft};

const NODES: Row = Row::of("y - - - - - - - -");

pub(super) const fn raft(method: PeerRaft) -> Row {
    match method {
        PeerRaft::Append
        | PeerRaft::StreamAppend
        | PeerRaft::Vote
        | PeerRaft::PreVote
        | PeerRaft::TransferLeader
        | PeerRaft::InstallSnapshot
        | PeerRaft::HeldSnapshot
        | PeerRaft::Standing
        | PeerRaft::Acknowledged
        | PeerRaft::HeldVote
        | PeerRaft::Level
        | PeerRaft::AskNode => NODES,
        PeerRaft::Suspect => NODES.like("Raft.Vote"),
    }
}

pub(super) const fn leader(method: PeerLeader) -> Row {
    match method {
        PeerLeader::Propose
        | PeerLeader::ProposeNewer
        | PeerLeader::ReadIndex
        | PeerLeader::Ask
        | PeerLeader::ReportDisk
        | PeerLeader::Compare => NODES,
    }
}
