//! One run from beginning to end, and what it leaves.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tripod_client::{Client, Config};
use tripod_wait::scaled;

use super::hostile::Hostile;
use super::logs::Scanned;
use super::members::MembersLog;
use super::plan::Plan;
use super::stage::Stage;
use super::timers::Timers;
use super::upgrade::Upgrade;
use super::{Scenario, bounds, nemesis, recovery};
use tripod_checkers::check::{Checked, HeartbeatRule, ReleaseRule, Rules, Violation, check_all};
use tripod_checkers::history::{Header, Micros, NodeId, Recorder};
use tripod_checkers::report::{About, Program, Report, Verdict};
use tripod_processes::attack::Aim;
use tripod_processes::cluster::{Cluster, find_tripod};
use tripod_processes::fault::{Arena, settle, stands_back, upgrade_the_rest};
use tripod_processes::workload::{BEAT_TIMEOUT_MS, BEATS_FORGOTTEN_MS, Endpoint, Setting, read_all};

/// How long clients may take to end once they are told to: their longest call. As the others, on a machine of usual
/// speed.
pub(super) const STOP_PATIENCE: Duration = Duration::from_secs(240);
/// How long they have when it is known that the run has failed: what they still wait for then may never come.
const LOST_PATIENCE: Duration = Duration::from_secs(5);
/// How long all final reads together may take.
pub(super) const READ_PATIENCE: Duration = Duration::from_secs(120);
/// How long until all replicas have applied the same entries.
pub(super) const EQUAL_PATIENCE: Duration = Duration::from_secs(60);
/// How long after a fault a leader that it deposed may still answer heartbeats from what it knew.
const DEPOSED_ANSWERS_MS: u64 = 2_000;
/// How soon a read ends that has nothing to wait for. Longer than an election on a loaded machine, and shorter than
/// a client waits before it asks again, which would hide that it was forgotten.
const RELEASE_BOUND_MS: u64 = 6_000;
/// How long after a fault clients may still look for a node that answers: nodes that were killed must start again.
const RELEASE_AFTERMATH_MS: u64 = 15_000;
/// How soon an arrival at a barrier counts, with no fault for as long before and after it. A barrier that then says that
/// the task did not come has forgotten it.
const ARRIVAL_SETTLES_MS: u64 = 15_000;
/// How long a node may take to tell its version and the service's incarnation.
const LOOK_LIMIT: Duration = Duration::from_secs(10);

/// What a run is made of; with the seed, all that it takes to do it again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Options {
    pub scenario: String,
    pub seed: u64,
    /// Of the safety phase.
    pub minutes: f64,
    pub nodes: u64,
    /// The program of the build that the nodes are at first, if they are upgraded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<PathBuf>,
}

/// What is kept beside a history, to do the run again.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) options: Options,
    pub(super) plan: Plan,
}

impl Options {
    /// The command that does the same again.
    #[must_use]
    pub fn reproduce(&self) -> String {
        let Self { scenario, seed, minutes, nodes, before } = self;
        let before = before.as_ref().map(|before| format!(" --before {}", before.display()));
        let before = before.unwrap_or_default();
        format!("tripod-chaos run {scenario} --seed {seed} --minutes {minutes} --nodes {nodes}{before}")
    }

    fn length(&self) -> anyhow::Result<Duration> {
        Duration::try_from_secs_f64(self.minutes * 60.0)
            .with_context(|| format!("{} minutes are no length of time", self.minutes))
    }
}

