//! The cluster, everybody who uses it, and the operator's terminal.

use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;
use std::{fmt, fs};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tripod_processes::cluster::{Agent, Cluster, ClusterOptions, ReservedPorts};
use tripod_tests::counting::Counting;
use tripod_tests::launcher::Launcher;
use tripod_tests::terminal::Terminal;
use tripod_tests::wait;

use super::{FIRST, PATIENCE};
use crate::cases::agent::agents::{self, Agents, Setup};
use crate::cases::directed::stage::Stage;
use crate::cases::nodes_in;

const COUNTERS: usize = 3;
/// A few increments, with a change of members or an election between them.
const COUNT_LIMIT: Duration = Duration::from_secs(60);

/// Who works on the cluster.
pub(super) struct Site {
    pub(super) stage: Stage<Agents>,
    pub(super) counting: Counting,
    pub(super) terminal: Terminal,
    /// Another operator's.
    pub(super) colleague: Terminal,
    commands: usize,
    /// How much of the program was done at the last look.
    mark: Vec<usize>,
    slowest_call: Slowest,
    slowest_increment: Slowest,
    launcher: Launcher,
    /// What is held until the end.
    ports: Vec<ReservedPorts>,
}

/// What took longest, and what the operator was about then.
#[derive(Default)]
struct Slowest {
    took_ms: u64,
    meanwhile: String,
}

impl Slowest {
    fn note(&mut self, took_ms: u64, meanwhile: &str) {
        if took_ms > self.took_ms {
            *self = Self { took_ms, meanwhile: meanwhile.to_owned() };
        }
    }
}

impl fmt::Display for Slowest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms at `{}`", self.took_ms, self.meanwhile)
    }
}

impl Site {
    /// The first nodes, the program behind agents that know only those, and the counters, all under way. `spares`
    /// machines are there for nodes that join, and all nodes have these flags, too.
    pub(super) async fn open(python: &Path, folder: &Path, spares: u64, flags: &str) -> Result<Self> {
        let mut launcher = Launcher::new()?;
        let mut cluster = Cluster::prepare(launcher.options(ClusterOptions { spares, ..nodes_in(folder)? }))?;
        for node in cluster.ids() {
            launcher.add_flags(node, flags)?;
        }
        for node in 1..=FIRST {
            cluster.restart(node)?;
        }
        cluster.wait_until_ready().await?;
        let nodes: Vec<String> = (1..=FIRST).map(|node| cluster.endpoint(node)).collect();
        let everywhere = cluster.endpoints();
        let stage = agents::stage_on(cluster, &nodes, python, folder, &Setup::default()).await?;
        let mut counting = Counting::start(&everywhere, COUNTERS)?;
        counting.go_on(COUNT_LIMIT).await?;
        let mark = stage.program.mark();
        // The start, with its elections, is nobody's command.
        let _ = counting.take_longest_ms();
        Ok(Self {
            stage,
            counting,
            terminal: Terminal::new(&everywhere, "ann"),
            colleague: Terminal::new(&everywhere, "bob"),
            commands: 0,
            mark,
            slowest_call: Slowest::default(),
            slowest_increment: Slowest::default(),
            launcher,
            ports: Vec::new(),
        })
    }

    /// Types a command that must succeed at once, and waits until everybody has gone on since; what it
    /// printed.
    pub(super) async fn command(&mut self, arguments: &[&str]) -> Result<Vec<Value>> {
        self.command_when_allowed(arguments, &[]).await
    }

    /// The same with a command that is given again while it is refused with one of these codes.
    pub(super) async fn command_when_allowed(
        &mut self,
        arguments: &[&str],
        codes: &[&str],
    ) -> Result<Vec<Value>> {
        let printed = self.terminal.done_within(PATIENCE, arguments, codes).await?;
        self.commands += 1;
        self.go_on(&arguments.join(" ")).await?;
        Ok(printed)
    }

    /// Waits until every process of the program and every counter has gone on after that.
    pub(super) async fn go_on(&mut self, after: &str) -> Result<()> {
        self.counting.go_on(COUNT_LIMIT).await.with_context(|| format!("after `{after}`"))?;
        self.stage.program.go_on().await.with_context(|| format!("after `{after}`"))?;
        self.slowest_increment.note(self.counting.take_longest_ms(), after);
        self.slowest_call.note(self.stage.program.longest_ms_since(&self.mark), after);
        self.mark = self.stage.program.mark();
        Ok(())
    }

    /// Where the other nodes reach the one on a machine.
    pub(super) fn peer(&self, machine: u64) -> String {
        let [peer, _] = self.stage.cluster.peers(machine);
        peer
    }

