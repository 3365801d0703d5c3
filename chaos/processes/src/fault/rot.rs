//! A bit that flips on the disk of a stopped node, and what the node makes of it at its next start.
//!
//! Either it has all that it had, or it ends with a code, and then whoever runs the cluster does what its text
//! says: the node is given up and comes back empty, or its identity is written anew. One that serves less than
//! others were told it holds, ends without a word, or neither serves nor ends breaks a promise.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::time::Instant;
use tripod_client::{Client, Config};
use tripod_proto::code::Code;
use tripod_proto::tripod::v1::StatusResponse;
use tripod_wait::scaled;

use super::storage::{FileKind, FileRegion, Flip};
use super::{Arena, Begun, Target, Undo};
use crate::proxy::{Flow, LinkEnd};

/// Whose bits flip; nearly all bytes lie in the journal and in sled.
const KINDS: [FileKind; 12] = [
    FileKind::JournalSegment,
    FileKind::JournalSegment,
    FileKind::JournalSegment,
    FileKind::JournalSegment,
    FileKind::SledData,
    FileKind::SledData,
    FileKind::SledData,
    FileKind::SledOther,
    FileKind::SledConfiguration,
    FileKind::Snapshot,
    FileKind::Snapshot,
    FileKind::Identity,
];
/// How long a cluster that must be whole first is waited for.
const WHOLE_PATIENCE: Duration = Duration::from_secs(15);
/// Entries that a node may lack and still count as having caught up.
const LAG_MAX: u64 = 2_000;
/// How long the damaged node may take to serve or to end, on a machine of usual speed.
const START_PATIENCE: Duration = Duration::from_secs(60);
const STATUS_LIMIT: Duration = Duration::from_secs(1);
const LOOK_PAUSE: Duration = Duration::from_millis(50);
/// Lines of its log that tell why a node ended.
const LAST_LINES: usize = 12;
/// The note of a node that comes back empty and does not vote yet.
const REJOINING: &str = "rejoining";
const IDENTITY: &str = "identity.json";

/// The node whose disk is damaged. There is never more than one.
#[derive(Debug)]
pub(super) struct Rotten {
    node: u64,
    /// What happened to it, for people.
    flips: Vec<Flip>,
    /// Where its log ended when it was damaged.
    log_from: usize,
}

/// A node that has been damaged, before anybody knows what it makes of it.
#[derive(Debug)]
pub(super) struct Damaged {
    node: u64,
    flip: Flip,
    /// The log index up to which the leader was told that the node holds everything, if it does not lead.
    promised: Option<u64>,
}

/// What a damaged node did.
enum Found {
    Serves(Box<StatusResponse>),
    Ended,
    Neither,
}

/// Stops a node of a cluster that is whole and flips a bit; the node that is damaged already, if one is.
pub(super) async fn inject(
    target: Target,
    chance: u64,
    arena: &mut Arena<'_>,
) -> anyhow::Result<Option<Begun>> {
    let Some(leader) = whole(arena).await? else { return Ok(None) };
    let node = match &arena.rotten {
        Some(rotten) => Some(rotten.node),
        None => arena.resolve(target).await,
    };
    let Some(node) = node else { return Ok(None) };
    let follower = leader.members.iter().find(|member| member.node_id == node && leader.node_id != node);
    let promised = follower.map(|member| member.matched_index);
    arena.cluster.kill(node)?;
    let flip = draw(&data(arena, node), chance)?.context("the node has no files")?;
    flip.apply(&data(arena, node))?;
    let log_from = log(arena, node)?.len();
    let rotten = arena.rotten.get_or_insert(Rotten { node, flips: Vec::new(), log_from });
    rotten.flips.push(flip.clone());
    let target = format!("node {node}: {flip}");
    Ok(Begun::new(target, Undo::FindOut(Damaged { node, flip, promised })))
}

