//! What a seed decides before the simulation begins: the cluster, its network, and when what goes wrong.

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tripod_raft::Timing;
use tripod_state::ids::DurationMs;

use super::fault::{Fault, Victim};
use super::observation::SimTime;

/// A fault and when it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(crate) fault: Fault,
    pub(crate) from: SimTime,
    pub(crate) until: SimTime,
}

/// Everything that the seed decides beforehand.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) nodes: usize,
    pub(crate) timing: Timing,
    pub(crate) snapshot_every_entries: u64,
    pub(crate) keep_entries: u64,
    /// The slowest message in a good network, in milliseconds.
    pub(crate) latency_max_ms: u64,
    /// Further machines, on which nodes may be started that join.
    pub(crate) spares: usize,
    /// In the order in which they begin; at most one of the network and one of another kind at a time.
    pub(crate) faults: Vec<Planned>,
}

/// The cluster is left alone for so long at the beginning.
const QUIET_MS: u64 = 1500;
/// Machines on which nodes may be started that join, in a cluster whose members change.
const SPARES: usize = 3;

/// How long a fault lasts that has a leader go stale, in milliseconds: an election without timers, what is written and read
/// then, and the time in which the old leader hears of it.
pub(crate) const STALE_LEADER_MS: u64 = 1000;

/// Whether leaders go stale in the run of a seed: in one of five.
fn leaders_go_stale(seed: u64) -> bool {
    seed % 5 == 1
}

/// Whether the members change in the run of a seed: in every other one.
pub(crate) fn members_change(seed: u64) -> bool {
    seed.is_multiple_of(2)
}

impl Plan {
    /// The plan of a seed for faults up to `faults_until`.
    pub(crate) fn new(seed: u64, faults_until: SimTime) -> Self {
        let mut dice = StdRng::seed_from_u64(seed);
        let nodes = if dice.random_ratio(1, 4) { 5 } else { 3 };
        let heartbeat = dice.random_range(30..=100);
        let election_min = heartbeat * dice.random_range(3..=5);
        let timing = Timing {
            heartbeat: DurationMs(heartbeat),
            election_min: DurationMs(election_min),
            election_max: DurationMs(election_min * 2),
        };
        let snapshot_every_entries = *pick(&mut dice, &[50, 100, 200, 400, 1000]);
        let keep_entries = *pick(&mut dice, &[0, 10, 50, 200]);
        let latency_max_ms = *pick(&mut dice, &[2, 5, 10, 20]);
        let spares = if members_change(seed) { SPARES } else { 0 };
        let mut faults = in_turn(&mut dice, nodes + spares, faults_until, network_fault);
        if leaders_go_stale(seed) {
            with_stale_leaders(&mut faults);
        }
        faults.extend(in_turn(&mut dice, nodes + spares, faults_until, node_fault));
        faults.sort_by_key(|planned| planned.from);
        Self { nodes, timing, snapshot_every_entries, keep_entries, latency_max_ms, spares, faults }
    }

    /// Whether leaders go stale, so that there must be somebody who reads there.
    pub(crate) fn has_stale_leaders(&self) -> bool {
        self.faults.iter().any(|planned| planned.fault == Fault::StaleLeader)
    }

    /// For how long another node leads before a stale leader may ask others, in milliseconds: something is written by then,
    /// and the old one, which gives up after [`Timing::election_max`] without an answer, has not.
    pub(crate) fn stale_for_ms(&self) -> u64 {
        self.timing.election_max.0 / 3
    }

    /// The machines, those without a node included.
    pub(crate) fn places(&self) -> usize {
        self.nodes + self.spares
    }
}

fn pick<'a, T>(dice: &mut StdRng, from: &'a [T]) -> &'a T {
    &from[dice.random_range(0..from.len())]
}

/// One fault after the other.
fn in_turn(
    dice: &mut StdRng,
    nodes: usize,
    end: SimTime,
    draw: fn(&mut StdRng, usize) -> (Fault, u64),
) -> Vec<Planned> {
    let mut faults = Vec::new();
    let mut now = QUIET_MS + dice.random_range(0..1500);
    loop {
        let (fault, lasts_ms) = draw(dice, nodes);
        let until = now + lasts_ms;
        if until >= end.0 {
            return faults;
        }
        faults.push(Planned { fault, from: SimTime(now), until: SimTime(until) });
        now = until + dice.random_range(100..1500);
    }
}

