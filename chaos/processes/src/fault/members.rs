//! Changes of the members, which are no faults: nothing may come of them but that somebody else takes part.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tripod_client::wire::change_members_request::Change;
use tripod_client::{Client, Error, wire};
use tripod_wait::scaled;

use super::roll::{CHANGE_TIMEOUT, Member, Roll};
use super::{Arena, Begun, Undo};

/// How long until all machines have a node that votes, once nothing disturbs them, on a machine of usual speed.
const SETTLE_PATIENCE: Duration = Duration::from_secs(120);
/// A node that has been no member for so long, while nothing changes, was removed before anything reached it.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(20);
const LOOK_PAUSE: Duration = Duration::from_millis(300);
/// Fewer voters are left by no change of ours.
const VOTERS_MIN: usize = 3;
/// What an operator is told of a node that was removed.
const WORDS: &str = "was removed from cluster";

/// What an operator wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wish {
    /// A node comes, on a machine that has none.
    Add,
    Promote,
    Demote,
    /// A node leaves, and its machine becomes free.
    Remove,
    /// A machine without a node takes the place of another one's.
    Replace,
    /// The leader hands over to a certain voter.
    Transfer,
    /// The peers of a node reach it at another address: through the network that can be made bad, or directly.
    Move,
    /// A voter is to lead nothing and to have no clients, until it is undrained.
    Drain,
    Undrain,
}

impl Wish {
    /// As reports count it.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Add => "member-add",
            Self::Promote => "member-promote",
            Self::Demote => "member-demote",
            Self::Remove => "member-remove",
            Self::Replace => "member-replace",
            Self::Transfer => "member-transfer",
            Self::Move => "member-move",
            Self::Drain => "member-drain",
            Self::Undrain => "member-undrain",
        }
    }
}

/// Asks for a change. `None`: there is nobody for whom it makes sense now, or the leader refused.
pub(super) async fn inject(wish: Wish, chance: u64, arena: &mut Arena<'_>) -> anyhow::Result<Option<Begun>> {
    let Some(roll) = Roll::call(arena).await else { return Ok(None) };
    let voters = roll.members.iter().filter(|member| member.votes).count();
    let spared = |member: &&Member| !member.votes || voters > VOTERS_MIN;
    let one = |members: Vec<&Member>| -> Option<Member> {
        let place = usize::try_from(chance.checked_rem(members.len() as u64)?).ok()?;
        Some(*members[place])
    };
    let all = || roll.members.iter();
    let (change, newcomer) = match wish {
        Wish::Add => {
            let Some(machine) = arena.free() else { return Ok(None) };
            // It asks for itself.
            arena.cluster.restart(machine)?;
            return Ok(Begun::new(format!("machine {machine}"), Undo::Nothing));
        }
        Wish::Transfer => {
            return Ok(transfer(&roll, one(all().filter(|member| member.votes).collect())).await);
        }
        Wish::Drain => {
            let voters = all().filter(|member| member.votes && !member.drained).collect();
            return Ok(drain(&roll, one(voters), true).await);
        }
        Wish::Undrain => {
            return Ok(drain(&roll, one(all().filter(|member| member.drained).collect()), false).await);
        }
        Wish::Promote => {
            (one(all().filter(|member| !member.votes).collect()).map(|one| Change::Promote(one.id)), None)
        }
        Wish::Demote if voters > VOTERS_MIN => {
            (one(all().filter(|member| member.votes).collect()).map(|one| Change::Demote(one.id)), None)
        }
        Wish::Demote => (None, None),
        Wish::Remove => (one(all().filter(spared).collect()).map(|one| Change::Remove(one.id)), None),
        Wish::Replace => {
            let (Some(machine), Some(old)) = (arena.free(), one(all().collect())) else { return Ok(None) };
            let [peer_address, _] = arena.cluster.peers(machine);
            (Some(Change::Replace(wire::ReplaceMember { node_id: old.id, peer_address })), Some(machine))
        }
        Wish::Move => (one(all().collect()).map(|one| moved(arena, one)), None),
    };
    let Some(change) = change else { return Ok(None) };
    if !ask(&roll.leader, change.clone()).await {
        return Ok(None);
    }
    if let Some(machine) = newcomer {
        arena.cluster.restart(machine)?;
    }
    Ok(Begun::new(format!("{change:?}"), Undo::Nothing))
}

