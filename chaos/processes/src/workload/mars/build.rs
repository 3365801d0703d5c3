//! Graphs of chunks whose result is known: each node makes a number of its own and those of its inputs together.

use rand::RngExt as _;
use rand::rngs::StdRng;
use tripod_proto::mars::v1 as pb;

const NODES_MAX: usize = 5;
const INPUTS_MAX: usize = 3;
const NUMBER_MAX: u64 = 1_000;

/// A chunk of the session that was made before, and the number that it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Made {
    pub(super) key: String,
    pub(super) number: u64,
}

/// A graph and what comes of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    pub(super) nodes: Vec<pb::ChunkNode>,
    /// The chunk that is its result.
    pub(super) target: String,
    /// `None`: it fails.
    pub(super) makes: Option<u64>,
}

/// A graph of that name. `made`: what one of its nodes reads besides.
pub(super) fn plan(random: &mut StdRng, name: &str, made: Option<&Made>) -> Plan {
    let count = random.random_range(1..=NODES_MAX);
    let fails = random.random_ratio(1, 8).then(|| random.random_range(0..count));
    let reader = random.random_range(0..count);
    let (mut nodes, mut numbers): (Vec<pb::ChunkNode>, Vec<u64>) = (Vec::new(), Vec::new());
    for place in 0..count {
        let number = random.random_range(0..NUMBER_MAX);
        let mut sum = number;
        let mut inputs = Vec::new();
        // The one before is always read: whatever fails, the result needs it.
        if let Some(before) = place.checked_sub(1) {
            let more = (0..random.random_range(0..INPUTS_MAX)).map(|_| random.random_range(0..place));
            for input in [before].into_iter().chain(more.collect::<Vec<_>>()) {
                inputs.push(nodes[input].key.clone());
                sum += numbers[input];
            }
        }
        if let Some(made) = made.filter(|_| place == reader) {
            inputs.push(made.key.clone());
            sum += made.number;
        }
        let op_type = match fails {
            Some(failing) if failing == place => "fail",
            _ if random.random_ratio(1, 5) => "slow",
            _ => "sum",
        };
        nodes.push(pb::ChunkNode {
            key: format!("{name}.{place}"),
            op_type: op_type.to_owned(),
            payload: number.to_string().into_bytes().into(),
            inputs,
            retryable: true,
            ..Default::default()
        });
        numbers.push(sum);
    }
    let makes = numbers.last().copied().filter(|_| fails.is_none());
    Plan { target: format!("{name}.{}", count - 1), nodes, makes }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rand::SeedableRng as _;

    use super::*;

    #[test]
    fn a_plan_knows_what_its_nodes_make() {
        let made = Made { key: "old.0".to_owned(), number: 7 };
        let (mut failing, mut reading) = (0, 0);
        for seed in 0..200 {
            let plan = plan(&mut StdRng::seed_from_u64(seed), "g", Some(&made));
            let mut known: BTreeMap<String, u64> = BTreeMap::from([(made.key.clone(), made.number)]);
            for node in &plan.nodes {
                let number: u64 = std::str::from_utf8(&node.payload).unwrap().parse().unwrap();
                let sum: u64 = node.inputs.iter().map(|input| known[input]).sum();
                known.insert(node.key.clone(), number + sum);
                reading += u32::from(node.inputs.contains(&made.key));
            }
            let fails = plan.nodes.iter().any(|node| node.op_type == "fail");
            assert_eq!(plan.makes, (!fails).then(|| known[&plan.target]), "{plan:?}");
            failing += u32::from(fails);
        }
        assert!((5..60).contains(&failing), "{failing}");
        assert_eq!(reading, 200);
    }
}
