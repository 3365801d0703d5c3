//! One seed, from the first start to the verdict.

use std::cell::Cell;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tripod_raft::Chance;
use tripod_state::Scope;
use turmoil::Sim;

use super::client::Phase;
use super::invariant::acknowledged_work::Written;
use super::nemesis::Nemesis;
use super::node::Site;
use super::observation::{SimTime, Violation};
use super::options::Options;
use super::panics;
use super::plan::Plan;
use super::report::SeedReport;
use super::watcher::Watcher;
use super::witness::Witness;
use super::workload::{self, Setting};
use tripod_checkers::check::{self, Conclusion, Rules};
use tripod_checkers::history::Micros;
use tripod_checkers::report::{About, Report};

/// Simulated time passes in steps of so many milliseconds.
const STEP: Duration = Duration::from_millis(1);
/// After the last fault all nodes must follow one leader within so many milliseconds of simulated time.
const LEADER_WITHIN_MS: u64 = 5000;
/// After the last fault the clients must have done all that they do within so many milliseconds.
const CLIENTS_END_WITHIN_MS: u64 = 60_000;
/// After the last call all nodes must be equal within so many milliseconds.
const EQUAL_WITHIN_MS: u64 = 5000;
/// A leader that was replaced may say for so long after a fault what it knew before.
const DEPOSED_ANSWERS_MS: u64 = 3000;
/// Bytes that may be under way on a connection, in segments.
const SEGMENTS_MAX: usize = 65_536;

/// What would have been a violation, of safety and of liveness, in a sentence without an end.
pub(super) fn bounds() -> String {
    format!(
        "a violation would have been: 1 broken rule, at any time; after the last fault, more than {} s until all nodes \
         follow one leader, then {} s until the gangs of tasks have ended, then {} s until every call is answered, then \
         {} s until all nodes are equal",
        LEADER_WITHIN_MS / 1000,
        CLIENTS_END_WITHIN_MS / 1000,
        CLIENTS_END_WITHIN_MS / 1000,
        EQUAL_WITHIN_MS / 1000
    )
}

/// Runs one seed, in a thread of its own. A panic in it is a violation, but one within another ends the process.
///
/// Two processes that run one seed run the same, event by event. Two runs within a process may differ: something
/// below counts across them.
#[must_use]
pub fn run_seed(seed: u64, options: &Options) -> SeedReport {
    let options = options.clone();
    let run = move || {
        panics::remember();
        let run = AssertUnwindSafe(|| Run::new(seed, &options).finish());
        std::panic::catch_unwind(run).unwrap_or_else(|_| {
            let words = panics::first().unwrap_or_else(|| "a panic without words".to_owned());
            SeedReport::of_panic(seed, words)
        })
    };
    let thread = std::thread::Builder::new().name(format!("seed-{seed}"));
    let thread = thread.spawn(run).expect("the system has threads");
    thread.join().unwrap_or_else(|_| SeedReport::of_panic(seed, "the thread of the run ended".to_owned()))
}

struct Run<'a> {
    seed: u64,
    plan: Plan,
    sim: Sim<'a>,
    sites: Vec<Arc<Site>>,
    nemesis: Nemesis,
    watcher: Watcher,
    witness: Witness,
    phase: Rc<Cell<Phase>>,
    gangs_over: Rc<Cell<bool>>,
    /// Whether there is a scheduler with its peers.
    scheduler: bool,
    faults_until: SimTime,
    clients_over: bool,
    began: Instant,
}