    /// Starts the node of a machine that has none, which joins, and waits until it serves clients.
    pub(super) async fn join(&mut self, machine: u64) -> Result<()> {
        self.stage.cluster.restart(machine)?;
        let serves = |list: &Value| {
            let members = list["members"].as_array().into_iter().flatten();
            let announced =
                |member: &Value| member["client_address"].as_str().is_some_and(|at| !at.is_empty());
            list["change"].is_null() && { members }.any(|member| member["id"] == machine && announced(member))
        };
        let shown = self.terminal.shows_within(PATIENCE, &["member", "list"], serves).await;
        shown.with_context(|| format!("node {machine} joins"))?;
        self.go_on(&format!("node {machine} joins")).await
    }

    /// Keeps ports from everybody else.
    pub(super) fn hold(&mut self, ports: ReservedPorts) {
        self.ports.push(ports);
    }

    /// Stops a node as its machine does when it goes down.
    pub(super) async fn stop(&mut self, node: u64) -> Result<()> {
        let ended = self.stage.cluster.terminate(node).await?;
        ensure!(ended.success(), "node {node} ended with {ended}");
        self.go_on(&format!("node {node} stops")).await
    }

    /// Starts a node with another peer address than it had.
    pub(super) fn start_at(&mut self, node: u64, peer: &str) -> Result<()> {
        self.launcher.move_to(node, peer)?;
        self.stage.cluster.restart(node)
    }

    /// Stops a node and starts it again with these flags in the place of those that it had.
    pub(super) async fn restart_with(&mut self, node: u64, flags: &str) -> Result<()> {
        self.stop(node).await?;
        self.launcher.add_flags(node, flags)?;
        self.stage.bring_back(node).await?;
        self.go_on(&format!("node {node} is back")).await
    }

    /// Starts the node of a machine, which was removed and must end by itself with exit status 0; what it said.
    pub(super) async fn refused_start(&mut self, machine: u64) -> Result<String> {
        let log = self.stage.cluster.log(machine);
        let read = || fs::read_to_string(&log).with_context(|| format!("cannot read {}", log.display()));
        let before = read()?.len();
        self.stage.cluster.restart(machine)?;
        let what = format!("the end of node {machine}, which must not come back");
        let status = wait::until(&what, PATIENCE, || Ok(ended(&mut self.stage.cluster, machine))).await?;
        let said = read()?.split_off(before);
        ensure!(status.code() == Some(0), "node {machine} ended with {status}: {said}");
        self.go_on(&format!("node {machine} is refused")).await?;
        Ok(said)
    }

    /// Waits until no agent is attached to a node.
    pub(super) async fn wait_until_left(&mut self, node: u64) -> Result<()> {
        let what = format!("the end of every agent's connection to node {node}");
        let stage = &mut self.stage;
        wait::until(&what, PATIENCE, || Ok((!stage.attached()?.contains_key(&node)).then_some(()))).await
    }

    /// Waits until a node that was taken out has ended by itself.
    pub(super) async fn wait_until_ended(&mut self, node: u64) -> Result<()> {
        let cluster = &mut self.stage.cluster;
        let what = format!("the end of node {node}, which was taken out");
        wait::until(&what, PATIENCE, || Ok(ended(cluster, node))).await?;
        self.go_on(&format!("node {node} ends")).await
    }

    /// Lets the program and the counters end, which nobody has cut, and compares the counters with what every
    /// one of these nodes has.
    pub(super) async fn close(self, nodes: &[u64]) -> Result<String> {
        let Self { mut stage, counting, commands, slowest_call, slowest_increment, .. } = self;
        // A call that failed would have ended its process: nothing is repeated here.
        stage.program.finish().await?;
        let endpoints: Vec<String> = nodes.iter().map(|node| stage.cluster.endpoint(*node)).collect();
        let counted = counting.stop_and_check(&endpoints).await?;
        let mut logs: Vec<String> = stage.way.all.iter().map(Agent::output).collect();
        for node in stage.cluster.ids() {
            let log = stage.cluster.log(node);
            logs.push(fs::read_to_string(&log).with_context(|| format!("cannot read {}", log.display()))?);
        }
        ensure!(!logs.iter().any(|log| log.contains("panicked")), "an agent or a node panicked");
        Ok(format!(
            "{commands} commands, {counted} increments: no call failed; longest call {slowest_call}, \
             longest increment {slowest_increment}"
        ))
    }
}

/// How a node has ended by itself, if it has.
fn ended(cluster: &mut Cluster, node: u64) -> Option<ExitStatus> {
    let ended = cluster.take_ended();
    ended.into_iter().find(|(ended, _)| *ended == node).map(|(_, status)| status)
}
