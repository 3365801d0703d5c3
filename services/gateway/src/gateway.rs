//! The facade that front ends call.

mod figures;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::timeout;
use tripod_local::Connections;
use tripod_port::{Budget, CallTally, CallerAddress, Contact, StreamTally};
use tripod_raft::{Handle, Leadership, ProposeError, StateLimits};
use tripod_state::ids::{DurationMs, Incarnation, JobId, LogIndex, TaskId, TimeMs};
use tripod_state::task::FIRST_HEARTBEAT_MS;
use tripod_state::token::Tokens;
use tripod_state::{Command, Envelope, Reply, Scope, State, Topic, task};

use crate::ages::{self, HeartbeatAges};
use crate::backend::{Admin, Replica, look};
use crate::calls::Calls;
use crate::contact;
use crate::fairness::{self, TurnCounts, Turns};
use crate::forks::Forks;
use crate::held_processes::HeldProcesses;
use crate::hub::{Hub, Watch};
use crate::job_names::JobNames;
use crate::keeper::{Keeper, WhyLost};
use crate::last_backup::LastBackup;
use crate::memory::MemoryBackend;
use crate::node_events;
use crate::open_calls::OpenCalls;
use crate::opening::IdWidth;
use crate::options::Options;
use crate::outage::Outage;
use crate::parts::Parts;
use crate::peers::{Channel, Peers, PeersHandler, on};
use crate::pulse::{Beat, BeatSetId, Pulse, SetBeat, SetWord, Sign};
use crate::renewal;
use crate::sight;
use crate::submit::Submitter;
use crate::tokens::KnownTokens;

/// How often a connection is told of whose task has sent no heartbeat yet: a third of the time that such a task has.
pub const PRESENT_EVERY: Duration = Duration::from_millis(FIRST_HEARTBEAT_MS.0 / 3);

/// How long the leader may take to say when it heard tasks. Who looks at them sees everything else without it.
const AGES_PATIENCE: Duration = Duration::from_millis(500);

/// How fresh a read must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consistency {
    /// Sees every write that was acknowledged before the read began.
    Linearizable,
    /// This node's memory, possibly old.
    Local,
}

/// Cheap to clone; one for all front ends of a node. Its tasks end with its last clone.
#[derive(Clone)]
pub struct Gateway {
    pub(crate) backend: Arc<dyn Replica>,
    admin: Arc<dyn Admin>,
    hub: Arc<Hub>,
    calls: Arc<Calls>,
    pub(crate) open_calls: Arc<OpenCalls>,
    pub(crate) held: Arc<HeldProcesses>,
    submitter: Arc<Submitter>,
    pulse: Arc<Pulse>,
    peers: Arc<Peers>,
    connections: Connections,
    forks: Arc<Forks>,
    /// Those of clients' linearizable reads.
    reads: Turns,
    memory: Budget,
    streams: StreamTally,
    counted: CallTally,
    keeper: Arc<Keeper>,
    backups: LastBackup,
    state_limits: StateLimits,
    names: Arc<JobNames>,
    insecure: bool,
    tokens: Arc<KnownTokens>,
}

impl Gateway {
    /// A gateway over a node that was started with the hooks of `parts`. Must be called within a tokio
    /// runtime.
    #[must_use]
    pub fn start(handle: Handle, parts: Parts) -> Self {
        Self::over(Arc::new(handle), parts)
    }

