//! One running node: everything of this crate put together, started and stopped.

use std::collections::BTreeMap;
use std::path::Path;
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

use crate::config;
use crate::divergence::{Company, Comparer};
use crate::failure::Failure;
use crate::forward::Forwarder;
use crate::handle::{Applied, Hooks, ProposeError, StartError, Status};
use crate::identity;
use crate::journal;
use crate::leader_link::LeaderLink;
use crate::leadership::LeadershipWatch;
use crate::log_store::LogStore;
use crate::network::auth::Guard;
use crate::network::channels::Channels;
use crate::network::client::PeerClients;
use crate::network::leader_service::LeaderService;
use crate::network::server::{self, RaftService};
use crate::options::Options;
use crate::read_index::{self, ReadRounds};
use crate::rejoin::{self, Asked, Gate, Newcomer, Respondent};
use crate::snapshot::SnapshotStore;
use crate::state_machine::StateMachine;
use crate::status;
use crate::submit::Submitter;
use crate::types::{Peer, Raft};

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
    submitter: Submitter,
    forwarder: Forwarder,
    link: LeaderLink,
    comparer: Comparer,
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

/// What a node has on disk.
struct Storage {
    log: LogStore,
    snapshots: SnapshotStore,
}

impl Storage {
    fn open(options: &Options, failure: Failure) -> Result<Self, StartError> {
        let disk = identity::open_data(options)?;
        let snapshots = SnapshotStore::open(&options.data.join("snapshots")).map_err(|error| {
            StartError::Storage(format!(
                "TRIPOD-SNAPSHOT-IO: cannot open the snapshots in {}: {error}; check the disk and permissions",
                options.data.display()
            ))
        })?;
        let disk = journal::open(&options.data.join("journal"), disk, failure.clone())?;
        let log = LogStore::open(disk, failure)?;
        check_reach(&options.data, &log, &snapshots)?;
        Ok(Self { log, snapshots })
    }
}

/// The state is the newest whole snapshot and what the log holds behind it. A log that begins further on
/// would leave a hole, which the engine does not look for.
fn check_reach(data: &Path, log: &LogStore, snapshots: &SnapshotStore) -> Result<(), StartError> {
    let saved = snapshots.current().and_then(|snapshot| snapshot.meta.last_log_id);
    let Some(purged) = log.purged().filter(|purged| saved.is_none_or(|saved| saved.index < purged.index))
    else {
        return Ok(());
    };
    log.close();
    let found = saved.map_or_else(
        || "there is no whole snapshot".to_owned(),
        |saved| format!("the newest whole snapshot ends at {}", saved.index),
    );
    Err(StartError::Storage(format!(
        "TRIPOD-SNAPSHOT-DAMAGED: the log in {} begins behind index {}, but {found} in {}. {}",
        data.display(),
        purged.index,
        data.join("snapshots").display(),
        rejoin::advice(data)
    )))
}

impl Node {
    /// Opens the storage, recovers the state, and joins the peers.
    pub(crate) async fn start(options: Options, hooks: Hooks) -> Result<Self, StartError> {
        let config = config::raft_config(&options)?;
        let listener = server::bind(&options.peer_listen).await?;
        let failure = Failure::new();
        let storage = {
            let (options, failure) = (options.clone(), failure.clone());
            let opened = tokio::task::spawn_blocking(move || Storage::open(&options, failure)).await;
            opened.map_err(|error| {
                StartError::Storage(format!("TRIPOD-RECOVERY: opening the storage panicked: {error}"))
            })??
        };
        let Storage { log, snapshots } = storage;
        let cluster_id = options.cluster_id.clone();
        let machine = StateMachine::new(snapshots, cluster_id.clone(), hooks.clone(), failure.clone());
        let channels = Channels::new(config::connect_timeout(&options));
        let clients = PeerClients::new(cluster_id.clone(), channels.clone());
        let started = Raft::new(options.node.0, config, clients, log.clone(), machine.clone()).await;
        let raft = match started {
            Ok(raft) => raft,
            Err(fatal) => {
                close(&log).await;
                return Err(StartError::Storage(recovery_failed(&options, &failure, &fatal)));
            }
        };
        let leadership = LeadershipWatch::start(options.node.0, &raft, machine.applied());
        let link = LeaderLink::new(cluster_id, raft.clone(), channels.clone(), leadership.clone());
        let comparer = Comparer::new(options.node.0, options.data.clone(), failure.clone());
        let node = Self {
            submitter: Submitter::new(raft.clone()),
            forwarder: Forwarder::start(link.clone()),
            own_rounds: own_rounds(&raft),
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
            link,
            comparer,
            gate: Gate::closed(),
        };
        node.join(channels);
        node.serve(listener);
        node.watch();
        Ok(node)
    }

    fn serve(&self, listener: tokio::net::TcpListener) {
        let cluster_id = &self.options.cluster_id;
        let raft = RaftService {
            raft: self.raft.clone(),
            snapshots: self.machine.snapshots().clone(),
            cluster_id: cluster_id.clone(),
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
            comparer: self.comparer.clone(),
        };
        let guard = Guard::new(cluster_id, self.options.node.0);
        let task = server::serve(listener, &guard, raft, leader, self.stop.subscribe());
        *self.server.lock() = Some(task);
    }

    /// Starts the tasks that look after the engine.
    fn watch(&self) {
        tokio::spawn(watch_engine(self.raft.clone(), self.failure.clone(), self.stop.subscribe()));
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
    fn join(&self, channels: Channels) {
        let initial: BTreeMap<u64, Peer> = self
            .options
            .initial
            .iter()
            .map(|member| (member.node.0, Peer { address: member.peer.clone() }))
            .collect();
        let newcomer = Newcomer {
            node: self.options.node.0,
            data: self.options.data.clone(),
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
            self.submitter.submit(payload).await
        } else {
            self.forwarder.propose(payload).await
        }
    }

    pub(crate) async fn read_barrier(&self) -> Result<LogIndex, ProposeError> {
        self.check_running()?;
        let rounds = if self.leadership.leads_here() { &self.own_rounds } else { &self.remote_rounds };
        let index = rounds.join().await?;
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
        let status = status::of(&self.options, &metrics, self.leadership.get(), self.machine.applied_index());
        Status { comparisons: self.comparer.comparisons(), ..status }
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
        close(&self.log).await;
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

fn own_rounds(raft: &Raft) -> ReadRounds {
    let raft = raft.clone();
    ReadRounds::start(move || {
        let raft = raft.clone();
        async move { read_index::confirm(&raft).await }
    })
}

fn remote_rounds(link: &LeaderLink) -> ReadRounds {
    let link = link.clone();
    ReadRounds::start(move || {
        let link = link.clone();
        async move { link.read_index().await }
    })
}

async fn close(log: &LogStore) {
    let log = log.clone();
    if let Err(error) = tokio::task::spawn_blocking(move || log.close()).await {
        tracing::error!(%error, "closing the log panicked");
    }
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
