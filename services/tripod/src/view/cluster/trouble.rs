//! What is wrong with a cluster, and the next command to type.

use serde::Serialize;

use super::ClusterView;
use super::digest::{Comparison, compare};
use super::forming::FormingView;
use super::node::{NodeView, grouped};
use crate::output;
use crate::view::time::{now_ms, seconds};

/// A flush that takes longer is no flush, but a disk that does not answer.
const STALL_MS: u64 = 1000;
/// A disk is slow if its p99 is at least this, and so many times that of the others.
const SLOW_US: u64 = 10_000;
const SLOW_TIMES: u64 = 20;
/// What to do when a majority will not come back.
const LOST_QUORUM: &str = "docs/runbooks/lost-quorum.md";
/// Further behind is behind: what a second or so of full load appends.
const LAG_ENTRIES: u64 = 10_000;

/// One thing that is wrong. A contract: fields may be added, never renamed.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Trouble {
    /// The node that it is about; `null`: all of them.
    node: Option<u64>,
    /// A word for programs.
    kind: &'static str,
    /// One line for people.
    what: String,
    /// What to do next; `null`: `what` says it already.
    next: Option<String>,
}

impl Trouble {
    /// What is wrong, and what to do.
    pub(super) fn parts(&self) -> (&str, &str) {
        (&self.what, self.next.as_deref().unwrap_or_default())
    }

    pub(super) fn render(&self) -> String {
        let what = output::text(&self.what);
        match &self.next {
            Some(next) => format!("{what}\nnext: {}", output::text(next)),
            None => what.into_owned(),
        }
    }
}

/// Everything that is wrong, the worst first; names it in the rows of the nodes, too.
pub(super) fn find(view: &mut ClusterView) -> Vec<Trouble> {
    if !view.anybody_answered() {
        return vec![nobody(view)];
    }
    let mut troubles: Vec<Trouble> = no_leader(view).into_iter().chain(different(view)).collect();
    let mut slowness = Vec::new();
    for place in 0..view.nodes.len() {
        let found = of_node(view, place);
        view.nodes[place].trouble = found.as_ref().map(|trouble| trouble.kind);
        match found {
            Some(trouble) if trouble.kind == "unreachable" => troubles.push(trouble),
            found => slowness.extend(found),
        }
    }
    // The row of a node that does not answer says so anyhow.
    view.nodes
        .iter_mut()
        .filter(|node| node.trouble == Some("unreachable"))
        .for_each(|node| node.trouble = None);
    troubles.extend(slowness);
    troubles.extend(told_by_nodes(&view.nodes));
    troubles
}

fn nobody(view: &ClusterView) -> Trouble {
    let reasons = view.nodes.iter().filter_map(|node| node.why.clone()).collect::<Vec<_>>().join("; ");
    let next = "start the nodes, or name their client addresses: --endpoints, TRIPOD_ENDPOINTS";
    Trouble {
        node: None,
        kind: "unreachable",
        what: format!("no node answers: {reasons}"),
        next: Some(next.to_owned()),
    }
}

fn no_leader(view: &ClusterView) -> Option<Trouble> {
    if view.leader.is_some() {
        return None;
    }
    let quorum = &view.quorum;
    let trouble = |kind, what, next: String| Some(Trouble { node: None, kind, what, next: Some(next) });
    if !view.forming.is_empty() {
        let waits = view.forming.iter().map(FormingView::render).collect::<Vec<_>>().join("; ");
        let next = "start those, each with the same --initial: a majority forms the cluster. Nodes that run must reach \
                    each other at the peer addresses of --initial";
        return trouble("forming", format!("the cluster is not formed yet: {waits}"), next.to_owned());
    }
    if quorum.is_lost() {
        let (who, start) = silent_voters(view);
        let what = format!(
            "no leader: {} of {} voters answer, {} must{who}; calls are held",
            quorum.answering, quorum.voters, quorum.needed
        );
        return trouble("no-leader", what, format!("{start}; if they are gone for good: {LOST_QUORUM}"));
    }
    let what = match quorum.voters {
        0 => "no leader: whoever answers has not heard of the cluster's voters yet",
        _ => "no leader, though enough voters answer: an election is under way",
    };
    trouble("no-leader", what.to_owned(), "tripod status --watch".to_owned())
}

/// The voters that do not answer, as the end of a sentence, and which of them are to be started.
fn silent_voters(view: &ClusterView) -> (String, String) {
    let silent = view.nodes.iter().filter(|node| node.why.is_some() && node.voter != Some(false));
    let silent: Vec<u64> = silent.filter_map(NodeView::id).collect();
    let ids = silent.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let who = match silent.len() {
        0 => return (String::new(), "start the nodes that do not answer".to_owned()),
        1 => format!("node {ids}"),
        _ => format!("nodes {ids}"),
    };
    let verb = if silent.len() == 1 { "does" } else { "do" };
    let wanted = view.quorum.needed.saturating_sub(view.quorum.answering);
    let of_which = if silent.len() > wanted {
        format!(", of which {wanted} {} enough", if wanted == 1 { "is" } else { "are" })
    } else {
        String::new()
    };
    (format!(", and {who} {verb} not"), format!("start {who}{of_which}"))
}