/// The other of the two addresses at which its peers may reach a node.
fn moved(arena: &Arena<'_>, member: Member) -> Change {
    let [direct, proxied] = arena.cluster.peers(member.machine);
    let peer_address = if member.direct { proxied } else { direct };
    Change::Move(wire::MoveMember { node_id: member.id, peer_address })
}

async fn transfer(roll: &Roll, to: Option<Member>) -> Option<Begun> {
    let to = to?;
    // That nobody takes over within the time is allowed while other faults are about.
    let _ = Client::transfer_leader(&roll.leader, Some(to.id), CHANGE_TIMEOUT).await;
    Begun::new(format!("node {}", to.id), Undo::Nothing)
}

async fn drain(roll: &Roll, whom: Option<Member>, drained: bool) -> Option<Begun> {
    let whom = whom?;
    // A leader refuses if nobody else could lead.
    let asked = roll.drain(whom.id, drained).await;
    if asked { Begun::new(format!("node {}", whom.id), Undo::Nothing) } else { None }
}

/// Has a change begun; tells whether it may have.
async fn ask(leader: &str, change: Change) -> bool {
    let request = wire::ChangeMembersRequest {
        change: Some(change),
        by: "the chaos".to_owned(),
        plan: false,
        force: false,
    };
    match Client::change_members(leader, &request, CHANGE_TIMEOUT).await {
        Ok(_) | Err(Error::OutcomeUnknown { .. }) => true,
        Err(_) => false,
    }
}

/// Whether a node that ended by itself said that it was removed.
pub(super) fn says_removed(last: &[&str]) -> bool {
    last.iter().any(|line| line.contains(WORDS))
}

/// Gives every machine a node again that votes and may lead, as an operator would after all of it. Then everybody is
/// a member who runs, and nothing is under way.
///
/// # Errors
/// The harness failed.
pub async fn settle(arena: &mut Arena<'_>) -> anyhow::Result<Result<(), String>> {
    let patience = scaled(SETTLE_PATIENCE);
    let deadline = Instant::now() + patience;
    let mut quiet_since = Instant::now();
    loop {
        arena.look_for_the_dead()?;
        while let Some(machine) = arena.free() {
            arena.cluster.restart(machine)?;
            quiet_since = Instant::now();
        }
        let waits_for = match Roll::call(arena).await {
            None => "nobody leads".to_owned(),
            Some(roll) if roll.is_open => {
                quiet_since = Instant::now();
                "a change is under way".to_owned()
            }
            Some(roll) => match next(arena, &roll) {
                Next::Done => return Ok(Ok(())),
                Next::Change(change) => {
                    ask(&roll.leader, change.clone()).await;
                    format!("{change:?}")
                }
                Next::Undrain(node) => {
                    roll.drain(node, false).await;
                    format!("node {node} is drained")
                }
                Next::Wait(machine) if quiet_since.elapsed() >= FORGOTTEN_AFTER => {
                    eprintln!(
                        "  the node on machine {machine} is no member, and is not told; it is taken away"
                    );
                    arena.cluster.kill(machine)?;
                    arena.make_free(machine)?;
                    format!("machine {machine} joins")
                }
                Next::Wait(machine) => format!("machine {machine} joins"),
            },
        };
        if Instant::now() >= deadline {
            return Ok(Err(format!("{patience:?} after the last fault {waits_for}")));
        }
        tokio::time::sleep(LOOK_PAUSE).await;
    }
}

enum Next {
    Done,
    Change(Change),
    Undrain(u64),
    /// For the node on that machine to be a member.
    Wait(u64),
}

fn next(arena: &Arena<'_>, roll: &Roll) -> Next {
    let absent = |machine: &u64| !roll.members.iter().any(|member| member.machine == *machine);
    if let Some(machine) = arena.cluster.ids().find(absent) {
        return Next::Wait(machine);
    }
    if let Some(member) = roll.members.iter().find(|member| member.drained) {
        return Next::Undrain(member.id);
    }
    match roll.members.iter().find(|member| !member.votes || !member.answers) {
        None => Next::Done,
        Some(member) if !member.votes => Next::Change(Change::Promote(member.id)),
        Some(member) => Next::Wait(member.machine),
    }
}