/// In the place of every other one that is long enough a leader goes stale.
fn with_stale_leaders(faults: &mut [Planned]) {
    let is_long = |planned: &&mut Planned| planned.until.since_ms(planned.from) >= STALE_LEADER_MS;
    for planned in faults.iter_mut().filter(is_long).step_by(2) {
        planned.fault = Fault::StaleLeader;
        planned.until = SimTime(planned.from.0 + STALE_LEADER_MS);
    }
}

fn victim(dice: &mut StdRng, nodes: usize) -> Victim {
    if dice.random_ratio(3, 5) { Victim::Leader } else { Victim::Node(dice.random_range(0..nodes)) }
}

fn network_fault(dice: &mut StdRng, nodes: usize) -> (Fault, u64) {
    let whom = victim(dice, nodes);
    let lasts_ms = dice.random_range(200..3000);
    let fault = match dice.random_range(0..20) {
        0..=4 => Fault::Isolate(whom),
        5..=6 => Fault::Mute(whom),
        7..=8 => Fault::Deaf(whom),
        9..=10 => Fault::Bridge(whom),
        11..=12 => Fault::Split,
        13 => Fault::ClientsSee(whom),
        14..=15 => Fault::Hold(whom),
        16..=17 => Fault::Slow(whom, dice.random_range(20..300)),
        _ => Fault::Lossy(dice.random_range(1..20)),
    };
    (fault, lasts_ms)
}

fn node_fault(dice: &mut StdRng, nodes: usize) -> (Fault, u64) {
    let whom = victim(dice, nodes);
    let fault = match dice.random_range(0..16) {
        0..=6 => Fault::PowerCut(whom),
        7..=8 => Fault::Kill(whom),
        9 => Fault::PowerCutOfAll,
        10..=12 => Fault::SlowDisk(whom, dice.random_range(5..150)),
        13..=14 => Fault::SlowDisk(whom, dice.random_range(800..2500)),
        _ => Fault::ClockJump(whom, dice.random_range(-3_600_000..3_600_000)),
    };
    (fault, dice.random_range(50..2500))
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: SimTime = SimTime(30_000);

    #[test]
    fn a_seed_repeats_its_plan_and_another_seed_has_another() {
        let text = |seed| format!("{:?}", Plan::new(seed, END));
        assert_eq!(text(7), text(7));
        assert_ne!(text(7), text(8));
    }

    #[test]
    fn every_fault_ends_in_time_and_two_of_a_kind_never_overlap() {
        for seed in 0..200 {
            let plan = Plan::new(seed, END);
            for of_network in [true, false] {
                let of_kind =
                    plan.faults.iter().filter(|planned| planned.fault.is_of_network() == of_network);
                let mut end = SimTime(QUIET_MS);
                for planned in of_kind {
                    assert!(end <= planned.from && planned.from < planned.until, "{planned:?}");
                    end = planned.until;
                }
                assert!(end < END);
            }
        }
    }

    #[test]
    fn leaders_go_stale_several_times_in_one_seed_of_five_and_in_no_other() {
        for seed in 0..100 {
            let plan = Plan::new(seed, END);
            let stale = plan.faults.iter().filter(|planned| planned.fault == Fault::StaleLeader).count();
            assert_eq!((stale >= 2, stale > 0), (seed % 5 == 1, seed % 5 == 1), "seed {seed}: {stale}");
            assert_eq!(plan.has_stale_leaders(), stale > 0);
        }
    }

    #[test]
    fn a_hundred_seeds_meet_every_kind_of_fault() {
        let kinds: std::collections::BTreeSet<_> = (0..100)
            .flat_map(|seed| Plan::new(seed, END).faults)
            .map(|planned| planned.fault.kind())
            .collect();
        assert_eq!(kinds.len(), 15, "{kinds:?}");
        assert!((0..100).any(|seed| Plan::new(seed, END).nodes == 5));
    }
}
