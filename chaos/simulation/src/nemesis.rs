//! Does to the cluster what the plan says, and undoes it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use turmoil::Sim;

use super::fault::{Fault, Victim};
use super::node::Site;
use super::observation::SimTime;
use super::plan::{Plan, Planned};
use super::stale_leader::StaleLeader;
use super::witness::{Witness, micros};
use tripod_checkers::history::OpenFault;

/// The faults of one run.
pub(crate) struct Nemesis {
    seed: u64,
    sites: Vec<Arc<Site>>,
    clients: Vec<String>,
    latency_max: Duration,
    /// For how long another node must have led before a stale leader may ask others, in milliseconds.
    stale_for_ms: u64,
    /// What is still to come, the next one last.
    coming: Vec<Planned>,
    present: Vec<Present>,
    /// The places without power.
    dark: BTreeSet<usize>,
    crashes: u64,
    counts: BTreeMap<String, u64>,
    witness: Witness,
}

/// A fault that is there.
struct Present {
    planned: Planned,
    /// Whom it hit, by place.
    hit: usize,
    recorded: OpenFault,
    stale: Option<StaleLeader>,
}

impl Nemesis {
    pub(crate) fn new(
        seed: u64,
        plan: &Plan,
        sites: &[Arc<Site>],
        clients: &[String],
        witness: &Witness,
    ) -> Self {
        Self {
            seed,
            sites: sites.to_vec(),
            clients: clients.to_vec(),
            latency_max: Duration::from_millis(plan.latency_max_ms),
            stale_for_ms: plan.stale_for_ms(),
            coming: plan.faults.iter().rev().copied().collect(),
            present: Vec::new(),
            dark: BTreeSet::new(),
            crashes: 0,
            counts: BTreeMap::new(),
            witness: witness.clone(),
        }
    }

    /// Does what is due.
    pub(crate) fn turn(&mut self, sim: &mut Sim<'_>, at: SimTime) {
        let over = |present: &Present| present.planned.until <= at;
        while let Some(place) = self.present.iter().position(over) {
            let present = self.present.remove(place);
            self.undo(sim, at, present);
        }
        for stale in self.present.iter_mut().filter_map(|present| present.stale.as_mut()) {
            if stale.turn(&self.sites, at) {
                self.witness.note(at, "fault", format_args!("a stale leader reaches voters"));
                self.witness.count("stale leaders that reached voters");
            }
        }
        while self.coming.last().is_some_and(|planned| planned.from <= at) {
            let planned = self.coming.pop().expect("it was just seen");
            self.begin(sim, at, planned);
        }
        self.witness.set_calm(at, self.present.is_empty());
    }

    /// How often each kind of fault was injected.
    pub(crate) fn counts(&self) -> BTreeMap<String, u64> {
        self.counts.clone()
    }

    fn begin(&mut self, sim: &mut Sim<'_>, at: SimTime, planned: Planned) {
        let fault = planned.fault;
        let hit = self.place(fault.victim().unwrap_or(Victim::Leader));
        let target = self.sites[hit].name.clone();
        self.witness.note(at, "fault", format_args!("{} of {target}: {fault}", fault.kind()));
        *self.counts.entry(fault.kind().to_owned()).or_default() += 1;
        let recorded = self.witness.recorder().fault(micros(at), fault.kind(), target);
        let is_stale = fault == Fault::StaleLeader;
        let stale = is_stale.then(|| StaleLeader::begin(&self.sites, hit, self.stale_for_ms));
        match fault {
            // Its links are refused by the nodes' ends of them, whatever the network does.
            Fault::StaleLeader => {}
            Fault::PowerCut(_) | Fault::Kill(_) => self.crash(sim, hit, fault),
            Fault::PowerCutOfAll => (0..self.sites.len()).for_each(|place| self.crash(sim, place, fault)),
            Fault::SlowDisk(_, ms) => self.sites[hit].disk.set_stalled(Duration::from_millis(ms)),
            Fault::ClockJump(_, ms) => self.sites[hit].set_clock_off(ms),
            _ => self.cut(sim, fault, hit),
        }
        self.present.push(Present { planned, hit, recorded, stale });
        self.tell_silences();
    }

