//! What is known of each cluster, by processes of its nodes.

use std::collections::{BTreeMap, BTreeSet};

use crate::check::Rules;
use crate::history::{
    Act, Call, ClusterNode, History, Job, ListedNode, Micros, Operation, Rank, Reply, Round,
};

/// All clusters of a history.
#[derive(Default)]
pub(super) struct Clusters<'a> {
    by_round: BTreeMap<(&'a Job, Round), Cluster<'a>>,
    examined: usize,
}

/// One after the other of a job's.
#[derive(Default)]
pub(super) struct Cluster<'a> {
    pub(super) lives: BTreeMap<&'a ClusterNode, Life<'a>>,
}

/// One process of a node. Everything stands in the order in which it began.
#[derive(Default)]
pub(super) struct Life<'a> {
    /// What it was answered.
    pub(super) ranks: Vec<(&'a Operation, Rank)>,
    /// Each list of the members that it was told, with its own rank.
    pub(super) lists: Vec<(&'a Operation, Rank, &'a [ListedNode])>,
    pub(super) tells: Vec<(&'a Operation, u32)>,
    pub(super) heard: Vec<(&'a Operation, u32)>,
    pub(super) finishes: Vec<&'a Operation>,
    pub(super) released: Option<&'a Operation>,
    pub(super) ended: Option<&'a Operation>,
}

impl<'a> Clusters<'a> {
    pub(super) fn of(history: &'a History) -> Self {
        let mut clusters = Self::default();
        for operation in &history.operations {
            if let Call::Node { node, act } = &operation.call {
                clusters.examined += usize::from(operation.reply().is_some());
                let cluster = clusters.by_round.entry((&node.job, node.round)).or_default();
                cluster.lives.entry(node).or_default().add(operation, act);
            }
        }
        clusters
    }

    /// How many answers there were.
    pub(super) fn examined(&self) -> usize {
        self.examined
    }

    pub(super) fn each(&self) -> impl Iterator<Item = (String, &Cluster<'a>)> {
        self.by_round.iter().map(|((job, round), cluster)| (format!("cluster #{round} of {job}"), cluster))
    }
}

impl<'a> Life<'a> {
    fn add(&mut self, operation: &'a Operation, act: &'a Act) {
        match act {
            Act::Join | Act::ReadRank => {
                if let Some(Reply::Rank(rank)) = operation.reply() {
                    self.ranks.push((operation, *rank));
                }
            }
            Act::Tell { event } => self.tells.push((operation, *event)),
            Act::Finish => self.finishes.push(operation),
            Act::End => self.ended = Some(operation),
            Act::HearMembers { rank, members } => self.lists.push((operation, *rank, members)),
            Act::HearEvent { event } => self.heard.push((operation, *event)),
            Act::HearFinish => {
                self.released.get_or_insert(operation);
            }
        }
    }

    /// From when it surely was one of those whom events reach.
    pub(super) fn entered(&self) -> Option<Micros> {
        self.lists.first().map(|(told, _, _)| told.completed)
    }

    /// Whether it was answered that it has nothing left to do.
    pub(super) fn has_finished(&self) -> bool {
        self.finishes.iter().any(|finish| finish.acknowledged())
    }

    /// What it heard, each event when it heard of it first.
    pub(super) fn heard_first(&self) -> Vec<(&'a Operation, u32)> {
        let mut known = BTreeSet::new();
        self.heard.iter().filter(|(_, event)| known.insert(*event)).copied().collect()
    }
}

/// Whether a leader may have told it that had been stopped or cut off, and knew of nothing newer.
pub(super) fn by_deposed_leader(operation: &Operation, history: &History, rules: &Rules) -> bool {
    let Some(aftermath) = rules.deposed_leader else { return false };
    history.faults.iter().any(|fault| {
        let over = fault.ended.map_or(Micros(u64::MAX), |ended| ended.plus(aftermath));
        fault.began < operation.completed && operation.invoked < over
    })
}

/// The first pair of things that two sequences have in different orders: as the second one has it, and so the other way
/// round in the first one.
pub(super) fn contradiction<T: Ord + Copy>(one: &[T], other: &[T]) -> Option<(T, T)> {
    let places: BTreeMap<T, usize> = one.iter().zip(0..).map(|(thing, place)| (*thing, place)).collect();
    let common: Vec<(T, usize)> =
        other.iter().filter_map(|thing| Some((*thing, *places.get(thing)?))).collect();
    let pair = common.windows(2).find(|pair| pair[0].1 > pair[1].1)?;
    Some((pair[0].0, pair[1].0))
}