/// Runs a scenario and leaves `report.md`, `report.json`, `timeline.svg`, `history.jsonl` and `run.json` in `out`; after
/// anything but success also `cluster/`, the nodes' data and logs.
///
/// # Errors
/// The harness failed before there was anything to report. Later failures of it void the report.
pub async fn run_scenario(scenario: &Scenario, options: &Options, out: &Path) -> anyhow::Result<Report> {
    let begun = std::time::Instant::now();
    let plan = Plan::draw(scenario.kinds, options.seed, options.length()?);
    let mut stage = Stage::prepare(scenario, options, out)?;
    let kept = Kept { options: options.clone(), plan };
    write_json(&out.join("run.json"), &kept)?;
    eprintln!("{}: seed {}, {} nodes; starting them", scenario.name, options.seed, options.nodes);
    for node in stage.cluster.ids() {
        stage.cluster.restart(node)?;
    }
    if let Some(late) = recovery::serves(&mut stage.arena()?).await? {
        anyhow::bail!("the cluster does not even start: {late}");
    }
    let (version, service) = look(&stage.cluster).await?;
    let program = Program::of(&find_tripod()?);
    let header = Header { scenario: scenario.name.to_owned(), seed: options.seed };
    let recorder = Recorder::new(header);
    let (stop, stopped) = watch::channel(false);
    let mut setting =
        Setting::new(endpoints(&stage.cluster), recorder.clone(), options.seed, service, stopped);
    let mut own = Own::default();
    start_others(scenario, &mut stage, &mut setting, &mut own).await?;

    let timers = Timers::watch(&stage.cluster, recorder.clone(), setting.clock);
    if let Err(error) = phases(scenario, &kept.plan, &mut stage.arena()?, &setting, stop, &mut own).await {
        recorder.void(format!("the harness failed: {error:#}"));
    }
    drop(timers);
    own.end_cluster(&mut stage.cluster).await;

    let now = setting.clock.now();
    let history = recorder.history(now);
    history.save(&out.join("history.jsonl"))?;
    eprintln!("checking {} operations", history.operations.len());
    let (checked, checks) = tokio::task::spawn_blocking(move || {
        let checks = check_all(&history, &rules());
        (history, checks)
    })
    .await
    .context("the checkers panicked")?;
    let mut figures = own.hostile.figures(&setting);
    figures.append(&mut own.upgrade.figures());
    let skipped = std::mem::take(&mut own.skipped);
    let checks = own.checks(checks);
    let failed = Verdict::of(&checks, checked.void.as_deref()) != Verdict::Passed;
    let data = stage.data.display().to_string();
    stage.close(failed)?;
    let about = About {
        version,
        program,
        skipped,
        bounds: bounds::of_run(&rules()),
        duration: now,
        wall: Micros(u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX)),
        reproduce: options.reproduce(),
        frozen: if failed { vec![data] } else { Vec::new() },
        figures,
    };
    let report = Report::new(&checked, checks, about);
    report.save(out)?;
    Ok(report)
}

/// Starts what the scenario has beside nodes.
///
/// # Errors
/// A process cannot be started.
async fn start_others(
    scenario: &Scenario,
    stage: &mut Stage,
    setting: &mut Setting,
    own: &mut Own,
) -> anyhow::Result<()> {
    if scenario.has_scheduler() {
        setting.driver_host = stage.start_peers()?.host(0);
    }
    if scenario.has_mars() {
        stage.start_mars()?;
    }
    if scenario.has_attackers() {
        setting.aim = Some(Aim::at(&stage.cluster).await?);
    }
    if let Some(before) = stage.before() {
        own.upgrade = Upgrade::begin(&stage.cluster, before).await?;
        setting.agents = own.upgrade.of_default();
    }
    Ok(())
}

/// What the workloads promise to the checkers.
pub(super) fn rules() -> Rules {
    let heartbeat = HeartbeatRule {
        timeout: Micros::from_millis(BEAT_TIMEOUT_MS),
        bound: Micros::from_millis(BEATS_FORGOTTEN_MS),
    };
    let deposed_leader = Some(Micros::from_millis(DEPOSED_ANSWERS_MS));
    let release = ReleaseRule {
        bound: Micros::from_millis(RELEASE_BOUND_MS),
        aftermath: Micros::from_millis(RELEASE_AFTERMATH_MS),
    };
    let arrival_settles = Some(Micros::from_millis(ARRIVAL_SETTLES_MS));
    Rules {
        heartbeat: Some(heartbeat),
        arrival_settles,
        deposed_leader,
        release: Some(release),
        ..Rules::default()
    }
}

