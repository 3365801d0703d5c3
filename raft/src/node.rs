//! One running node: everything of this crate put together, started and stopped.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use openraft::async_runtime::WatchReceiver as _;
use openraft::errors::{Fatal, InitializeError, RaftError};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tripod_state::State;
use tripod_state::ids::{LogIndex, NodeId};
use tripod_state::planted::{Bug, is_planted};

use crate::config;
use crate::divergence::{Company, Comparer};
use crate::failure::Failure;
use crate::fitness::{Fitness, Watcher};
use crate::forward::Forwarder;
use crate::handle::{Applied, Hooks, ProposeError, StartError, Status};
use crate::held_votes::HeldVotes;
use crate::journal::Space;
use crate::leader_link::LeaderLink;
use crate::leadership::{LeadershipWatch, Sources};
use crate::log_store::LogStore;
use crate::network::auth::Guard;
use crate::network::channels::Channels;
use crate::network::client::PeerClients;
use crate::network::heard::Heard;
use crate::network::leader_service::LeaderService;
use crate::network::line::Line;
use crate::network::server::{self, RaftService};
use crate::options::Options;
use crate::read_index::ReadRounds;
use crate::rejoin::{self, Asked, Gate, Marker, Newcomer, Respondent};
use crate::space::{Admission, Gauge, Reports};
use crate::state_machine::StateMachine;
use crate::status::{self, Health};
use crate::storage::Storage;
use crate::submit::Submitter;
use crate::types::{Peer, Raft};
use crate::world::{Door, Work, World};

/// Bytes of one encoded command. With what surrounds it, it must fit one message between peers: a
/// command that does not could be appended, but never replicated.
const COMMAND_BYTES_MAX: usize = 72 << 20;
/// How long a transfer of leadership may take.
const TRANSFER_DEADLINE: Duration = Duration::from_secs(2);
/// How long peers' calls may take to end when the port is closed.
const DRAIN_DEADLINE: Duration = Duration::from_secs(1);

/// A running node.
pub(crate) struct Node {
    options: Options,
    hooks: Hooks,
    raft: Raft,
    machine: StateMachine,
    log: LogStore,
    failure: Failure,
    leadership: LeadershipWatch,
    fitness: Fitness,
    line: Line,
    heard: Heard,
    space: Space,
    gauge: Gauge,
    admission: Admission,
    reports: Reports,
    submitter: Submitter,
    forwarder: Forwarder,
    link: LeaderLink,
    comparer: Comparer,
    work: Work,
    /// Which messages of peers are let in.
    gate: Gate,
    /// Reads while this node leads.
    own_rounds: ReadRounds,
    /// Reads while another node leads.
    remote_rounds: ReadRounds,
    stopping: AtomicBool,
    stop: watch::Sender<bool>,
    server: Mutex<Option<JoinHandle<()>>>,
}

impl Node {
    /// Opens the storage, recovers the state, and joins the peers.
    pub(crate) async fn start(world: World, options: Options, hooks: Hooks) -> Result<Self, StartError> {
        let config = config::raft_config(&options)?;
        let World { wires, work, clock, observer } = world;
        let door = server::bind(&wires, &options.peer_listen).await?;
        let failure = Failure::new();
        let storage = {
            let (options, failure, within) = (options.clone(), failure.clone(), work.clone());
            let opened = work.run(move || Storage::open(within, &options, failure)).await;
            opened.map_err(|error| {
                StartError::Storage(format!("TRIPOD-RECOVERY: opening the storage panicked: {error}"))
            })??
        };
        let Storage { log, snapshots, space, marker } = storage;
        let (gauge, admission) = (Gauge::new(&options.data, space.clone()), Admission::new());
        let cluster_id = options.cluster_id.clone();
        let (fitness, line, heard) = (Fitness::new(), Line::new(), Heard::new());
        let channels = Channels::new(wires, config::connect_timeout(&options));
        let clients = PeerClients::new(cluster_id.clone(), channels.clone(), snapshots.clone(), line.clone());
        let machine = StateMachine::new(snapshots, cluster_id.clone(), hooks.clone(), failure.clone());
        let machine = machine.observed(observer);
        let started = Raft::new(options.node.0, config, clients, log.clone(), machine.clone()).await;
        let raft = match started {
            Ok(raft) => raft,
            Err(fatal) => {
                space.close();
                log.stop().await;
                return Err(StartError::Storage(recovery_failed(&options, &failure, &fatal)));
            }
        };
        let sources =
            Sources { applied: machine.applied(), unfit: fitness.subscribe(), heard: heard.subscribe() };
        let leadership = LeadershipWatch::start(options.node.0, &raft, sources);
        let reports =
            Reports::new(options.node, gauge.clone(), admission.clone(), leadership.clone(), raft.clone());
        let votes = HeldVotes::new(options.node.0, cluster_id.clone(), channels.clone(), raft.clone());
        let link = LeaderLink::new(cluster_id, raft.clone(), channels.clone(), leadership.clone());
        let comparer = Comparer::new(options.node.0, options.data.clone(), failure.clone(), work.clone());
        let node = Self {
            submitter: Submitter::new(raft.clone(), clock),
            forwarder: Forwarder::start(link.clone()),
            own_rounds: own_rounds(votes),
            remote_rounds: remote_rounds(&link),
            stopping: AtomicBool::new(false),
            stop: watch::Sender::new(false),
            server: Mutex::new(None),
            options,
            hooks,
            raft,
            machine,
            log,
            failure,
            leadership,
            fitness,
            line,
            heard,
            space,
            gauge,
            admission,
            reports,
            link,
            comparer,
            work,
            gate: Gate::closed(),
        };
        node.join(channels, marker);
        node.serve(door);
        node.watch();
        Ok(node)
    }