    /// A gateway over any backend that calls the hooks of `parts`. Must be called within a tokio
    /// runtime.
    #[must_use]
    pub fn over(backend: Arc<impl Replica + Admin>, parts: Parts) -> Self {
        let admin = Arc::clone(&backend) as Arc<dyn Admin>;
        let backend: Arc<dyn Replica> = backend;
        let Parts { hub, keeper, clock, options, open_calls } = parts;
        let calls = Calls::new(options.waiting_max);
        keeper.start(&backend);
        let held = Arc::default();
        sight::answer(&keeper, &backend, &admin, (&calls, &open_calls, &held));
        node_events::answer(&keeper.peers(), keeper.events());
        let peers = keeper.peers();
        let node = admin.status().node;
        let submitter = Submitter::new(node, Arc::clone(&backend), Arc::clone(&calls), options.hold);
        let submitter = Arc::new(submitter);
        renewal::start(&submitter);
        let (node, sender) = (Arc::clone(&backend), Arc::clone(&submitter));
        let pulse = Pulse::start(node, sender, Arc::clone(&hub), Arc::clone(&calls), clock);
        let connections = Connections::new(options.connections);
        let forks = Arc::new(Forks::new(Arc::clone(&calls)));
        let reads = Turns::new(fairness::READS);
        let memory = Budget::new(options.memory);
        let pulse = Arc::new(pulse);
        let names = Arc::new(JobNames::new(hub.watch(Topic::Jobs)));
        let tokens = Arc::new(KnownTokens::new(hub.watch(Topic::Tokens)));
        let (streams, counted) = (StreamTally::default(), CallTally::new());
        let watched = node_events::Watched {
            replica: Arc::downgrade(&backend),
            admin: Arc::downgrade(&admin),
            submitter: Arc::downgrade(&submitter),
            calls: counted.clone(),
            connections: connections.clone(),
        };
        node_events::watch(keeper.events(), watched);
        Self {
            backend,
            admin,
            hub,
            calls,
            open_calls,
            held,
            submitter,
            pulse,
            peers,
            connections,
            forks,
            reads,
            memory,
            streams,
            counted,
            keeper,
            backups: LastBackup::default(),
            state_limits: options.state,
            names,
            insecure: options.insecure,
            tokens,
        }
    }

    /// A gateway over a state in memory, and the handle that plays tricks on it: for tests of front
    /// ends. Must be called within a tokio runtime.
    #[must_use]
    pub fn in_memory() -> (Self, Arc<MemoryBackend>) {
        Self::in_memory_with(Options::default())
    }

    /// [`Self::in_memory`] with other patience.
    #[must_use]
    pub fn in_memory_with(options: Options) -> (Self, Arc<MemoryBackend>) {
        Self::on(MemoryBackend::new(), options)
    }

    /// [`Self::in_memory`] whose clock begins at `begins`, so that a run with tokio's clock paused repeats.
    #[must_use]
    pub fn in_memory_at(begins: TimeMs) -> (Self, Arc<MemoryBackend>) {
        Self::on(MemoryBackend::beginning(begins), Options::default())
    }

    fn on(backend: Arc<MemoryBackend>, options: Options) -> (Self, Arc<MemoryBackend>) {
        let parts = Parts::with_clock(options, backend.clock());
        backend.hook(parts.hooks());
        (Self::over(Arc::clone(&backend), parts), backend)
    }

    /// Replicates a command exactly once and gives its reply. Holds while there is no leader. If the
    /// future is dropped before, the command takes effect once or not at all.
    ///
    /// # Errors
    /// [`Outage`].
    pub async fn submit(&self, command: Command) -> Result<Reply, Outage> {
        Ok(self.submitter.submit(command).await?.reply)
    }

    /// [`Self::submit`], held for so long: for what its caller would otherwise submit once more, and might be done twice.
    ///
    /// # Errors
    /// [`Outage`].
    pub async fn submit_within(&self, command: Command, hold: Duration) -> Result<Reply, Outage> {
        Ok(self.submitter.submit_within(command, hold).await?.reply)
    }

    /// Opens a session for a client at this address, and gives [`Answer::Session`](tripod_state::Answer::Session). Holds
    /// while there is no leader.
    ///
    /// # Errors
    /// [`Outage`].
    pub async fn open_session(&self, from: CallerAddress, width: IdWidth) -> Result<Reply, Outage> {
        Ok(self.submitter.open_for(from, width).await?.reply)
    }

    /// Replicates an envelope that carries its client's own stamp, unchanged, and gives its reply.
    /// Without a stamp, an unknown outcome is not tried again.
    ///
    /// # Errors
    /// [`Outage`].
    pub async fn submit_stamped(&self, envelope: Envelope) -> Result<Reply, Outage> {
        Ok(self.submitter.submit_stamped(envelope).await?.reply)
    }

    /// Looks at the state. Keep it short: apply waits.
    ///
    /// # Errors
    /// [`Outage`]; a local read has none.
    pub async fn read<T>(
        &self,
        consistency: Consistency,
        look: impl FnOnce(&State) -> T,
    ) -> Result<T, Outage> {
        if consistency == Consistency::Linearizable {
            self.barrier().await?;
        }
        Ok(self.look(look))
    }

    /// The job of this name, if this node's state has one, possibly an old one; without waiting for what is applied.
    #[must_use]
    pub fn job_named_here(&self, name: &str) -> Option<JobId> {
        self.names.find(self.backend.as_ref(), name)
    }