impl Run<'_> {
    fn new(seed: u64, options: &Options) -> Self {
        let plan = Plan::new(seed, SimTime(options.faults_for_ms));
        Self::of(seed, options, plan)
    }

    /// Not run yet.
    fn of(seed: u64, options: &Options, plan: Plan) -> Self {
        let faults_until = SimTime(options.faults_for_ms);
        let witness = Witness::new(seed, options.keep_events);
        let mindspore = options.mindspore || workload::mindspore::is_in(seed);
        let sites = Site::all(seed, &plan, (options.planted, mindspore), &witness);
        let mut sim = simulation(seed, &plan);
        for site in &sites {
            let site = Arc::clone(site);
            sim.host(site.name.clone(), move || Arc::clone(&site).run());
        }
        let (phase, gangs_over) = (Rc::new(Cell::new(Phase::Faults)), Rc::new(Cell::new(false)));
        let mut hosts = workload::HOSTS.to_vec();
        let scheduler = options.scheduler || workload::scheduler::is_in(seed);
        if scheduler {
            hosts.push(workload::scheduler::HOST);
        }
        if mindspore {
            hosts.push(workload::mindspore::HOST);
        }
        if plan.spares > 0 {
            hosts.push(workload::OPERATOR);
        }
        if plan.has_stale_leaders() {
            hosts.push(workload::stale_reads::HOST);
        }
        for host in &hosts {
            let setting = Setting {
                seed,
                sites: sites.clone().into(),
                witness: witness.clone(),
                phase: Rc::clone(&phase),
                gangs_over: Rc::clone(&gangs_over),
            };
            sim.client(*host, workload::run(host, setting));
        }
        let clients: Vec<_> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let nemesis = Nemesis::new(seed, &plan, &sites, &clients, &witness);
        let watcher = Watcher::new(&sites, &witness);
        let began = Instant::now();
        Self {
            seed,
            plan,
            sim,
            sites,
            nemesis,
            watcher,
            witness,
            phase,
            gangs_over,
            scheduler,
            faults_until,
            clients_over: false,
            began,
        }
    }

    fn finish(mut self) -> SeedReport {
        let _chance = Chance::seed(self.seed);
        if let Err(error) = self.phases() {
            let at = self.at();
            self.witness.broken(at, "no panic", panics::first().unwrap_or(error));
        }
        self.report()
    }

    fn at(&self) -> SimTime {
        SimTime(u64::try_from(self.sim.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    fn step(&mut self) -> Result<(), String> {
        self.clients_over = self.sim.step().map_err(|error| error.to_string())?;
        let at = self.at();
        for site in self.sites.iter().filter(|site| site.take_process_over()) {
            self.sim.crash(site.name.clone());
            self.sim.bounce(site.name.clone());
        }
        self.nemesis.turn(&mut self.sim, at);
        self.watcher.turn(at);
        Ok(())
    }

    /// Steps until `done`; tells whether that was within so many milliseconds.
    fn until(&mut self, within_ms: u64, done: impl Fn(&Self) -> bool) -> Result<bool, String> {
        let end = SimTime(self.at().0 + within_ms);
        while !done(self) {
            // What follows the first violation shows nothing new.
            if self.at() >= end || self.witness.is_broken() {
                return Ok(false);
            }
            self.step()?;
        }
        Ok(true)
    }

    fn phases(&mut self) -> Result<(), String> {
        let faults_until = self.faults_until;
        self.until(faults_until.0, |_| false)?;
        self.phase.set(Phase::Calm(self.at()));
        self.witness.note(self.at(), "calm", format_args!("the last fault is over"));
        if !self.until(LEADER_WITHIN_MS, |run| run.watcher.all_follow())? {
            self.too_late("all nodes follow one leader", LEADER_WITHIN_MS);
        }
        if !self.until(CLIENTS_END_WITHIN_MS, |run| run.gangs_over.get())? {
            self.too_late("the last gang has ended", CLIENTS_END_WITHIN_MS);
        }
        self.phase.set(Phase::Ending);
        if !self.until(CLIENTS_END_WITHIN_MS, |run| run.clients_over)? {
            self.too_late("every call is answered", CLIENTS_END_WITHIN_MS);
        }
        if !self.until(EQUAL_WITHIN_MS, |run| run.watcher.all_equal().is_some())? {
            self.too_late("all nodes are equal", EQUAL_WITHIN_MS);
        }
        if !self.witness.is_broken() {
            self.look_once_more();
        }
        Ok(())
    }

    fn too_late(&self, what: &str, within_ms: u64) {
        if !self.witness.is_broken() {
            let words = self.watcher.words();
            self.witness.broken(self.at(), "liveness", format!("not within {within_ms} ms: {what}; {words}"));
        }
    }

    /// What must be there in the end.
    fn look_once_more(&self) {
        let at = self.at();
        self.witness.heartbeats_end(at);
        if let Some((applied, digest)) = self.watcher.all_equal() {
            self.witness.note(at, "end", format_args!("all have applied {applied}: {digest:016x}"));
            self.witness.applied_in_the_end(at, applied);
        }
        self.watcher.members_in_the_end(at);
        if self.scheduler {
            let faults = self.nemesis.counts();
            // A leader that cannot tell whether a worker has a task gives it to another one.
            let cut_off = faults.keys().any(|kind| kind == "partition-clients" || kind == "hold");
            let healthy = !cut_off && !workload::scheduler::peers_die(self.seed);
            self.witness.scheduled_at(at, |rule| rule.end(healthy));
        }
        for key in self.witness.acknowledged_keys() {
            let found = self.watcher.read(|state| {
                let scope = Scope { job: state.job_named(workload::KEYS_JOB)?, service: None };
                let entry = state.get(scope, &key).ok()?;
                Some(Written { version: entry.version, value: entry.value.to_vec() })
            });
            self.witness.found_in_the_end(at, &key, found.flatten().as_ref());
        }
        for site in &self.sites {
            if let Some(running) = site.running() {
                let status = running.handle.status();
                if status.snapshot.0 > 0 {
                    self.witness.count("nodes with snapshots");
                }
                if status.purged.0 > 0 {
                    self.witness.count("nodes with purged logs");
                }
            }
        }
    }

    fn report(self) -> SeedReport {
        let at = self.at();
        let history = self.witness.history(at);
        let mut end = self.witness.end();
        let checks = check::check_all(&history, &rules());
        let mut void = history.void.clone();
        for checked in &checks {
            match &checked.conclusion {
                Conclusion::Held => {}
                Conclusion::Violated { violations, .. } => {
                    end.violations.extend(violations.iter().map(|violation| Violation {
                        rule: format!("{}: {}", checked.checker, violation.rule),
                        at_ms: at.0,
                        what: violation.to_string(),
                    }));
                }
                Conclusion::Undecided(why) | Conclusion::Void(why) => {
                    void.get_or_insert_with(|| format!("{}: {why}", checked.checker));
                }
            }
        }
        let told = Report::new(&history, checks, About::default());
        // The runtimes end here, with everything that the nodes hold.
        self.sites.iter().for_each(|site| site.stopped());
        drop(self.sim);
        SeedReport {
            seed: self.seed,
            nodes: self.plan.nodes,
            passed: end.violations.is_empty() && void.is_none(),
            violations: end.violations,
            void,
            hash: end.hash,
            events: end.events,
            simulated_ms: at.0,
            wall_ms: u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
            faults: self.nemesis.counts(),
            operations: told.operations,
            longest_unavailability_ms: told.outage.map_or(0, |outage| outage.length_us.0 / 1000),
            counts: end.counts,
            judged: end.judged,
            lines: end.lines,
        }
    }
}

/// What checkers must know.
fn rules() -> Rules {
    let deposed_leader = Some(Micros::from_millis(DEPOSED_ANSWERS_MS));
    Rules { deposed_leader, ..Rules::default() }
}

fn simulation<'a>(seed: u64, plan: &Plan) -> Sim<'a> {
    let mut builder = turmoil::Builder::new();
    builder
        .rng_seed(seed)
        .epoch(SystemTime::UNIX_EPOCH)
        .simulation_duration(Duration::from_secs(3600))
        .tick_duration(STEP)
        .min_message_latency(Duration::from_millis(1))
        .max_message_latency(Duration::from_millis(plan.latency_max_ms))
        .tcp_capacity(SEGMENTS_MAX)
        .enable_random_order();
    builder.build()
}

#[cfg(test)]
mod tests {
    use tripod_raft::Timing;
    use tripod_state::ids::NodeId;

    use super::*;
    use crate::fault::{Fault, Victim};
    use crate::plan::{Planned, STALE_LEADER_MS};
    use crate::planted::Planted;
    use crate::stale_leader::leaders;

    /// When the fault comes: by then everything is settled.
    const FROM: SimTime = SimTime(4000);
    /// When it is over.
    const UNTIL: SimTime = SimTime(7000);

    /// Three nodes with the default timing and a good network, to which one thing happens.
    fn run<T>(seed: u64, fault: Fault, then: impl FnOnce(&mut Run<'_>) -> T) -> T {
        let _chance = Chance::seed(seed);
        let options = Options { faults_for_ms: 10_000, ..Options::default() };
        let plan = Plan {
            nodes: 3,
            timing: Timing::default(),
            latency_max_ms: 2,
            spares: 0,
            faults: vec![Planned { fault, from: FROM, until: UNTIL }],
            ..Plan::new(seed, SimTime(options.faults_for_ms))
        };
        let mut run = Run::of(seed, &options, plan);
        let outcome = then(&mut run);
        assert!(!run.witness.is_broken());
        run.sites.iter().for_each(|site| site.stopped());
        outcome
    }

    /// Who leads in the highest term, as it knows itself.
    fn leader(run: &Run<'_>) -> Option<NodeId> {
        let running = run.sites.iter().filter_map(|site| site.running());
        let ready = running.filter(|running| running.leadership().ready_here);
        ready.max_by_key(|running| running.leadership().term).map(|running| running.node)
    }

    /// After how many milliseconds another node leads.
    fn replaced_after_ms(seed: u64, fault: Fault) -> u64 {
        run(seed, fault, |run| {
            run.until(FROM.0 - 1, |_| false).unwrap();
            let old = leader(run).expect("somebody leads");
            let replaced = run.until(UNTIL.0 - FROM.0, |run| leader(run).is_some_and(|new| new != old));
            assert!(replaced.unwrap(), "nobody takes over");
            run.at().since_ms(FROM)
        })
    }

    #[test]
    fn a_leader_that_is_killed_is_replaced_within_a_tenth_of_a_second() {
        for seed in [1, 3] {
            let took_ms = replaced_after_ms(seed, Fault::Kill(Victim::Leader));
            assert!(took_ms <= 100, "seed {seed}: {took_ms} ms");
        }
    }

    /// It lives, and answers clients.
    #[test]
    fn a_leader_whose_links_are_refused_is_replaced_at_once_and_follows_when_they_are_back() {
        for seed in [1, 3] {
            run(seed, Fault::StaleLeader, |run| {
                run.until(FROM.0 - 1, |_| false).unwrap();
                let old = leader(run).expect("somebody leads");
                let replaced = run.until(101, |run| leader(run).is_some_and(|new| new != old));
                assert!(replaced.unwrap(), "nobody takes over");
                assert_eq!(leaders(&run.sites).len(), 2, "it has heard of it");
                let follows = run.until(UNTIL.0 + 2000 - run.at().0, |run| run.watcher.all_follow());
                assert!(follows.unwrap(), "it does not hear who leads");
            });
        }
    }

    /// What came of a seed in which nothing happens but that the leader goes stale, three times.
    fn stale_leaders(seed: u64, planted: Option<Planted>) -> SeedReport {
        let options = Options { faults_for_ms: 9000, planted, ..Options::default() };
        let stale_at = |from_ms: u64| {
            let until = SimTime(from_ms + STALE_LEADER_MS);
            Planned { fault: Fault::StaleLeader, from: SimTime(from_ms), until }
        };
        let plan = Plan {
            nodes: 3,
            timing: Timing::default(),
            latency_max_ms: 2,
            spares: 0,
            faults: [3000, 5000, 7000].map(stale_at).to_vec(),
            ..Plan::new(seed, SimTime(options.faults_for_ms))
        };
        Run::of(seed, &options, plan).finish()
    }

    #[test]
    fn a_stale_leader_is_asked_while_it_can_ask_others_and_answers_nothing_from_the_past() {
        for seed in [1, 3] {
            let report = stale_leaders(seed, None);
            assert!(report.passed, "{report}");
            for what in ["stale leaders that reached voters", "reads of stale leaders"] {
                assert!(report.counts.get(what).is_some_and(|count| *count > 0), "no {what}: {report}");
            }
        }
    }

    #[test]
    fn a_stale_leader_answers_from_the_past_if_it_is_told_votes_as_they_were() {
        let reports = [1, 3, 7, 9].map(|seed| stale_leaders(seed, Some(Planted::StaleVote)));
        let mut violations = reports.iter().flat_map(|report| &report.violations);
        assert!(violations.any(|violation| violation.rule.starts_with("linear")), "{reports:?}");
    }

    #[test]
    fn a_leader_that_nobody_hears_of_any_more_is_replaced_by_the_timers() {
        for fault in [Fault::PowerCut(Victim::Leader), Fault::Hold(Victim::Leader)] {
            let took_ms = replaced_after_ms(1, fault);
            assert!((400..=2500).contains(&took_ms), "{fault}: {took_ms} ms");
        }
    }

    #[test]
    fn a_follower_that_is_killed_and_comes_back_moves_nobody() {
        for place in 0..3 {
            run(1, Fault::Kill(Victim::Node(place)), |run| {
                run.until(FROM.0 - 100, |_| false).unwrap();
                let before = leader(run).expect("somebody leads");
                if run.sites[place].node() == Some(before) {
                    return;
                }
                run.until(UNTIL.0 + 2000 - FROM.0, |_| false).unwrap();
                assert_eq!(leader(run), Some(before));
            });
        }
    }
}