    fn serve(&self, door: Door) {
        let cluster_id = &self.options.cluster_id;
        let raft = RaftService {
            raft: self.raft.clone(),
            snapshots: self.machine.snapshots().clone(),
            cluster_id: cluster_id.clone(),
            heard: self.heard.clone(),
            stop: self.stop.subscribe(),
            gate: self.gate.clone(),
            respondent: Respondent {
                raft: self.raft.clone(),
                machine: self.machine.clone(),
                leadership: self.leadership.clone(),
                submitter: self.submitter.clone(),
            },
        };
        let leader = LeaderService {
            submitter: self.submitter.clone(),
            rounds: self.own_rounds.clone(),
            leadership: self.leadership.clone(),
            hooks: self.hooks.clone(),
            admission: self.admission.clone(),
            reports: self.reports.clone(),
            comparer: self.comparer.clone(),
        };
        let guard = Guard::new(cluster_id, self.options.node.0);
        let task = server::serve(door, &guard, raft, leader, self.stop.subscribe());
        *self.server.lock() = Some(task);
    }

    /// Starts the tasks that look after the engine.
    fn watch(&self) {
        tokio::spawn(watch_engine(self.raft.clone(), self.failure.clone(), self.stop.subscribe()));
        let reports = self.reports.clone();
        if !self.work.is_inline() {
            // A simulated disk has no file system that could be measured.
            tokio::spawn(reports.run(self.machine.clone(), self.link.clone(), self.stop.subscribe()));
        }
        let watcher = Watcher {
            node: self.options.node,
            raft: self.raft.clone(),
            flushes: self.log.flushes().clone(),
            line: self.line.clone(),
            fitness: self.fitness.clone(),
        };
        tokio::spawn(watcher.run(self.options.clone(), self.stop.subscribe()));
        tokio::spawn(self.comparer.clone().run(Company {
            machine: self.machine.clone(),
            link: self.link.clone(),
            leadership: self.leadership.clone(),
            stop: self.stop.subscribe(),
        }));
        let (raft, machine, mut stop) = (self.raft.clone(), self.machine.clone(), self.stop.subscribe());
        tokio::spawn(async move {
            let build = async {
                loop {
                    machine.snapshot_wanted().await;
                    if raft.trigger().snapshot().await.is_err() {
                        return;
                    }
                }
            };
            tokio::select! {
                () = build => {}
                _ = stop.wait_for(|stop| *stop) => {}
            }
        });
    }

    /// Lets this node take part, at once or when it has asked the others.
    fn join(&self, channels: Channels, marker: Marker) {
        let initial: BTreeMap<u64, Peer> = self
            .options
            .initial
            .iter()
            .map(|member| (member.node.0, Peer { address: member.peer.clone() }))
            .collect();
        let newcomer = Newcomer {
            node: self.options.node.0,
            data: self.options.data.clone(),
            marker,
            initial: initial.clone(),
            cluster_id: self.options.cluster_id.clone(),
            channels,
            raft: self.raft.clone(),
            machine: self.machine.clone(),
            gate: self.gate.clone(),
            failure: self.failure.clone(),
            stop: self.stop.subscribe(),
        };
        let asked = newcomer.must_ask(self.log.is_pristine());
        if asked == Asked::Nothing {
            // Before the port is served, so that no message of a peer is refused.
            self.gate.open();
            return;
        }
        if asked == Asked::HowToReturn {
            // Before an election can be due.
            self.raft.runtime_config().elect(false);
        }
        let raft = self.raft.clone();
        tokio::spawn(newcomer.run(asked, async move || form(&raft, initial).await));
    }

