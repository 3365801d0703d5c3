//! Whether the coordinator is the cause.

use crate::Code;
use crate::facts::{Facts, Node, NodeWord, Said};
use crate::finding::{Finding, Sure, Where};
use crate::safety::{Member, Safety, safety};
use crate::words::{age, clock, plain};

/// A flush that takes longer is no flush, but a disk that does not answer.
const STALL_MS: u64 = 1_000;
/// A disk is slow if its p99 is at least this, and so many times that of the others.
const SLOW_US: u64 = 10_000;
const SLOW_TIMES: u64 = 20;
/// Further behind with what is committed is behind.
const BACKLOG_ENTRIES: u64 = 10_000;
/// A leader that did not run for so long has made all calls wait that long.
const PAUSE_MS: u64 = 2_000;
/// A pause explains what is late for as long as it took, at least so long, and at most the other.
const PAUSE_TOLD_MS: u64 = 5_000;
const PAUSE_TOLD_MS_MAX: u64 = 60_000;
/// A node that heard nothing of a quorum for so long is cut off: some heartbeats are missing by then.
const CUT_MS: u64 = 3_000;

/// What keeps the cluster from serving, or slows it down.
pub(super) fn coordinator(facts: &Facts) -> Vec<Finding> {
    match no_quorum(facts) {
        Some(finding) => vec![finding],
        // The disk first: it is why a leader does not answer, or why nobody is elected.
        None => {
            let found = [disk(facts), paused(facts), leaderless(facts), backlog(facts)];
            found.into_iter().flatten().collect()
        }
    }
}

/// Judged by what the members say.
pub(super) fn safety_of(facts: &Facts) -> Safety {
    let cluster = &facts.cluster;
    let committed = cluster.words().map(|(_, word)| word.committed).max().unwrap_or(0);
    let cut = cut(facts);
    let members: Vec<Member> = cluster
        .nodes
        .iter()
        .map(|node| {
            let lag = match &node.said {
                Said::Word(word) => Some(committed.saturating_sub(word.applied)),
                _ => None,
            };
            Member {
                node: node.node,
                voter: node.voter,
                answers: matches!(node.said, Said::Word(_) | Said::Refuses(_)),
                cut: cut
                    .iter()
                    .any(|finding| finding.parties.iter().any(|(name, _)| *name == node.node.to_string())),
                lag_entries: lag,
                leaving: false,
            }
        })
        .collect();
    let is_led = cluster.leader().is_some();
    let mut judged = safety(&members, is_led || facts.memory.is_none(), cluster.is_changing);
    if is_led && facts.memory.is_some() && judged.change_safe {
        (judged.change_safe, judged.why) = (false, "no read came back in time".to_owned());
    }
    judged
}

fn voters(facts: &Facts) -> impl Iterator<Item = &Node> {
    facts.cluster.nodes.iter().filter(|node| node.voter)
}

fn answers(node: &Node) -> bool {
    matches!(node.said, Said::Word(_) | Said::Refuses(_))
}

/// How a member is silent, in words.
fn silence(said: &Said) -> Option<String> {
    match said {
        Said::Word(_) | Said::Refuses(_) => None,
        Said::PortRefuses => Some("refuses the connection: the process is down".to_owned()),
        Said::Silent => Some("does not answer in time: frozen, overloaded or cut off".to_owned()),
        Said::Unreachable(why) => Some(format!("cannot be reached: {}", plain(why))),
    }
}

fn memory_line(facts: &Facts) -> Option<(String, String)> {
    let memory = facts.memory.as_ref()?;
    let old = facts.now_ms.saturating_sub(memory.at_ms);
    let text = format!(
        "told from the memory of node {}: as of {} (index {}, {} ago)",
        facts.cluster.told_by,
        clock(memory.at_ms),
        memory.index,
        age(old)
    );
    Some(("job".to_owned(), text))
}