fn draw(data: &Path, chance: u64) -> anyhow::Result<Option<Flip>> {
    let mut random = StdRng::seed_from_u64(chance);
    let wanted = KINDS[random.random_range(0..KINDS.len())];
    // A young node has no snapshot, for example.
    for kind in [wanted, FileKind::JournalSegment] {
        if let Some(flip) = Flip::draw(data, kind, &mut random)? {
            return Ok(Some(flip));
        }
    }
    Ok(None)
}

/// Starts the damaged node and sees what it does. The others do not reach it meanwhile, so that nobody gives it
/// back what it may have lost before that is seen.
pub(super) async fn find_out(damaged: Damaged, arena: &mut Arena<'_>) -> anyhow::Result<()> {
    let Damaged { node, flip, promised } = damaged;
    seclude(arena, node, Flow::Swallow)?;
    arena.cluster.restart(node)?;
    let found = look(arena, node).await;
    seclude(arena, node, Flow::Pass)?;
    match found? {
        Found::Ended => arena.look_for_the_dead(),
        Found::Neither => {
            let patience = scaled(START_PATIENCE);
            let text = format!("node {node} neither served nor ended within {patience:?} after {flip}");
            arena.misconduct.push(text);
            Ok(())
        }
        Found::Serves(status) => {
            // Damage to the last group looks like a write that was cut off: docs/decisions/012.
            let last = matches!(flip.region, FileRegion::LastFrames | FileRegion::Padding);
            let holds = status.last_log_index;
            if let Some(promised) = promised.filter(|promised| !last && holds < *promised) {
                arena.misconduct.push(format!(
                    "node {node} lost entries without a word: the leader was told that it holds {promised}, and \
                     after {flip} it serves with {holds}"
                ));
            }
            Ok(())
        }
    }
}

async fn look(arena: &mut Arena<'_>, node: u64) -> anyhow::Result<Found> {
    let client = Client::new(&Config::new(vec![arena.cluster.endpoint(node)]))?;
    let deadline = Instant::now() + scaled(START_PATIENCE);
    while Instant::now() < deadline {
        if !arena.cluster.running().contains(&node) {
            return Ok(Found::Ended);
        }
        let answer = client.status(STATUS_LIMIT, false).await.into_iter().next();
        if let Some(Ok(status)) = answer.map(|answer| answer.status) {
            return Ok(Found::Serves(Box::new(status)));
        }
        tokio::time::sleep(LOOK_PAUSE).await;
    }
    Ok(Found::Neither)
}

/// What to do with a damaged node that has ended by itself: what its text says, and it is started again. What
/// it wrote is no finding of whoever reads its log for panics, if it told a code.
pub(super) fn ended(
    arena: &mut Arena<'_>,
    rotten: Rotten,
    status: std::process::ExitStatus,
) -> anyhow::Result<()> {
    let Rotten { node, flips, log_from } = rotten;
    let log = log(arena, node)?;
    let text = String::from_utf8_lossy(&log[log_from.min(log.len())..]).into_owned();
    let mut last: Vec<&str> = text.lines().rev().take(LAST_LINES).collect();
    last.reverse();
    let last = last.join("\n");
    let flips: Vec<String> = flips.iter().map(ToString::to_string).collect();
    match Way::of(&last) {
        Some(way) => {
            eprintln!("  node {node} found out, and {way:?} is the way back: {}", flips.join(", "));
            arena.excused.entry(node).or_default().push(log_from..log.len());
            way.go(arena, node)?;
        }
        None => {
            arena.misconduct.push(format!(
                "node {node} ended with {status} and without a code after {}; it said last: {}",
                flips.join(", "),
                last.replace('\n', " | ")
            ));
            Way::GiveUp.go(arena, node)?;
        }
    }
    arena.cluster.restart(node)
}

/// What the text of an end tells to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// The directory is moved away, and the node comes back empty.
    GiveUp,
    /// The identity is removed; the log knows whose it is.
    ForgetIdentity,
}

