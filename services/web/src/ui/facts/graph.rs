//! What a scheduler has done out of what: operations and the objects between them, or, of many, functions.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tripod_state::ray::view::{Creator, Kind, TaskState};
use tripod_state::ray::{Argument, Ray};

/// Operations that are shown one by one; of more, one for each function.
pub(crate) const NODES_MAX: usize = 2_000;
/// Functions that are shown.
const FUNCTIONS_MAX: usize = 500;
/// Edges, of either kind.
const EDGES_MAX: usize = 8_000;
/// Tasks whose states are looked up.
const TASKS_MAX: usize = 100_000;
/// Bytes of a function's name.
const NAME_BYTES_MAX: usize = 120;
/// Hexadecimal digits behind a function's name, as Python's drivers write them.
const DIGEST_CHARS: usize = 12;

struct Node {
    id: u64,
    kind: &'static str,
    name: String,
    creator: Option<u64>,
    reads: Vec<u64>,
    makes: Vec<u64>,
}

/// The graph of all operations, or of those of one function.
pub(crate) fn look(ray: &Ray, function: Option<&str>) -> Value {
    let states: BTreeMap<u64, TaskState> =
        ray.tasks(None, TASKS_MAX).into_iter().map(|task| (task.id.0, task.state)).collect();
    let all: Vec<Node> = ray.info().graph.into_iter().filter_map(node).collect();
    let total = all.len();
    let wanted = |node: &Node| function.is_none_or(|function| node.name == function);
    let nodes: Vec<Node> = all.into_iter().filter(wanted).collect();
    if nodes.len() > NODES_MAX && function.is_none() {
        return by_function(&nodes, &states, total);
    }
    let more = nodes.len().saturating_sub(NODES_MAX);
    // The newest: they are what is going on.
    let nodes = &nodes[more..];
    let made_by = made_by(nodes);
    let ids: BTreeSet<u64> = nodes.iter().map(|node| node.id).collect();
    let reads = nodes.iter().flat_map(|node| {
        let from = node.reads.iter().filter_map(|object| made_by.get(object));
        from.map(|from| json!([from, node.id, "data"])).collect::<Vec<_>>()
    });
    let creates = nodes.iter().filter_map(|node| {
        let creator = node.creator.filter(|creator| ids.contains(creator))?;
        Some(json!([creator, node.id, "made"]))
    });
    let shown = nodes.iter().map(|node| {
        json!({
            "id": node.id,
            "kind": node.kind,
            "name": node.name,
            "state": states.get(&node.id).map(|state| word(*state)),
        })
    });
    json!({
        "by": "operation",
        "total": total,
        "left_out": more,
        "nodes": shown.collect::<Vec<_>>(),
        "edges": reads.chain(creates).take(EDGES_MAX).collect::<Vec<_>>(),
    })
}

fn by_function(nodes: &[Node], states: &BTreeMap<u64, TaskState>, total: usize) -> Value {
    let mut counts: BTreeMap<&str, BTreeMap<&str, u64>> = BTreeMap::new();
    let of: BTreeMap<u64, &str> = nodes.iter().map(|node| (node.id, node.name.as_str())).collect();
    for node in nodes {
        let state = states.get(&node.id).map_or(node.kind, |state| word(*state));
        *counts.entry(&node.name).or_default().entry(state).or_default() += 1;
    }
    let made_by = made_by(nodes);
    let mut edges: BTreeSet<(&str, &str)> = BTreeSet::new();
    for node in nodes {
        let from = node.reads.iter().filter_map(|object| of.get(made_by.get(object)?));
        edges.extend(from.map(|from| (*from, node.name.as_str())));
    }
    let left_out = counts.len().saturating_sub(FUNCTIONS_MAX);
    let kept: BTreeSet<&str> = counts.keys().take(FUNCTIONS_MAX).copied().collect();
    let shown = counts.iter().take(FUNCTIONS_MAX).map(|(name, states)| {
        json!({"id": name, "kind": "function", "name": name, "count": states.values().sum::<u64>(), "states": states})
    });
    let edges = edges.iter().filter(|(from, to)| from != to && kept.contains(from) && kept.contains(to));
    json!({
        "by": "function",
        "total": total,
        "left_out": left_out,
        "nodes": shown.collect::<Vec<_>>(),
        "edges": edges.take(EDGES_MAX).map(|(from, to)| json!([from, to, "data"])).collect::<Vec<_>>(),
    })
}

fn made_by(nodes: &[Node]) -> BTreeMap<u64, u64> {
    nodes.iter().flat_map(|node| node.makes.iter().map(|object| (*object, node.id))).collect()
}

fn node(operation: tripod_state::ray::view::Operation) -> Option<Node> {
    let creator = match operation.creator {
        Creator::Task(task) => Some(task.0),
        Creator::Root | Creator::Nobody => None,
    };
    let (kind, name, reads, makes) = match operation.kind {
        Kind::Task { name, arguments, results } => {
            let by_reference = |argument: &Argument| match argument {
                Argument::Object(object) => Some(object.0),
                Argument::Value { .. } => None,
            };
            let reads = arguments.iter().filter_map(by_reference).collect();
            ("task", short(&name.to_string()), reads, results.iter().map(|object| object.0).collect())
        }
        Kind::Put(object) => ("put", "put".to_owned(), Vec::new(), vec![object.0]),
        Kind::Get(object) => ("get", "get".to_owned(), vec![object.0], Vec::new()),
        Kind::Forgotten => return None,
    };
    Some(Node { id: operation.id.0, kind, name, creator, reads, makes })
}

fn word(state: TaskState) -> &'static str {
    match state {
        TaskState::Waiting => "waiting",
        TaskState::Queued => "queued",
        TaskState::Running => "running",
        TaskState::Reported => "reported",
        TaskState::Done => "done",
        TaskState::Failed => "failed",
        TaskState::Cancelled => "cancelled",
    }
}

/// A function's name without what tells programs apart, as `tripod ray graph` writes it.
fn short(function: &str) -> String {
    let digest = |text: &str| text.len() == DIGEST_CHARS && text.chars().all(|c| c.is_ascii_hexdigit());
    let name = function.rsplit_once(':').filter(|(_, last)| digest(last)).map_or(function, |(name, _)| name);
    let name = name.strip_prefix("__main__.").unwrap_or(name);
    name[..name.floor_char_boundary(NAME_BYTES_MAX)].to_owned()
}