    fn check_running(&self) -> Result<(), ProposeError> {
        if let Some(reason) = self.failure.get() {
            return Err(ProposeError::Stopped(reason));
        }
        if self.stopping.load(Ordering::Relaxed) {
            return Err(ProposeError::Stopped("this node is stopping".into()));
        }
        Ok(())
    }

    pub(crate) async fn propose(&self, payload: Bytes) -> Result<Applied, ProposeError> {
        self.check_running()?;
        if payload.len() > COMMAND_BYTES_MAX {
            let text =
                format!("a command of {} bytes is above the limit of {COMMAND_BYTES_MAX}", payload.len());
            return Err(ProposeError::Overloaded(text));
        }
        if self.leadership.leads_here() {
            self.admission.check(&payload)?;
            tokio::select! {
                biased;
                applied = self.submitter.submit(payload) => applied,
                () = self.leadership.deposed() => Err(ProposeError::Unknown("this node ceased to lead".into())),
            }
        } else {
            self.forwarder.propose(payload).await
        }
    }

    pub(crate) async fn read_barrier(&self) -> Result<LogIndex, ProposeError> {
        self.check_running()?;
        if is_planted(Bug::StaleReads) {
            return Ok(self.applied_index());
        }
        let index = if self.leadership.leads_here() {
            tokio::select! {
                biased;
                index = self.own_rounds.join() => index?,
                () = self.leadership.deposed() => {
                    return Err(ProposeError::NoLeader("this node ceased to lead".into()));
                }
            }
        } else {
            self.remote_rounds.join().await?
        };
        self.wait_applied(index).await?;
        Ok(index)
    }

    pub(crate) async fn wait_applied(&self, index: LogIndex) -> Result<(), ProposeError> {
        if self.machine.applied_index() >= index.0 {
            return Ok(());
        }
        let mut applied = self.machine.applied();
        let mut stop = self.stop.subscribe();
        tokio::select! {
            reached = applied.wait_for(|applied| applied.is_some_and(|id| id.index >= index.0)) => {
                reached.map(|_| ()).map_err(|_| ProposeError::Stopped("this node is stopping".into()))
            }
            reason = self.failure.wait() => Err(ProposeError::Stopped(reason)),
            _ = stop.wait_for(|stop| *stop) => Err(ProposeError::Stopped("this node is stopping".into())),
        }
    }

