//! The members, as the leader lists them.

use std::time::Duration;

use tripod_client::{Client, Error, wire};

use super::Arena;

/// How long the leader may take to answer: it asks every member, of which some may be cut off.
pub(super) const CHANGE_TIMEOUT: Duration = Duration::from_secs(5);

/// Who takes part, and in which part.
pub(super) struct Roll {
    /// The leader's client address.
    pub(super) leader: String,
    /// The machine on which it runs.
    machine: u64,
    pub(super) members: Vec<Member>,
    /// Whether a change is under way.
    pub(super) is_open: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) id: u64,
    pub(super) machine: u64,
    pub(super) votes: bool,
    pub(super) answers: bool,
    /// It is to lead nothing.
    pub(super) drained: bool,
    /// Its peers reach it directly.
    pub(super) direct: bool,
}

impl Roll {
    /// As the leader has it, if there is one.
    pub(super) async fn call(arena: &mut Arena<'_>) -> Option<Self> {
        let machine = arena.leader().await?;
        let leader = arena.cluster.endpoint(machine);
        let list = Client::members(&leader, CHANGE_TIMEOUT).await.ok().filter(|list| list.by_leader)?;
        let votes = list.votes?;
        let machines: Vec<(u64, [String; 2])> =
            arena.cluster.ids().map(|machine| (machine, arena.cluster.peers(machine))).collect();
        let member = |listed: wire::MemberSight| {
            let (machine, peers) = machines.iter().find(|(_, peers)| peers.contains(&listed.peer_address))?;
            Some(Member {
                id: listed.node_id,
                machine: *machine,
                votes: votes.voters.contains(&listed.node_id),
                answers: listed.answers,
                drained: listed.drained,
                direct: peers[0] == listed.peer_address,
            })
        };
        let members = list.members.into_iter().filter_map(member).collect();
        Some(Self { leader, machine, members, is_open: list.open.is_some() })
    }

    /// The one that leads; `None` if it is no member any more, and leads only until the others have that.
    pub(super) fn leading(&self) -> Option<Member> {
        self.members.iter().find(|member| member.machine == self.machine).copied()
    }

    /// Has a node drained or undrained; tells whether it may have been.
    pub(super) async fn drain(&self, node: u64, drained: bool) -> bool {
        match Client::drain(&self.leader, node, drained, CHANGE_TIMEOUT).await {
            Ok(()) | Err(Error::OutcomeUnknown { .. }) => true,
            Err(_) => false,
        }
    }
}
