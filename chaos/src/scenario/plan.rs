//! Which fault when: drawn from the seed before the run, and written down with it.

use std::ops::Range;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde::{Deserialize, Serialize};

use tripod_processes::fault::{Fault, Subsystem, Target, Way, Wish};

/// Quiet time at the beginning, in which the workloads get going.
const BEFORE_MS: u64 = 2_000;
/// Quiet time between two faults of a subsystem.
const BETWEEN_MS: Range<u64> = 1_000..5_000;
/// The same behind a change of the members that is one fault among many.
const BETWEEN_SELDOM_MS: Range<u64> = 8_000..25_000;

/// A fault and its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Milliseconds from the beginning of the safety phase.
    pub at_ms: u64,
    pub lasts_ms: u64,
    pub fault: Fault,
}

/// Every fault of a run, in the order in which they begin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// How long the safety phase is.
    pub length_ms: u64,
    pub steps: Vec<Step>,
}

/// What a scenario chooses from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    KillLeader,
    KillFollower,
    KillAll,
    PauseLeader,
    PauseFollower,
    DeposeLeader,
    TerminateLeader,
    TerminateFollower,
    Upgrade,
    TransferLeadership,
    IsolateLeader,
    IsolateFollower,
    Deaf,
    Mute,
    Bridge,
    CutClients,
    Delay,
    Slow,
    Loss,
    Refuse,
    PowerCut,
    PowerCutAll,
    DiskCut,
    DiskCutAll,
    FlipBit,
    SlowDisk,
    StallDisk,
    FailFlush,
    FullDisk,
    ClockJump,
    KillWorker,
    KillStore,
    KillMachine,
    /// Somebody comes, goes, or gets another part to play.
    Member(Wish),
    /// The same, less often.
    Seldom(Wish),
}

impl Plan {
    /// The plan of a seed. The subsystems do not influence each other.
    pub(super) fn draw(kinds: &[Kind], seed: u64, length: Duration) -> Self {
        let length_ms = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
        let mut plan = Self { length_ms, steps: Vec::new() };
        for (number, subsystem) in
            [Subsystem::Machine, Subsystem::Network, Subsystem::Members, Subsystem::Peers]
                .into_iter()
                .enumerate()
        {
            let mut random = StdRng::seed_from_u64(seed.wrapping_mul(2).wrapping_add(number as u64));
            let kinds: Vec<Kind> =
                kinds.iter().copied().filter(|kind| kind.subsystem() == subsystem).collect();
            plan.fill(&kinds, &mut random);
        }
        plan.steps.sort_by_key(|step| step.at_ms);
        plan
    }

    fn fill(&mut self, kinds: &[Kind], random: &mut StdRng) {
        if kinds.is_empty() {
            return;
        }
        let mut at_ms = BEFORE_MS;
        while at_ms < self.length_ms {
            let kind = kinds[random.random_range(0..kinds.len())];
            let (fault, lasts_ms) = kind.draw(random);
            let lasts_ms = lasts_ms.min(self.length_ms - at_ms);
            self.steps.push(Step { at_ms, lasts_ms, fault });
            at_ms += lasts_ms + random.random_range(kind.rest_ms());
        }
    }
}

