//! In which order tileables are tiled, and whether they can be.

use std::collections::{BTreeMap, BTreeSet};

use crate::graph::TileableGraph;
use crate::key::TileableKey;
use crate::limits::{DATA_BYTES_MAX, INPUTS_MAX, TILEABLE_EDGES_MAX, TILEABLES_MAX};
use crate::operator::Arity;
use crate::refusal::{Reason, Refusal};

/// A graph that is one: keys are known, and nothing is made of itself.
#[derive(Debug)]
pub(crate) struct Order {
    /// Places of the tileables of which targets are made, inputs first.
    pub(crate) places: Vec<usize>,
    /// The places of the inputs of every tileable.
    pub(crate) inputs: Vec<Vec<usize>>,
    /// Places of what is wanted, each once.
    pub(crate) targets: Vec<usize>,
}

/// Looks at everything that needs no rule.
pub(crate) fn order(graph: &TileableGraph) -> Result<Order, Refusal> {
    let bound = |reason| Err(Refusal { node: None, reason });
    let tileables = graph.tileables.len();
    if tileables > TILEABLES_MAX {
        return bound(Reason::TooManyTileables { tileables, most: TILEABLES_MAX });
    }
    if graph.tileables.iter().map(|tileable| tileable.inputs.len()).sum::<usize>() > TILEABLE_EDGES_MAX {
        return bound(Reason::TooManyInputs { most: TILEABLE_EDGES_MAX });
    }
    let bytes = graph.tileables.iter().map(|tileable| tileable.data.len()).sum();
    if bytes > DATA_BYTES_MAX {
        return bound(Reason::TooMuchData { bytes, most: DATA_BYTES_MAX });
    }
    let places = places(graph)?;
    let mut inputs = Vec::with_capacity(tileables);
    for tileable in &graph.tileables {
        let refused = |reason| Refusal { node: Some(tileable.key.clone()), reason };
        check_inputs(tileable.operator.inputs(), tileable.inputs.len()).map_err(refused)?;
        let place = |key: &TileableKey| {
            places.get(key).copied().ok_or_else(|| refused(Reason::UnknownInput(key.clone())))
        };
        inputs.push(tileable.inputs.iter().map(place).collect::<Result<Vec<_>, _>>()?);
    }
    let targets = targets(graph, &places, &inputs)?;
    let sorted = sort(graph, &inputs)?;
    let needed = needed(&sorted, &inputs, &targets);
    let places = sorted.into_iter().filter(|place| needed.contains(place)).collect();
    Ok(Order { places, inputs, targets })
}

fn places(graph: &TileableGraph) -> Result<BTreeMap<&TileableKey, usize>, Refusal> {
    let mut places = BTreeMap::new();
    for (place, tileable) in graph.tileables.iter().enumerate() {
        let refused = |reason| {
            // A key that is none is told as far as it may be long.
            let shown = tileable.key.0.chars().take(crate::limits::KEY_CHARS_MAX).collect();
            Err(Refusal { node: Some(TileableKey(shown)), reason })
        };
        if !tileable.key.is_valid() {
            return refused(Reason::Key);
        }
        if places.insert(&tileable.key, place).is_some() {
            return refused(Reason::SameKey);
        }
    }
    Ok(places)
}

fn check_inputs(wanted: Arity, is: usize) -> Result<(), Reason> {
    if is > INPUTS_MAX {
        return Err(Reason::TooManyInputs { most: INPUTS_MAX });
    }
    let fits = match wanted {
        Arity::Exactly(count) => is == count,
        Arity::Some => is > 0,
    };
    let told = match wanted {
        Arity::Exactly(count) => count.to_string(),
        Arity::Some => "at least one".to_owned(),
    };
    if fits { Ok(()) } else { Err(Reason::Inputs { is, wanted: told }) }
}

/// What is wanted, in the order in which it was asked for.
fn targets(
    graph: &TileableGraph,
    places: &BTreeMap<&TileableKey, usize>,
    inputs: &[Vec<usize>],
) -> Result<Vec<usize>, Refusal> {
    if graph.targets.is_empty() {
        let used: BTreeSet<usize> = inputs.iter().flatten().copied().collect();
        return Ok((0..graph.tileables.len()).filter(|place| !used.contains(place)).collect());
    }
    if graph.targets.len() > TILEABLES_MAX {
        let reason = Reason::TooManyTileables { tileables: graph.targets.len(), most: TILEABLES_MAX };
        return Err(Refusal { node: None, reason });
    }
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for key in &graph.targets {
        let Some(place) = places.get(key).copied() else {
            return Err(Refusal { node: None, reason: Reason::UnknownTarget(key.clone()) });
        };
        if seen.insert(place) {
            found.push(place);
        }
    }
    Ok(found)
}

/// All places, inputs first; of those that could be next the first one.
fn sort(graph: &TileableGraph, inputs: &[Vec<usize>]) -> Result<Vec<usize>, Refusal> {
    let mut readers = vec![Vec::new(); inputs.len()];
    let mut missing: Vec<usize> = inputs.iter().map(Vec::len).collect();
    for (place, inputs) in inputs.iter().enumerate() {
        for input in inputs {
            readers[*input].push(place);
        }
    }
    let mut ready: BTreeSet<usize> = (0..inputs.len()).filter(|place| missing[*place] == 0).collect();
    let mut sorted = Vec::with_capacity(inputs.len());
    while let Some(place) = ready.pop_first() {
        sorted.push(place);
        for reader in &readers[place] {
            missing[*reader] -= 1;
            if missing[*reader] == 0 {
                ready.insert(*reader);
            }
        }
    }
    if sorted.len() < inputs.len() {
        return Err(cycle(graph, inputs, &missing));
    }
    Ok(sorted)
}

/// Who cannot be sorted has an input that cannot, so following those comes back to where it was.
fn cycle(graph: &TileableGraph, inputs: &[Vec<usize>], missing: &[usize]) -> Refusal {
    let stuck = |place: &usize| missing[*place] > 0;
    let mut at = (0..inputs.len()).find(stuck).expect("the caller saw that one is not sorted");
    let mut seen = Vec::new();
    let mut when = BTreeMap::new();
    while !when.contains_key(&at) {
        when.insert(at, seen.len());
        seen.push(at);
        at = inputs[at].iter().copied().find(stuck).expect("who is not sorted has an input that is not");
    }
    let key = |place: usize| graph.tileables[place].key.clone();
    let mut path: Vec<TileableKey> = seen[when[&at]..].iter().copied().map(key).collect();
    path.truncate(CYCLE_TOLD_MAX);
    Refusal { node: Some(key(at)), reason: Reason::Cycle(path) }
}

/// Tileables of a cycle that are told.
const CYCLE_TOLD_MAX: usize = 16;

fn needed(sorted: &[usize], inputs: &[Vec<usize>], targets: &[usize]) -> BTreeSet<usize> {
    let mut needed: BTreeSet<usize> = targets.iter().copied().collect();
    for place in sorted.iter().rev() {
        if needed.contains(place) {
            needed.extend(inputs[*place].iter().copied());
        }
    }
    needed
}