    fn undo(&mut self, sim: &mut Sim<'_>, at: SimTime, present: Present) {
        let Present { planned, hit, recorded, stale } = present;
        self.witness.note(at, "fault", format_args!("over: {}", planned.fault));
        recorded.heal(micros(at));
        if let Some(stale) = stale {
            stale.end(&self.sites);
        }
        match planned.fault {
            Fault::StaleLeader => {}
            Fault::PowerCut(_) => self.light(sim, &[hit]),
            Fault::Kill(_) => self.restart(sim, hit),
            Fault::PowerCutOfAll => self.light(sim, &(0..self.sites.len()).collect::<Vec<_>>()),
            Fault::SlowDisk(..) => self.sites[hit].disk.set_stalled(Duration::ZERO),
            Fault::ClockJump(..) => self.sites[hit].set_clock_off(0),
            _ => self.mend(sim),
        }
        self.tell_silences();
    }

    fn place(&self, victim: Victim) -> usize {
        match victim {
            Victim::Node(place) => place,
            Victim::Leader => {
                let leads = |site: &Arc<Site>| {
                    site.running().is_some_and(|running| running.leadership().leader == Some(running.node))
                };
                self.sites.iter().position(leads).unwrap_or(0)
            }
        }
    }

    fn crash(&mut self, sim: &mut Sim<'_>, place: usize, fault: Fault) {
        // The system of a process that is killed closes its connections and refuses others. Without power it cannot.
        if matches!(fault, Fault::Kill(_)) {
            self.sites[place].silences().set_ended(&self.sites[place].name, true);
        } else {
            self.dark.insert(place);
            self.darken(sim, place);
        }
        let site = &self.sites[place];
        site.stopped();
        sim.crash(site.name.clone());
        self.crashes += 1;
        let seed = self.seed.wrapping_mul(1009).wrapping_add(self.crashes);
        if matches!(fault, Fault::Kill(_)) {
            site.disk.crash_process(seed);
        } else {
            site.disk.crash(seed);
        }
    }

    /// Nothing comes from a place any more.
    fn darken(&self, sim: &mut Sim<'_>, place: usize) {
        let name = self.sites[place].name.as_str();
        self.all_but(place).for_each(|other| sim.partition(name, other));
    }

    /// Another process begins.
    fn restart(&self, sim: &mut Sim<'_>, place: usize) {
        let site = &self.sites[place];
        site.silences().set_ended(&site.name, false);
        sim.bounce(site.name.clone());
    }

    /// Power comes back.
    fn light(&mut self, sim: &mut Sim<'_>, places: &[usize]) {
        for place in places {
            self.dark.remove(place);
            let name = self.sites[*place].name.as_str();
            self.all_but(*place).for_each(|other| sim.repair(name, other));
        }
        // What is wrong with the network still is, and others may still be without power.
        for present in &self.present {
            if present.planned.fault.is_of_network() {
                self.cut(sim, present.planned.fault, present.hit);
            }
        }
        self.dark.iter().for_each(|place| self.darken(sim, *place));
        places.iter().for_each(|place| self.restart(sim, *place));
    }

    /// Every host but the one at a place.
    fn all_but(&self, place: usize) -> impl Iterator<Item = &str> {
        let others = self.sites.iter().enumerate().filter(move |(at, _)| *at != place);
        others.map(|(_, site)| site.name.as_str()).chain(self.clients.iter().map(String::as_str))
    }

    /// Tells the nodes' network who cannot be heard.
    fn tell_silences(&self) {
        let name = |place: &usize| self.sites[*place].name.clone();
        let pairs = self.present.iter().flat_map(|present| self.apart(present));
        let pairs = pairs.map(|(one, other)| (name(&one), name(&other)));
        self.sites[0].silences().set(self.dark.iter().map(name), pairs);
    }