    pub(crate) fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        self.machine.read(look)
    }

    #[cfg(test)]
    pub(crate) fn machine(&self) -> &StateMachine {
        &self.machine
    }

    pub(crate) fn applied_index(&self) -> LogIndex {
        LogIndex(self.machine.applied_index())
    }

    #[cfg(test)]
    pub(crate) fn flushes(&self) -> &crate::log_store::Flushes {
        self.log.flushes()
    }

    #[cfg(test)]
    pub(crate) fn line(&self) -> &Line {
        &self.line
    }

    pub(crate) fn leadership(&self) -> &LeadershipWatch {
        &self.leadership
    }

    pub(crate) async fn ask_leader(&self, question: Bytes) -> Result<Bytes, ProposeError> {
        self.check_running()?;
        let leadership = self.leadership.get();
        if leadership.leader != Some(self.options.node) {
            return self.link.ask(question).await;
        }
        if !leadership.ready_here {
            return Err(ProposeError::NoLeader("this node leads, but is not ready yet".into()));
        }
        self.hooks.asks.ask(question).await.map_err(ProposeError::NoLeader)
    }

    pub(crate) fn status(&self) -> Status {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let health = Health {
            disk: self.gauge.last(),
            growth_refused: self.admission.refusal().map(|reason| reason.to_string()),
            given_up: self.fitness.given_up(),
            comparisons: self.comparer.comparisons(),
        };
        status::of(&self.options, &metrics, self.leadership.get(), self.machine.applied_index(), health)
    }

    pub(crate) async fn transfer_leadership(&self, to: Option<NodeId>) -> Result<(), ProposeError> {
        self.check_running()?;
        self.hand_over(to).await
    }

    async fn hand_over(&self, to: Option<NodeId>) -> Result<(), ProposeError> {
        let to = match to {
            Some(to) => to,
            None => self.furthest_voter()?,
        };
        if !self.leadership.leads_here() {
            return Err(ProposeError::NoLeader("this node does not lead; ask the leader".into()));
        }
        if to == self.options.node {
            return Ok(());
        }
        let status = self.status();
        if !status.members.iter().any(|member| member.node == to && member.voter) {
            return Err(ProposeError::NoLeader(format!("node {to} is no voter")));
        }
        let started = self.raft.trigger().transfer_leader(to.0).await;
        started.map_err(|fatal| ProposeError::Stopped(fatal.to_string()))?;
        let mut leadership = self.leadership.subscribe();
        let taken = leadership.wait_for(|now| now.leader == Some(to));
        match tokio::time::timeout(TRANSFER_DEADLINE, taken).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(ProposeError::NoLeader(format!(
                "node {to} did not take over within {TRANSFER_DEADLINE:?}"
            ))),
        }
    }

    /// The voter, other than this node, whose log is furthest.
    fn furthest_voter(&self) -> Result<NodeId, ProposeError> {
        let status = self.status();
        let others = status.members.iter().filter(|member| member.voter && member.node != self.options.node);
        let furthest = others.max_by_key(|member| member.matched).map(|member| member.node);
        furthest.ok_or_else(|| ProposeError::NoLeader("there is no other voter".into()))
    }

    pub(crate) async fn failed(&self) -> String {
        self.failure.wait().await
    }

    /// Hands over, stops the engine, closes the port, and makes the log durable. The second call
    /// does nothing.
    pub(crate) async fn shutdown(&self) {
        if self.stopping.swap(true, Ordering::Relaxed) {
            return;
        }
        if self.leadership.leads_here()
            && let Err(error) = self.hand_over(None).await
        {
            tracing::info!(%error, "leadership not handed over");
        }
        self.stop.send_replace(true);
        self.space.close();
        self.machine.close();
        if let Err(error) = self.raft.shutdown().await {
            tracing::warn!(%error, "engine did not stop cleanly");
        }
        let server = self.server.lock().take();
        if let Some(mut server) = server
            && tokio::time::timeout(DRAIN_DEADLINE, &mut server).await.is_err()
        {
            tracing::info!("calls of peers did not end in time");
            server.abort();
        }
        self.log.stop().await;
    }
}

/// Forms the cluster at the very first start. Every node does it with the same list, which is safe: the
/// list is the first log entry, the same everywhere, and an election decides.
async fn form(raft: &Raft, members: BTreeMap<u64, Peer>) -> Result<(), String> {
    match raft.initialize(members).await {
        // A peer's message may have arrived first.
        Ok(()) | Err(RaftError::APIError(InitializeError::NotAllowed(_))) => Ok(()),
        Err(error) => Err(format!("the cluster cannot be formed: {error}")),
    }
}

fn own_rounds(votes: HeldVotes) -> ReadRounds {
    ReadRounds::start(move || {
        let votes = votes.clone();
        async move { votes.confirm().await }
    })
}

fn remote_rounds(link: &LeaderLink) -> ReadRounds {
    let link = link.clone();
    ReadRounds::start(move || {
        let link = link.clone();
        async move { link.read_index().await }
    })
}

fn recovery_failed(options: &Options, failure: &Failure, fatal: &Fatal<crate::types::Types>) -> String {
    // What the state machine or the log said is more exact than what openraft makes of it.
    failure.get().unwrap_or_else(|| {
        format!(
            "TRIPOD-RECOVERY: the state of node {} cannot be recovered from {}: {fatal}. {}",
            options.node,
            options.data.display(),
            rejoin::advice(&options.data)
        )
    })
}

/// Turns an end of the engine that nobody asked for into a failure of the node.
async fn watch_engine(raft: Raft, failure: Failure, mut stop: watch::Receiver<bool>) {
    let ended = async {
        let mut metrics = raft.server_metrics();
        // The sender lives in the engine's task, and goes with it, a panic included.
        while metrics.changed().await.is_ok() {}
        let reason = raft.metrics().borrow_watched().running_state.clone();
        reason.err().map_or_else(|| "it panicked".to_owned(), |fatal| fatal.to_string())
    };
    tokio::select! {
        biased;
        _ = stop.wait_for(|stop| *stop) => {}
        reason = ended => failure.set(&format!("the Raft engine stopped: {reason}")),
    }
}