/// Violations that are not found in histories.
#[derive(Default)]
struct Own {
    liveness: Vec<Violation>,
    processes: Vec<Violation>,
    injected: usize,
    /// Faults that had nobody to hit, by kind.
    skipped: BTreeMap<String, u64>,
    logs: Scanned,
    members: MembersLog,
    hostile: Hostile,
    upgrade: Upgrade,
    /// Parts of the nodes' logs that are no findings.
    excused: BTreeMap<u64, Vec<Range<usize>>>,
}

impl Own {
    fn misconduct(&mut self, told: Vec<String>) {
        let violations = told.into_iter().map(|told| Violation::new("process", "a node", told, &[]));
        self.processes.extend(violations);
    }

    /// Whether nothing is known so far that a run could not pass with.
    fn is_well(&self) -> bool {
        self.liveness.is_empty() && self.processes.is_empty()
    }

    /// Every node must end by itself when told to; then its log is complete.
    async fn end_cluster(&mut self, cluster: &mut Cluster) {
        for node in cluster.running() {
            match cluster.terminate(node).await {
                Ok(status) if status.success() => {}
                Ok(status) => self.misconduct(vec![format!("node {node} ended with {status} at the end")]),
                Err(error) => self.misconduct(vec![format!("node {node} did not end at the end: {error:#}")]),
            }
        }
        for node in cluster.ids() {
            let excused = self.excused.get(&node).map_or(&[][..], Vec::as_slice);
            if let Err(error) = self.logs.add(node, &cluster.log(node), excused) {
                self.misconduct(vec![format!("{error:#}")]);
            }
            if let Err(error) = self.members.add(&cluster.log(node)) {
                self.misconduct(vec![format!("{error:#}")]);
            }
        }
    }

    fn checks(self, mut checks: Vec<Checked>) -> Vec<Checked> {
        checks.push(Checked::told("liveness", 1, self.liveness));
        checks.push(Checked::told("processes", self.injected, self.processes));
        let (lists, broken) = self.members.judge();
        checks.push(Checked::told("membership", lists, broken));
        checks.extend(self.hostile.checks());
        checks.extend(self.upgrade.checks());
        checks.push(Checked::told("logs", self.logs.lines, self.logs.violations));
        checks
    }
}

/// Safety phase, then liveness phase.
async fn phases(
    scenario: &Scenario,
    plan: &Plan,
    arena: &mut Arena<'_>,
    setting: &Setting,
    stop: watch::Sender<bool>,
    own: &mut Own,
) -> anyhow::Result<()> {
    own.hostile = Hostile::begin(setting).await?;
    let mut clients = JoinSet::new();
    for workload in scenario.workloads {
        workload.start(setting, &mut clients);
    }
    let carried_out = nemesis::carry_out(plan, arena, &setting.recorder, setting.clock).await;
    own.misconduct(std::mem::take(&mut arena.misconduct));
    if arena.unflushed_writes > 0 {
        eprintln!("power cuts found {} writes that were not flushed", arena.unflushed_writes);
    }
    let done = carried_out?;
    own.injected = done.injected;
    let skipped: u64 = done.skipped.values().sum();
    eprintln!(
        "{} faults are over ({skipped} had nobody to hit); the cluster must serve again",
        done.injected
    );
    own.skipped = done.skipped;
    upgrade_the_rest(arena).await?;

    arena.cluster.network()?.heal();
    if arena.members_change {
        members_come_to_rest(arena, setting, own).await?;
    }
    own.liveness.extend(recovery::serves(arena).await?);
    own.misconduct(std::mem::take(&mut arena.misconduct));
    // Who has not recovered by now, or ended by itself, need not be waited for once more.
    if own.is_well() {
        own.liveness.extend(recovery::clients_go_on(setting, "after the last fault").await);
    }
    let patience = if own.is_well() { scaled(STOP_PATIENCE) } else { LOST_PATIENCE };
    stop.send_replace(true);
    join(clients, own).await?;
    own.upgrade.end(arena.cluster, arena.builds.as_ref(), patience).await;
    own.hostile.end(arena).await;
    let patience = if own.is_well() { scaled(READ_PATIENCE) } else { Duration::ZERO };
    match read_all(setting, patience).await {
        Ok(things) => eprintln!("{things} registers, lists and counters were read once more"),
        Err(why) => own.liveness.push(Violation::new("liveness", "final reads", why, &[])),
    }
    let patience = if own.is_well() { scaled(EQUAL_PATIENCE) } else { Duration::ZERO };
    own.liveness.extend(recovery::replicas_agree(arena.cluster, setting, patience).await);
    arena.look_for_the_dead()?;
    own.misconduct(std::mem::take(&mut arena.misconduct));
    own.excused = std::mem::take(&mut arena.excused);
    Ok(())
}