/// Only where nobody has answered a read either: one that came back was answered by a quorum, however many were silent.
fn no_quorum(facts: &Facts) -> Option<Finding> {
    facts.memory.as_ref()?;
    let (all, answering) = (voters(facts).count(), voters(facts).filter(|node| answers(node)).count());
    let needed = all / 2 + 1;
    if all == 0 || answering >= needed {
        return None;
    }
    let verb = if answering == 1 { "answers" } else { "answer" };
    let silent = voters(facts).filter_map(|node| Some((node, silence(&node.said)?)));
    let lines = silent.map(|(node, how)| (format!("node {}", node.node), how));
    let down: Vec<u64> =
        voters(facts).filter(|node| node.said == Said::PortRefuses).map(|node| node.node).collect();
    let wanted = needed - answering;
    // Of one node that hears nobody, nobody knows whether it is the one that is cut off.
    let is_alone = answering == 1 && down.is_empty();
    let next = match down.first() {
        None => {
            "look at the hosts of the nodes above, and whether this one reaches their peer ports".to_owned()
        }
        Some(first) if down.len() > wanted => {
            format!("start node {first}; {wanted} of those that are down is enough")
        }
        Some(_) => format!("start {}", nodes(&down)),
    };
    let ask = is_alone.then(|| "ask another node, by --endpoints: this one may be cut off itself".to_owned());
    Some(Finding {
        code: Code::NoQuorum,
        place: Where::Coordinator,
        sure: if is_alone { Sure::Likely } else { Sure::Certain },
        text: format!(
            "{answering} of {all} voters {verb}, {needed} must; calls are held, no program has failed of it"
        ),
        since_ago_ms: None,
        tasks: Vec::new(),
        parties: Vec::new(),
        lines: lines.chain(memory_line(facts)).collect(),
        next: ask.into_iter().chain([next]).collect(),
    })
}

fn nodes(ids: &[u64]) -> String {
    let list = ids.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    format!("{} {list}", if ids.len() == 1 { "node" } else { "nodes" })
}

fn leaderless(facts: &Facts) -> Option<Finding> {
    let memory = facts.memory.as_ref()?;
    let (sure, text) = match facts.cluster.leader() {
        // It may be busy, or may have just been elected, or not know yet that it leads no more.
        Some((leader, _)) => {
            let why = plain(&memory.why);
            let text = format!("node {} leads, and no read came back in time: {why}", leader.node);
            (Sure::Likely, text)
        }
        None => {
            let text =
                "enough voters answer, and none of them leads: an election is under way; calls are held";
            (Sure::Certain, text.to_owned())
        }
    };
    Some(Finding {
        code: Code::Leaderless,
        place: Where::Coordinator,
        sure,
        text,
        since_ago_ms: None,
        tasks: Vec::new(),
        parties: Vec::new(),
        lines: memory_line(facts).into_iter().collect(),
        next: vec!["tripod status --watch".to_owned()],
    })
}

fn disk(facts: &Facts) -> Option<Finding> {
    let (leader, word) = facts.cluster.leader()?;
    let others = facts.cluster.words().filter(|(node, _)| node.node != leader.node);
    let others = others.filter_map(|(_, word)| word.flush_p99_us).max();
    let how = match (word.flush_under_way_ms, word.flush_p99_us, others) {
        (Some(ms), _, _) if ms > STALL_MS => format!("has taken {} for one flush until now", age(ms)),
        (_, Some(p99), Some(others)) if p99 >= SLOW_US && p99 >= SLOW_TIMES.saturating_mul(others) => {
            format!("takes {} ms a flush, those of its peers {} ms", p99 / 1_000, others.div_ceil(1_000))
        }
        _ => return None,
    };
    let to = facts.cluster.words().find(|(node, _)| node.voter && node.node != leader.node);
    let transfer = to.map(|(node, _)| format!("tripod leader transfer --to {}", node.node));
    let look = format!("look at the disk of node {}", leader.node);
    Some(Finding {
        code: Code::DiskSlow,
        place: Where::Coordinator,
        sure: Sure::Certain,
        text: format!("the leader's disk {how}; every write waits"),
        since_ago_ms: None,
        tasks: Vec::new(),
        parties: Vec::new(),
        lines: vec![(
            format!("node {}", leader.node),
            "leads; programs are not blamed while this lasts".to_owned(),
        )],
        next: transfer.into_iter().chain([look]).collect(),
    })
}