    /// The tokens that this node's state knows, possibly a moment ago, and the time of the log, by which they expire; without waiting
    /// for what is applied.
    #[must_use]
    pub fn tokens_here(&self) -> (Tokens, TimeMs) {
        self.tokens.now(self.backend.as_ref())
    }

    /// Looks at a fork of the state, on a thread: for what takes long, as apply does not wait. A bounded number of such
    /// looks is taken at a time, and a bounded number waits. The look is told the last log index in its state.
    ///
    /// # Errors
    /// [`Outage`].
    pub async fn read_aside<T: Send + 'static>(
        &self,
        consistency: Consistency,
        look: impl FnOnce(LogIndex, &State) -> T + Send + 'static,
    ) -> Result<T, Outage> {
        if consistency == Consistency::Linearizable {
            self.barrier().await?;
        }
        self.forks.look(self.backend.as_ref(), look).await
    }

    /// A heartbeat: told to the leader, or held while there is none or while another task of the job
    /// may be about to be given up, but answered before the client gives up on it. `interval` is when the client sends
    /// the next one, and until when it waits for an answer, if it says so.
    ///
    /// # Errors
    /// [`Outage::Stopping`], and only for a task that is not alive by this node's own state.
    pub async fn heartbeat(
        &self,
        scope: Scope,
        task: TaskId,
        incarnation: Incarnation,
        interval: Option<DurationMs>,
    ) -> Result<Reply, Outage> {
        self.pulse.beat(Beat { scope, task, incarnation, sign: Sign::Beat { interval } }).await
    }

    /// How long ago the leader heard the tasks `0..tasks` of a job; `None` if it does not answer within half a second, or
    /// belongs to a cluster of an earlier level.
    pub async fn heartbeat_ages(&self, job: JobId, tasks: u32) -> Option<HeartbeatAges> {
        if self.look(State::level) < ages::SINCE {
            return None;
        }
        let question = ages::Question { job, tasks }.encode();
        let asked = timeout(AGES_PATIENCE, self.ask_leader(Channel::AGES, &question)).await.ok()?;
        let ages = asked.map_err(|outage| outage.to_string()).and_then(ages::decode);
        ages.inspect_err(|error| tracing::debug!(%error, "nobody says when tasks were heard")).ok()
    }

    /// Has the leader keep these heartbeats, so that [`Self::heartbeats_again`] can tell of them without naming them, in
    /// place of the set that the session had. None of them counts as made hereby.
    pub async fn keep_heartbeats(&self, id: BeatSetId, beats: Vec<SetBeat>) -> SetWord {
        self.pulse.keep(id, beats).await
    }

    /// Those heartbeats of a set were made again that `made` has a bit for, the lowest bit of the first byte first; all,
    /// if that is empty. [`SetWord::Same`] if each of them would be answered at once, with what the set was kept with;
    /// otherwise none of them counts, and each is to be told by [`Self::heartbeat`]. Takes a second at most.
    pub async fn heartbeats_again(&self, id: BeatSetId, made: Bytes) -> SetWord {
        self.pulse.again(id, made).await
    }

    /// Tells the leader that the connection stands over which a task has registered, which counts until its first
    /// heartbeat. Gives whether that is still to come; then it is to be told again within [`PRESENT_EVERY`].
    pub async fn present(
        &self,
        scope: Scope,
        task: TaskId,
        incarnation: Incarnation,
        connection: u64,
    ) -> bool {
        self.pulse.tell(Beat { scope, task, incarnation, sign: Sign::Present { connection } }).await
    }

    /// Tells the leader that the client has closed that connection. Gives whether no leader heard it, so that it is to be
    /// told again.
    pub async fn gone(&self, scope: Scope, task: TaskId, incarnation: Incarnation, connection: u64) -> bool {
        self.pulse.tell(Beat { scope, task, incarnation, sign: Sign::Gone { connection } }).await
    }

    /// Gives a life of a task up whose process is known to be no more, by the rules of one that was silent for too long.
    ///
    /// # Errors
    /// [`Outage`].
    pub async fn lost(&self, job: JobId, task: TaskId, incarnation: Incarnation) -> Result<Reply, Outage> {
        let scope = Scope { job, service: None };
        let reply = self.submit(Command::Task(task::Command::End { scope, task, incarnation })).await;
        self.note_lost(WhyLost::Gone, &reply);
        reply
    }

    /// The same, with how the process ended.
    ///
    /// # Errors
    /// [`Outage`].
    pub async fn ended(
        &self,
        job: JobId,
        task: TaskId,
        incarnation: Incarnation,
        end: task::End,
    ) -> Result<Reply, Outage> {
        let scope = Scope { job, service: None };
        let reply = self.submit(Command::Task(task::Command::Ended { scope, task, incarnation, end })).await;
        self.note_lost(WhyLost::Ended, &reply);
        reply
    }

    fn note_lost(&self, why: WhyLost, reply: &Result<Reply, Outage>) {
        if matches!(reply, Ok(Ok(_))) {
            self.keeper.tally().lost(why, 1);
        }
    }

    /// Asks the leader's node what a front end there keeps in memory, as [`Self::answer_peers`] of that node
    /// answers it. The question may be answered twice.
    ///
    /// # Errors
    /// [`Outage`]: there is no leader, or it does not answer now.
    pub async fn ask_leader(&self, channel: Channel, question: &Bytes) -> Result<Bytes, Outage> {
        self.backend.ask_leader(on(channel, question)).await.map_err(Outage::of_question)
    }

    /// Has this node answer [`Self::ask_leader`] on that channel while it leads. To be called once for a node.
    pub fn answer_peers(&self, channel: Channel, handler: PeersHandler) {
        self.peers.handle(channel, handler);
    }

    /// Listens to a topic from now on. Create it before looking at the state, or a change between the
    /// two is lost.
    #[must_use]
    pub fn watch(&self, topic: Topic) -> Watch {
        self.hub.watch(topic)
    }

    /// What an operator asks of this node, and of the cluster by it.
    #[must_use]
    pub fn admin(&self) -> &dyn Admin {
        self.admin.as_ref()
    }

    /// Who leads, as it changes.
    #[must_use]
    pub fn leadership(&self) -> watch::Receiver<Leadership> {
        self.backend.leadership()
    }

    /// Begins to watch whether this node is in contact with the cluster, which costs a read each half second.
    #[must_use]
    pub fn contact(&self) -> Contact {
        contact::keep(Arc::clone(&self.backend))
    }

    /// The last log index of the state that a local read shows.
    #[must_use]
    pub fn applied_index(&self) -> LogIndex {
        self.backend.applied_index()
    }

    /// How many calls wait on this node: for an outcome, or for a leader.
    #[must_use]
    pub fn waiting_calls(&self) -> u64 {
        self.calls.waiting()
    }

    /// The connections of clients, which ports count here.
    #[must_use]
    pub fn connections(&self) -> &Connections {
        &self.connections
    }

    /// Whether other machines can use a port of this node in plain text, as it was told.
    #[must_use]
    pub fn is_insecure(&self) -> bool {
        self.insecure
    }

    /// The bytes that are held for clients, which ports count here.
    #[must_use]
    pub fn memory(&self) -> &Budget {
        &self.memory
    }

    /// Counts the streams of calls of this node's clients, on all its ports.
    #[must_use]
    pub fn streams(&self) -> &StreamTally {
        &self.streams
    }

    /// Of [those](Self::waiting_calls), how many wait for a leader.
    #[must_use]
    pub fn held_calls(&self) -> u64 {
        self.calls.held()
    }

    /// How many calls have had to wait for a leader since this process started.
    #[must_use]
    pub fn held_calls_total(&self) -> u64 {
        self.calls.held_total()
    }

    /// What has become of clients' calls that had to wait for their turn: to write, to read, or to look for long.
    #[must_use]
    pub fn turns(&self) -> TurnCounts {
        self.submitter.turns().counts().and(self.reads.counts()).and(self.forks.turns())
    }

    /// Waits until this node's state holds every write that was acknowledged before the call.
    async fn barrier(&self) -> Result<(), Outage> {
        let mut hold = self.submitter.hold();
        let _turn = hold.turn(&self.reads, || 0).await?;
        loop {
            let attempt = self.backend.read_barrier();
            let error = match tokio::time::timeout_at(hold.deadline(), attempt).await {
                Ok(Ok(_)) => return Ok(()),
                // A read has no effect that could be in doubt.
                Ok(Err(ProposeError::Unknown(why))) => ProposeError::NoLeader(why),
                Ok(Err(error)) => error,
                Err(_) => ProposeError::NoLeader("the leader does not answer".into()),
            };
            hold.after(error).await?;
        }
    }

    fn look<T>(&self, with: impl FnOnce(&State) -> T) -> T {
        look(self.backend.as_ref(), with)
    }
}