    /// Places between which a fault of the network loses what is said, in one direction at least.
    fn apart(&self, present: &Present) -> Vec<(usize, usize)> {
        let hit = present.hit;
        let others: Vec<usize> = (0..self.sites.len()).filter(|place| *place != hit).collect();
        let across = |hosts: &[usize]| -> Vec<(usize, usize)> {
            let (left, right) = hosts.split_at(hosts.len() / 2);
            left.iter().flat_map(|left| right.iter().map(move |right| (*left, *right))).collect()
        };
        match present.planned.fault {
            Fault::Isolate(_) | Fault::Mute(_) | Fault::Deaf(_) => {
                others.iter().map(|other| (hit, *other)).collect()
            }
            Fault::Split => across(&[vec![hit], others].concat()),
            Fault::Bridge(_) => across(&others),
            Fault::Lossy(_) => {
                let pairs = (0..self.sites.len()).flat_map(|one| (0..one).map(move |other| (one, other)));
                pairs.collect()
            }
            _ => Vec::new(),
        }
    }

    /// Every pair of hosts of which at least one is a node.
    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let nodes = self.sites.iter().map(|site| site.name.as_str());
        nodes.clone().enumerate().flat_map(move |(place, node)| {
            let others = nodes.clone().skip(place + 1).chain(self.clients.iter().map(String::as_str));
            others.map(move |other| (node, other))
        })
    }

    fn cut(&self, sim: &mut Sim<'_>, fault: Fault, hit: usize) {
        let name = self.sites[hit].name.as_str();
        let others = || self.sites.iter().map(|site| site.name.as_str()).filter(|other| *other != name);
        match fault {
            Fault::Isolate(_) => others().for_each(|other| sim.partition(name, other)),
            Fault::Mute(_) => others().for_each(|other| sim.partition_oneway(name, other)),
            Fault::Deaf(_) => others().for_each(|other| sim.partition_oneway(other, name)),
            Fault::Split => split(sim, &std::iter::once(name).chain(others()).collect::<Vec<_>>()),
            Fault::Bridge(_) => split(sim, &others().collect::<Vec<_>>()),
            Fault::ClientsSee(_) => {
                for client in &self.clients {
                    others().for_each(|other| sim.partition(client.as_str(), other));
                }
            }
            Fault::Hold(_) => {
                let clients = self.clients.iter().map(String::as_str);
                others().chain(clients).for_each(|other| sim.hold(name, other));
            }
            Fault::StaleLeader => {}
            Fault::Slow(_, ms) => {
                others().for_each(|other| sim.set_link_latency(name, other, Duration::from_millis(ms)));
            }
            Fault::Lossy(per_thousand) => {
                let nodes: Vec<_> = self.sites.iter().map(|site| site.name.as_str()).collect();
                for (place, node) in nodes.iter().enumerate() {
                    for other in &nodes[place + 1..] {
                        sim.set_link_fail_rate(*node, *other, f64::from(per_thousand as u32) / 1000.0);
                    }
                }
            }
            _ => unreachable!("only faults of the network come here"),
        }
    }

    /// Makes the network good again.
    fn mend(&self, sim: &mut Sim<'_>) {
        for (node, other) in self.pairs() {
            sim.release(node, other);
            sim.repair(node, other);
            sim.set_link_fail_rate(node, other, 0.0);
            sim.set_link_latency(node, other, Duration::from_millis(1));
            sim.set_link_max_message_latency(node, other, self.latency_max);
        }
        self.dark.iter().for_each(|place| self.darken(sim, *place));
    }
}

/// Cuts the first half of the hosts, the smaller one, from the others.
fn split(sim: &Sim<'_>, hosts: &[&str]) {
    let (left, right) = hosts.split_at(hosts.len() / 2);
    for left in left {
        right.iter().for_each(|right| sim.partition(*left, *right));
    }
}