/// What the leader says itself: it did not run, so nobody was heard meanwhile.
fn paused(facts: &Facts) -> Option<Finding> {
    let (leader, word) = facts.cluster.leader()?;
    let (length, ended_ago) = word.pause?;
    if length < PAUSE_MS || ended_ago > length.clamp(PAUSE_TOLD_MS, PAUSE_TOLD_MS_MAX) {
        return None;
    }
    let to = facts.cluster.words().find(|(node, _)| node.voter && node.node != leader.node);
    let transfer =
        to.map(|(node, _)| format!("if it comes again: tripod leader transfer --to {}", node.node));
    let look = format!("look at processor and memory of node {}, and whether somebody stops it", leader.node);
    Some(Finding {
        code: Code::LeaderPaused,
        place: Where::Coordinator,
        sure: Sure::Certain,
        text: format!(
            "the leader's process did not run for {}, until {} ago; every call waited for that",
            age(length),
            age(ended_ago)
        ),
        since_ago_ms: Some(length.saturating_add(ended_ago)),
        tasks: Vec::new(),
        parties: Vec::new(),
        lines: vec![(
            format!("node {}", leader.node),
            "leads; its timers are put off by as much, and programs are not blamed yet".to_owned(),
        )],
        next: [look].into_iter().chain(transfer).collect(),
    })
}

/// Only of the node by whose state the job is judged, and of the leader, for which all writes wait: what another one lags
/// behind delays its own clients, and is no reason to say nothing of the job.
fn backlog(facts: &Facts) -> Option<Finding> {
    let matters =
        |node: &Node, word: &NodeWord| node.node == facts.cluster.told_by || word.leader == Some(node.node);
    let behind = |word: &NodeWord| word.committed.saturating_sub(word.applied);
    let (node, word) =
        facts.cluster.words().find(|(node, word)| matters(node, word) && behind(word) > BACKLOG_ENTRIES)?;
    Some(Finding {
        code: Code::ApplyBacklog,
        place: Where::Coordinator,
        sure: Sure::Certain,
        text: format!(
            "node {} has {} committed entries still to apply; who waits there waits for that",
            node.node,
            behind(word)
        ),
        since_ago_ms: None,
        tasks: Vec::new(),
        parties: Vec::new(),
        lines: Vec::new(),
        next: vec![
            "tripod status --watch".to_owned(),
            format!("look at processor and memory of node {}", node.node),
        ],
    })
}

/// Nodes that are reached from one side only.
pub(super) fn cut(facts: &Facts) -> Vec<Finding> {
    let Some((leader, leads)) = facts.cluster.leader() else { return Vec::new() };
    let others = facts.cluster.nodes.iter().filter(|node| node.node != leader.node);
    others.filter_map(|node| cut_one(facts, (leader, leads), node)).collect()
}

fn cut_one(facts: &Facts, (leader, leads): (&Node, &NodeWord), node: &Node) -> Option<Finding> {
    let heard = leads.heard.get(&node.node).copied();
    let id = node.node;
    let (text, line, next) = match &node.said {
        Said::Word(word) => {
            let by_itself = word.contact_ago_ms.is_none_or(|ago| ago > CUT_MS);
            let by_peers = heard.is_none_or(|ago| ago > CUT_MS);
            if !(by_itself && by_peers) {
                return None;
            }
            let since =
                word.contact_ago_ms.map_or_else(String::new, |ago| format!(" since {} ago", age(ago)));
            (
                format!("node {id} is cut off from its peers{since}; it answers us"),
                format!("answers us, not its peers; {} calls are held there", word.held_calls),
                format!(
                    "check the peer port of node {id} from the other nodes; do not replace it while it answers"
                ),
            )
        }
        // One witness that hears it and gets no answer to a question is no two witnesses: it is busy, and not cut off.
        Said::Silent | Said::Unreachable(_)
            if ![id, leader.node].contains(&facts.cluster.told_by)
                && heard.is_some_and(|ago| ago < CUT_MS) =>
        {
            (
                format!("node {id} is reached by its leader, and not by node {}", facts.cluster.told_by),
                format!("{}; its leader heard it {} ago", silence(&node.said)?, age(heard?)),
                format!("check the way from node {} to the peer port of node {id}", facts.cluster.told_by),
            )
        }
        _ => return None,
    };
    Some(Finding {
        code: Code::NodeCut,
        place: Where::Network,
        sure: Sure::Likely,
        text,
        since_ago_ms: heard,
        tasks: Vec::new(),
        parties: vec![(id.to_string(), Vec::new())],
        lines: vec![(format!("node {id}"), line)],
        next: vec![next],
    })
}