impl Kind {
    /// What every machine can do; for the others, nodes run with a library that a C compiler makes.
    pub(super) const EVERYWHERE: &'static [Self] = &[
        Self::KillLeader,
        Self::KillFollower,
        Self::KillAll,
        Self::PauseLeader,
        Self::PauseFollower,
        Self::TerminateLeader,
        Self::TerminateFollower,
        Self::TransferLeadership,
        Self::IsolateLeader,
        Self::IsolateFollower,
        Self::Deaf,
        Self::Mute,
        Self::Bridge,
        Self::CutClients,
        Self::Delay,
        Self::Slow,
        Self::Loss,
        Self::Refuse,
        Self::Seldom(Wish::Add),
        Self::Seldom(Wish::Promote),
        Self::Seldom(Wish::Demote),
        Self::Seldom(Wish::Remove),
        Self::Seldom(Wish::Replace),
        Self::Seldom(Wish::Transfer),
        Self::Seldom(Wish::Move),
        Self::Seldom(Wish::Drain),
        Self::Seldom(Wish::Undrain),
    ];

    /// How long its subsystem rests behind it.
    fn rest_ms(self) -> Range<u64> {
        if matches!(self, Self::Seldom(_)) { BETWEEN_SELDOM_MS } else { BETWEEN_MS }
    }

    /// Whether it changes the members.
    pub(super) fn changes_members(self) -> bool {
        self.subsystem() == Subsystem::Members
    }

    /// Whether it needs the library between nodes and their disks.
    pub(super) fn needs_library(self) -> bool {
        self.draw(&mut StdRng::seed_from_u64(0)).0.needs_library()
    }

    /// Whether it needs a file system of its own for each node.
    pub(super) fn needs_disks(self) -> bool {
        self.draw(&mut StdRng::seed_from_u64(0)).0.needs_disks()
    }

    /// The subsystem of all faults of this kind.
    fn subsystem(self) -> Subsystem {
        self.draw(&mut StdRng::seed_from_u64(0)).0.subsystem()
    }

    /// A fault of this kind, and for how many milliseconds.
    fn draw(self, random: &mut StdRng) -> (Fault, u64) {
        let follower = Target::Follower(random.random_range(0..4));
        let anybody = if random.random_bool(0.5) { Target::Leader } else { follower };
        let network_ms = random.random_range(2_000..12_000);
        match self {
            Self::KillLeader => (Fault::Kill(Target::Leader), random.random_range(0..6_000)),
            Self::KillFollower => (Fault::Kill(follower), random.random_range(0..8_000)),
            Self::KillAll => (Fault::KillAll, random.random_range(0..3_000)),
            Self::PauseLeader => (Fault::Pause(Target::Leader), pause_ms(random)),
            Self::PauseFollower => (Fault::Pause(follower), pause_ms(random)),
            Self::DeposeLeader => (Fault::Pause(Target::Leader), random.random_range(1_000..3_500)),
            Self::TerminateLeader => (Fault::Terminate(Target::Leader), random.random_range(0..4_000)),
            Self::TerminateFollower => (Fault::Terminate(follower), random.random_range(0..4_000)),
            Self::Upgrade => (Fault::Upgrade(anybody), random.random_range(0..2_000)),
            Self::TransferLeadership => (Fault::TransferLeadership, 0),
            Self::IsolateLeader => {
                (Fault::Isolate { target: Target::Leader, reset: random.random_bool(0.5) }, network_ms)
            }
            Self::IsolateFollower => {
                (Fault::Isolate { target: follower, reset: random.random_bool(0.5) }, network_ms)
            }
            Self::Deaf => (Fault::OneWay { target: anybody, way: Way::Inbound }, network_ms),
            Self::Mute => (Fault::OneWay { target: anybody, way: Way::Outbound }, network_ms),
            Self::Bridge => (Fault::Bridge, network_ms),
            Self::CutClients => (Fault::CutClients(anybody), network_ms),
            Self::Delay => {
                let (least_ms, jitter_ms) = (random.random_range(5..150), random.random_range(0..200));
                (Fault::Delay { target: anybody, least_ms, jitter_ms }, network_ms)
            }
            Self::Slow => {
                let bytes_per_second = random.random_range(2_000..100_000);
                (Fault::Slow { target: anybody, bytes_per_second }, network_ms)
            }
            Self::Loss => {
                let lifetime_max_ms = random.random_range(100..3_000);
                (Fault::Loss { target: anybody, lifetime_max_ms }, network_ms)
            }
            Self::Refuse => (Fault::Refuse(anybody), network_ms),
            Self::PowerCut => {
                (Fault::PowerCut { target: anybody, chance: random.random() }, random.random_range(0..4_000))
            }
            Self::PowerCutAll => {
                (Fault::PowerCutAll { chance: random.random() }, random.random_range(0..3_000))
            }
            Self::DiskCut => (Fault::DiskCut(anybody), random.random_range(0..4_000)),
            Self::DiskCutAll => (Fault::DiskCutAll, random.random_range(0..3_000)),
            Self::FlipBit => {
                (Fault::FlipBit { target: anybody, chance: random.random() }, random.random_range(0..3_000))
            }
            Self::SlowDisk => {
                (Fault::SlowDisk { target: anybody, delay_ms: random.random_range(5..300) }, network_ms)
            }
            Self::StallDisk => (Fault::StallDisk(anybody), random.random_range(300..10_000)),
            Self::FailFlush => {
                let passes = random.random_range(0..20);
                (Fault::FailFlush { target: anybody, passes }, random.random_range(1_000..5_000))
            }
            Self::FullDisk => (Fault::FullDisk(anybody), random.random_range(1_000..8_000)),
            Self::KillWorker | Self::KillStore | Self::KillMachine => self.draw_peer(random),
            Self::Member(wish) | Self::Seldom(wish) => {
                (Fault::Members { wish, chance: random.random() }, random.random_range(1_000..4_000))
            }
            Self::ClockJump => {
                let hour_ms = 3_600_000;
                let shift_ms = random.random_range(-hour_ms..=hour_ms);
                (Fault::ClockJump { target: anybody, shift_ms }, network_ms)
            }
        }
    }
}