/// A drained node must stand back while the others serve. Then every machine gets a voter again.
async fn members_come_to_rest(arena: &mut Arena<'_>, setting: &Setting, own: &mut Own) -> anyhow::Result<()> {
    // Leadership moves on purpose, and clients are sent away.
    let noted = setting.recorder.fault(setting.clock.now(), "member-drain", "whoever leads");
    let stood_back = stands_back(arena).await?;
    noted.heal(setting.clock.now());
    match stood_back {
        Ok(()) if own.is_well() => {
            own.liveness.extend(recovery::clients_go_on(setting, "beside a drained node").await);
        }
        Ok(()) => {}
        Err(why) => own.liveness.push(Violation::new("drained", "the members", why, &[])),
    }
    if let Err(why) = settle(arena).await? {
        own.liveness.push(Violation::new("liveness", "the members", why, &[]));
    }
    Ok(())
}

/// Waits for the clients. A call that is never answered keeps its client from ending; it goes into the history as
/// one whose outcome is not known.
async fn join(mut clients: JoinSet<()>, own: &mut Own) -> anyhow::Result<()> {
    let all = async {
        while let Some(ended) = clients.join_next().await {
            ended.context("a client of the harness panicked")?;
        }
        anyhow::Ok(())
    };
    let patience = if own.is_well() { scaled(STOP_PATIENCE) } else { LOST_PATIENCE };
    match tokio::time::timeout(patience, all).await {
        Ok(joined) => joined,
        Err(_) if !own.is_well() => Ok(()),
        Err(_) => {
            let explanation = format!("a call was still under way {patience:?} after the last fault");
            own.liveness.push(Violation::new("liveness", "the clients", explanation, &[]));
            Ok(())
        }
    }
}

/// The version of the nodes, and the service incarnation of job `default`.
async fn look(cluster: &Cluster) -> anyhow::Result<(String, u64)> {
    let client = Client::new(&Config::new(cluster.endpoints()))?;
    let answers = client.status(LOOK_LIMIT, false).await;
    let version =
        answers.into_iter().find_map(|answer| answer.status.ok()).context("no node tells its version")?;
    let job = client.jobs().get("default").await?.context("there is no job `default`")?;
    Ok((version.version, job.service_incarnation))
}

fn endpoints(cluster: &Cluster) -> Vec<Endpoint> {
    let endpoint = |node| Endpoint { node: NodeId(node), address: cluster.proxied_endpoint(node) };
    cluster.ids().map(endpoint).collect()
}

fn write_json(path: &PathBuf, content: &impl Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(content)?;
    std::fs::write(path, text + "\n").with_context(|| format!("cannot write {}", path.display()))
}