/// States that are not the same although they must be.
fn different(view: &ClusterView) -> Option<Trouble> {
    let Comparison::Different { index, nodes } = compare(&view.nodes) else { return None };
    let ids = nodes.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    Some(Trouble {
        node: None,
        kind: "diverged",
        what: format!("the states of nodes {ids} are not the same at index {index}"),
        next: Some("docs/runbooks/corrupt-node.md".to_owned()),
    })
}

/// The worst that is wrong with one node.
fn of_node(view: &ClusterView, place: usize) -> Option<Trouble> {
    let node = &view.nodes[place];
    let id = node.id()?;
    let trouble = |kind, what: String, next: String| {
        Some(Trouble { node: Some(id), kind, what: format!("node {id} {what}"), next: Some(next) })
    };
    if let Some(why) = &node.why {
        return trouble("unreachable", unreachable(node, why), back_or_away(view, node, id));
    }
    if let Some(ms) = node.flush_under_way_ms.filter(|ms| *ms >= STALL_MS) {
        let what = format!("waits for its disk since {}", seconds(ms));
        return trouble("disk-stalled", what, look_at_disk(node, id));
    }
    if let Some(disk) = node.disk.as_ref().filter(|disk| disk.full) {
        let what = format!("has a full disk: {} MiB left in {}", disk.free_bytes >> 20, disk.directory);
        return trouble("disk-full", what, format!("make room on the disk of {}", disk.directory));
    }
    if let (Some(own), Some(others)) = (node.flush_p99_us, others_p99_us(&view.nodes, place))
        && own >= SLOW_US
        && own >= others.saturating_mul(SLOW_TIMES)
    {
        let what = format!(
            "has a slow disk: p99 {} ms, {} times that of the others",
            own / 1000,
            own / others.max(1)
        );
        return trouble("disk-slow", what, look_at_disk(node, id));
    }
    if let Some(lag) = node.lag_entries.filter(|lag| *lag > LAG_ENTRIES) {
        let what = format!("is {} entries behind, and catches up by itself", grouped(lag));
        return trouble("behind", what, "tripod status --watch".to_owned());
    }
    None
}

fn unreachable(node: &NodeView, why: &str) -> String {
    let seen = node.seen.and_then(|seen| Some((seen.by, seen.ms_ago?)));
    let seen = seen.map(|(by, ms)| format!("; node {by} heard it {} ago", seconds(ms))).unwrap_or_default();
    format!("does not answer ({why}){seen}")
}

fn back_or_away(view: &ClusterView, node: &NodeView, id: u64) -> String {
    match node.voter {
        // Without a quorum no change of members can be made.
        _ if view.leader.is_none() && view.quorum.is_lost() => {
            format!("start it again; if it is gone for good: {LOST_QUORUM}")
        }
        Some(false) => format!("start it again; if it is gone for good: tripod member remove {id}"),
        _ => format!("start it again; if it is gone for good: tripod member replace {id} HOST:PORT"),
    }
}

fn look_at_disk(node: &NodeView, id: u64) -> String {
    let directory = node.disk.as_ref().map_or("its data directory", |disk| disk.directory.as_str());
    match node.role.as_str() {
        "leader" => format!("tripod leader transfer; then look at the disk under {directory} on node {id}"),
        _ => format!("look at the disk under {directory} on node {id}"),
    }
}

/// The median of what the other nodes told.
fn others_p99_us(nodes: &[NodeView], place: usize) -> Option<u64> {
    let others = nodes.iter().enumerate().filter(|(other, _)| *other != place);
    let mut told: Vec<u64> = others.filter_map(|(_, node)| node.flush_p99_us).collect();
    told.sort_unstable();
    told.get(told.len() / 2).copied()
}

/// What nodes say themselves, in whole sentences with advice.
fn told_by_nodes(nodes: &[NodeView]) -> Vec<Trouble> {
    let told = |node, kind, what: &String| Trouble { node, kind, what: what.clone(), next: None };
    // Every node tells the leader's word; once is enough.
    let refused = nodes.iter().find_map(|node| node.growth_refused.as_ref());
    let mut troubles: Vec<Trouble> =
        refused.map(|why| told(None, "growth-refused", why)).into_iter().collect();
    let alarms = nodes.iter().filter_map(|node| node.divergence.as_ref());
    troubles.extend(alarms.map(|alarm| told(None, "diverged", alarm)));
    for node in nodes {
        let late = node.backups.as_ref().and_then(|backups| backups.trouble(now_ms()));
        troubles.extend(late.map(|why| {
            let next = "tripod snapshot save FILE, until it is mended".to_owned();
            let what = node.id().map_or_else(|| why.clone(), |id| format!("node {id}: {why}"));
            Trouble { node: node.id(), kind: "backup-late", what, next: Some(next) }
        }));
        let ports = node.closed_job_ports.iter();
        troubles.extend(ports.map(|port| told(node.id(), "job-port-closed", &port.advice)));
    }
    troubles
}