impl Kind {
    /// [`Self::draw`], of what is done to the scheduler's workers and stores.
    fn draw_peer(self, random: &mut StdRng) -> (Fault, u64) {
        let (chance, lasts_ms) = (random.random(), random.random_range(500..6_000));
        match self {
            Self::KillStore => (Fault::KillStore { chance }, lasts_ms),
            Self::KillMachine => (Fault::KillMachine { chance }, lasts_ms),
            _ => (Fault::KillWorker { chance }, lasts_ms),
        }
    }
}

/// Half a second to a minute, mostly some seconds: shorter and longer than an election takes.
fn pause_ms(random: &mut StdRng) -> u64 {
    match random.random_range(0..20) {
        0..14 => random.random_range(500..5_000),
        14..19 => random.random_range(5_000..20_000),
        _ => random.random_range(20_000..60_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: Duration = Duration::from_secs(600);

    #[test]
    fn a_seed_has_one_plan() {
        let plan = Plan::draw(Kind::EVERYWHERE, 7, LENGTH);
        assert_eq!(plan, Plan::draw(Kind::EVERYWHERE, 7, LENGTH));
        assert_ne!(plan, Plan::draw(Kind::EVERYWHERE, 8, LENGTH));
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
    }

    #[test]
    fn faults_of_a_lane_follow_each_other_and_end_with_the_phase() {
        for seed in 0..50 {
            let plan = Plan::draw(Kind::EVERYWHERE, seed, LENGTH);
            for subsystem in [Subsystem::Machine, Subsystem::Network] {
                let steps: Vec<&Step> =
                    plan.steps.iter().filter(|step| step.fault.subsystem() == subsystem).collect();
                assert!(steps.len() > 20, "{} faults in ten minutes", steps.len());
                for pair in steps.windows(2) {
                    assert!(pair[0].at_ms + pair[0].lasts_ms < pair[1].at_ms);
                }
            }
            assert!(plan.steps.iter().all(|step| step.at_ms + step.lasts_ms <= plan.length_ms));
        }
    }

    #[test]
    fn what_is_to_be_seldom_is() {
        let plan = Plan::draw(Kind::EVERYWHERE, 3, LENGTH);
        let changes: Vec<&Step> =
            plan.steps.iter().filter(|step| step.fault.subsystem() == Subsystem::Members).collect();
        assert!((20..70).contains(&changes.len()), "{} changes in ten minutes", changes.len());
        for pair in changes.windows(2) {
            let rest_ms = pair[1].at_ms - pair[0].at_ms - pair[0].lasts_ms;
            assert!(rest_ms >= BETWEEN_SELDOM_MS.start, "{pair:?}");
        }
    }

    #[test]
    fn every_kind_happens() {
        let plan = Plan::draw(Kind::EVERYWHERE, 1, Duration::from_secs(6_000));
        let kinds: std::collections::BTreeSet<_> = plan.steps.iter().map(|step| step.fault.kind()).collect();
        assert_eq!(kinds.len(), Kind::EVERYWHERE.len(), "{kinds:?}");
    }

    #[test]
    fn no_kinds_make_an_empty_plan() {
        assert_eq!(Plan::draw(&[], 1, LENGTH).steps, []);
    }
}