impl Way {
    /// `None`: there is no code, or no way back.
    fn of(words: &str) -> Option<Self> {
        // Codes that only tell of elections and disks are no reasons to end.
        let of_an_end =
            |line: &str| Code::find_cause(line).filter(|code| !code.slug().starts_with("leader-"));
        let (line, code) = words.lines().rev().find_map(|line| Some((line, of_an_end(line)?)))?;
        if line.contains("run `mv ") {
            return Some(Self::GiveUp);
        }
        // A wrong owner or format is said of a whole file: that it is damaged, only who damaged it knows.
        code.slug().starts_with("identity-").then_some(Self::ForgetIdentity)
    }

    fn go(self, arena: &Arena<'_>, node: u64) -> anyhow::Result<()> {
        let data = data(arena, node);
        match self {
            Self::GiveUp => {
                let free = |number: &u32| !data.with_extension(format!("damaged-{number}")).exists();
                let number = (1..).find(free).expect("not every number is taken");
                let away = data.with_extension(format!("damaged-{number}"));
                std::fs::rename(&data, &away).with_context(|| format!("cannot move {}", data.display()))
            }
            Self::ForgetIdentity => std::fs::remove_file(data.join(IDENTITY))
                .with_context(|| format!("cannot remove the identity in {}", data.display())),
        }
    }
}

/// The leader's status, if all nodes run, are voters, and have nearly all that the leader has. Waits for it.
async fn whole(arena: &mut Arena<'_>) -> anyhow::Result<Option<StatusResponse>> {
    let client = Client::new(&Config::new(arena.cluster.endpoints()))?;
    let deadline = Instant::now() + WHOLE_PATIENCE;
    loop {
        let answers = client.status(STATUS_LIMIT, false).await;
        let all: Vec<StatusResponse> = answers.into_iter().filter_map(|answer| answer.status.ok()).collect();
        let everybody = all.len() == arena.cluster.ids().count();
        let leader = all.iter().filter(|status| status.role == "leader").max_by_key(|status| status.term);
        if let Some(leader) = leader.filter(|_| everybody) {
            let follows = |status: &StatusResponse| {
                status.leader_id == leader.node_id
                    && matches!(status.role.as_str(), "leader" | "follower")
                    && status.applied_index + LAG_MAX >= leader.committed_index
            };
            let rejoining = arena.cluster.ids().any(|node| data(arena, node).join(REJOINING).exists());
            if !rejoining && all.iter().all(follows) {
                return Ok(Some(leader.clone()));
            }
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        tokio::time::sleep(LOOK_PAUSE).await;
    }
}

/// Cuts a node off from the others, or joins it to them again.
fn seclude(arena: &Arena<'_>, node: u64, flow: Flow) -> anyhow::Result<()> {
    let network = arena.cluster.network()?;
    for other in network.nodes().iter().copied().filter(|other| *other != node) {
        network.set_flow_between(LinkEnd::Node(node), LinkEnd::Node(other), flow);
    }
    Ok(())
}

fn data(arena: &Arena<'_>, node: u64) -> PathBuf {
    arena.cluster.root().join(format!("node-{node}"))
}

fn log(arena: &Arena<'_>, node: u64) -> anyhow::Result<Vec<u8>> {
    let path = arena.cluster.log(node);
    std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
}

impl Rotten {
    /// Whether it is this node.
    pub(super) fn is(&self, node: u64) -> bool {
        self.node == node
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_back_is_what_the_text_says() {
        for (words, way) in [
            (
                "error: T3101 log-damaged: x is damaged. To let it rejoin, run `mv a b`, and",
                Some(Way::GiveUp),
            ),
            ("error: T4101 identity-unreadable: x is not an identity file", Some(Way::ForgetIdentity)),
            ("WARN T3202 leader-stalled: the disk did not answer\nthread panicked at x", None),
            ("error: T3102 log-io: cannot read", None),
            ("thread panicked at x", None),
            ("", None),
        ] {
            assert_eq!(Way::of(words), way, "{words}");
        }
    }
}
