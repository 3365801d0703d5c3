//! The replicated state as openraft drives it: apply, snapshot, replace.

mod builder;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures::{Stream, StreamExt};
use openraft::storage::{ApplyResponder, EntryResponder, RaftStateMachine};
use openraft::{EntryPayload, OptionalSend};
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, mpsc, watch};
use tripod_state::ids::{FeatureLevel, LogIndex, Term, TimeMs};
use tripod_state::{ApplyContext, Effect, Envelope, State, level};

use builder::Builder;

use crate::apply::cluster_configuration::listed;
use crate::apply::fork::{self, Fork};
use crate::apply::glance::Glance;
use crate::apply::hooks::Hooks;
use crate::apply::levels::{AppliedLevels, Note};
use crate::apply::met::Met;
use crate::apply::pin::PinNote;
use crate::base::command;
use crate::base::failure::Failure;
use crate::base::names::Names;
use crate::base::observer::{self, Observer};
use crate::base::stages::Stages;
use crate::base::types::{Entry, LogId, Membership, Response, SnapshotMeta, Types, entry_bytes};
use crate::disk::skipped::Skipped;
use crate::snapshot::{Frozen, Snapshot, SnapshotFile, SnapshotStore};

/// Entries applied under one hold of the lock. Readers wait that long at most.
const APPLY_MAX: usize = 512;
/// Bytes of applied entries after which a snapshot is asked for, however few entries they are.
const SNAPSHOT_BYTES: u64 = 64 << 20;
/// States that may wait to be hashed. Each keeps alive what has been replaced since; one more is not taken.
const FORKS_MAX: usize = 2;

/// The state and what openraft needs to know of it; they change together.
#[derive(Debug, Clone, Default)]
struct Machine {
    state: State,
    last_applied: Option<LogId>,
    membership: Membership,
    /// What the log has meant for the levels of this node.
    levels: AppliedLevels,
}

impl Machine {
    /// The state as it is, to be compared; `None` if there is nobody to compare it with.
    fn fork(&self) -> Option<Fork> {
        let membership = self.membership.membership();
        if membership.nodes().count() < 2 {
            return None;
        }
        let (state, voters) = (self.state.clone(), membership.get_joint_config().clone());
        Some(Fork { id: self.last_applied?, state, voters })
    }

    fn frozen(self, cluster_id: &str) -> Frozen {
        let Self { state, last_applied, membership, .. } = self;
        Frozen { cluster_id: cluster_id.to_owned(), state, last_applied, membership }
    }
}

/// Clones are the same state machine.
#[derive(Clone)]
pub(crate) struct StateMachine {
    shared: Arc<Shared>,
}

struct Shared {
    machine: RwLock<Machine>,
    snapshots: SnapshotStore,
    /// Written before a snapshot that covers the command it comes from.
    pin_note: Option<PinNote>,
    /// The highest feature level that this build is to support.
    level_max: FeatureLevel,
    skipped: Skipped,
    cluster_id: String,
    hooks: Hooks,
    observer: Option<Arc<dyn Observer>>,
    stages: Stages,
    failure: Failure,
    /// The index up to which effects were told: never ahead of what `machine` shows.
    applied: watch::Sender<Option<LogId>>,
    /// Of `machine`.
    glance: Glance,
    /// Bytes applied since the last snapshot was begun.
    unsaved_bytes: AtomicU64,
    snapshot_wanted: Notify,
    /// Something about members, or a change of them, has become different.
    members_changed: Notify,
    closing: AtomicBool,
    /// States that are to be compared with those of other nodes.
    forks: mpsc::Sender<Fork>,
    met: Met,
    /// Of `machine`.
    names: Names,
    /// The other end, until somebody takes it.
    taken_forks: Mutex<Option<mpsc::Receiver<Fork>>>,
}

/// An entry that is ready to be applied.
#[allow(
    clippy::large_enum_variant,
    reason = "nearly all are commands, and those must not be allocated twice"
)]
enum Step {
    Blank,
    Membership(openraft::Membership<u64, crate::base::types::Peer>),
    Command { now_ms: TimeMs, envelope: Envelope },
}

impl StateMachine {
    /// An empty state. openraft fills it from the current snapshot and the log.
    pub(crate) fn new(snapshots: SnapshotStore, cluster_id: String, hooks: Hooks, failure: Failure) -> Self {
        let (forks, taken_forks) = mpsc::channel(FORKS_MAX);
        let shared = Shared {
            machine: RwLock::default(),
            snapshots,
            pin_note: None,
            level_max: level::NEWEST,
            skipped: Skipped::default(),
            cluster_id,
            hooks,
            observer: None,
            stages: Stages::default(),
            failure,
            applied: watch::Sender::new(None),
            glance: Glance::default(),
            unsaved_bytes: AtomicU64::new(0),
            snapshot_wanted: Notify::new(),
            members_changed: Notify::new(),
            closing: AtomicBool::new(false),
            forks,
            met: Met::default(),
            names: Names::default(),
            taken_forks: Mutex::new(Some(taken_forks)),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The same with somebody who looks on.
    pub(crate) fn observed(mut self, observer: Option<Arc<dyn Observer>>) -> Self {
        let shared = Arc::get_mut(&mut self.shared).expect("nobody else has it yet");
        shared.observer = observer;
        self
    }

    /// The same, timed together with the log that feeds it.
    pub(crate) fn timed(mut self, stages: &Stages) -> Self {
        let shared = Arc::get_mut(&mut self.shared).expect("nobody else has it yet");
        shared.stages = stages.clone();
        self
    }

    /// The same for a build that supports levels up to `level_max`, and was pinned as `note` says.
    ///
    /// # Errors
    /// The note cannot be read.
    pub(crate) fn with_levels(mut self, level_max: FeatureLevel, note: PinNote) -> io::Result<Self> {
        let shared = Arc::get_mut(&mut self.shared).expect("nobody else has it yet");
        shared.machine.get_mut().levels = AppliedLevels::pinned(note.read()?);
        (shared.level_max, shared.pin_note) = (level_max, Some(note));
        Ok(self)
    }

    /// The same that notes there which certificates belong to which nodes.
    pub(crate) fn naming(mut self, names: Names) -> Self {
        let shared = Arc::get_mut(&mut self.shared).expect("nobody else has it yet");
        shared.names = names;
        self
    }

    /// The same that passes over what an operator has said.
    pub(crate) fn with_skipped(mut self, skipped: Skipped) -> Self {
        let shared = Arc::get_mut(&mut self.shared).expect("nobody else has it yet");
        shared.skipped = skipped;
        self
    }

    /// Looks at what the log has meant for the levels of this node.
    pub(crate) fn levels<T>(&self, look: impl FnOnce(&AppliedLevels) -> T) -> T {
        look(&self.shared.machine.read().levels)
    }

    /// As [`AppliedLevels::inherit`].
    pub(crate) fn inherit_pin(&self, pin: Option<FeatureLevel>) -> bool {
        self.shared.machine.write().levels.inherit(pin)
    }

    /// The lowest level whose builds can read everything from the newest snapshot on.
    pub(crate) fn data_level(&self) -> FeatureLevel {
        let reach = self.shared.snapshots.reach().borrow().map(|reach| reach.index);
        let machine = self.shared.machine.read();
        machine.levels.needed_behind(reach, machine.state.level())
    }

    /// Looks at the state as it is now.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.shared.machine.read().state)
    }

    /// Resolves once something about members has become different since the last time. For one who waits.
    pub(crate) async fn members_changed(&self) {
        self.shared.members_changed.notified().await;
    }

    /// The last entry that [`Self::read`] shows and whose effects were told, as it changes.
    pub(crate) fn applied(&self) -> watch::Receiver<Option<LogId>> {
        self.shared.applied.subscribe()
    }

    /// What [`Self::applied`] shows now.
    pub(crate) fn applied_id(&self) -> Option<LogId> {
        *self.shared.applied.borrow()
    }

    /// The last entry in the state that [`Self::read`] shows at this moment: equal answers before and
    /// after a read are the index of what was read. [`Self::applied`] follows a little later.
    pub(crate) fn applied_index(&self) -> u64 {
        self.shared.glance.index()
    }

    /// [`State::bytes`] of everything that callers have been told of, and perhaps of more.
    pub(crate) fn bytes_at_a_glance(&self) -> u64 {
        self.shared.glance.bytes()
    }

    /// [`State::now_ms`], perhaps a moment old.
    pub(crate) fn now_at_a_glance(&self) -> TimeMs {
        self.shared.glance.now_ms()
    }

    /// The state as it is now, to be saved. O(1).
    pub(crate) fn freeze(&self) -> Frozen {
        self.shared.machine.read().clone().frozen(&self.shared.cluster_id)
    }

    /// Everybody whom the log has named.
    pub(crate) fn met(&self) -> &Met {
        &self.shared.met
    }

    /// Where snapshots are kept.
    pub(crate) fn snapshots(&self) -> &SnapshotStore {
        &self.shared.snapshots
    }

    /// Waits until so many bytes were applied that a snapshot is due.
    pub(crate) async fn snapshot_wanted(&self) {
        self.shared.snapshot_wanted.notified().await;
    }

    /// Bytes applied since the last snapshot was begun.
    pub(crate) fn unsaved_bytes(&self) -> u64 {
        self.shared.unsaved_bytes.load(Ordering::Relaxed)
    }

    /// The node stops: a snapshot that waits for room is given up.
    pub(crate) fn close(&self) {
        self.shared.closing.store(true, Ordering::Relaxed);
    }

    /// The states that are to be compared, as they come. `None` for everybody but the first.
    pub(crate) fn take_forks(&self) -> Option<mpsc::Receiver<Fork>> {
        self.shared.taken_forks.lock().take()
    }

    /// The state as it is now, to be compared; `None` before the first entry and in a cluster of one.
    pub(crate) fn fork(&self) -> Option<Fork> {
        self.shared.machine.read().fork()
    }

    /// Changes the state behind the log's back, as a defect would.
    #[cfg(test)]
    pub(crate) fn corrupt(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.shared.machine.write().state);
    }

    fn decode(&self, entry: &Entry) -> io::Result<Step> {
        match &entry.payload {
            EntryPayload::Blank => Ok(Step::Blank),
            EntryPayload::Membership(membership) => Ok(Step::Membership(membership.clone())),
            EntryPayload::Normal(command) => {
                match command::readable(&command.payload, self.shared.level_max) {
                    Ok(envelope) => Ok(Step::Command { now_ms: TimeMs(command.now_ms), envelope }),
                    Err(_) if self.shared.skipped.holds(entry.log_id.index, &command.payload) => {
                        tracing::warn!(index = entry.log_id.index, "an operator has this entry passed over");
                        Ok(Step::Blank)
                    }
                    // Other replicas may know this command. Skipping it here would let this one differ.
                    Err(problem) => {
                        Err(self.stopped_by(entry.log_id.index, "T3114 apply-unknown: ", &problem))
                    }
                }
            }
        }
    }

    /// The end of a node that cannot apply what is committed.
    fn stopped_by(&self, index: u64, code: &str, problem: &str) -> io::Error {
        let reason = format!(
            "{code}the committed command at index {index} cannot be applied: {problem}; start this node with \
             the program version that the other nodes run. If all nodes stopped at this entry, `tripod doctor DIR` tells \
             the way on"
        );
        self.shared.failure.set(&reason);
        io::Error::new(io::ErrorKind::InvalidData, reason)
    }

    /// Applies decoded entries in order; gives the response of each.
    fn apply_steps(&self, steps: Vec<(LogId, Step)>, effects: &mut Vec<Effect>) -> io::Result<Vec<Response>> {
        let mut responses = Vec::with_capacity(steps.len());
        let mut machine = self.shared.machine.write();
        for (id, step) in steps {
            machine.last_applied = Some(id);
            let reply = match step {
                Step::Blank => None,
                Step::Membership(membership) => {
                    effects.extend(machine.state.follow_members(&listed(&membership)));
                    self.shared.met.applied(id, &membership);
                    machine.membership = Membership::new(Some(id), membership);
                    None
                }
                Step::Command { now_ms, envelope } => {
                    let context =
                        ApplyContext { index: LogIndex(id.index), term: Term(id.leader_id.term), now_ms };
                    let before = machine.state.now_ms();
                    let note = Note::of(&envelope.command, machine.state.level());
                    let apply = || machine.state.apply(&context, envelope);
                    // Apply is total, and one day may be so by mistake no more: then every node stops here.
                    let Ok(outcome) = catch_unwind(AssertUnwindSafe(apply)) else {
                        return Err(self.stopped_by(
                            id.index,
                            "T3118 apply-panicked: ",
                            "the program is at fault",
                        ));
                    };
                    machine.levels.take(note, id.index, &outcome.reply);
                    effects.extend(outcome.effects);
                    if fork::is_due(before, &machine.state, id.index)
                        && let Some(fork) = machine.fork()
                    {
                        // One that finds no room, as while a log is replayed, is not compared.
                        let _ = self.shared.forks.try_send(fork);
                    }
                    Some(outcome.reply)
                }
            };
            responses.push(Response { reply });
        }
        self.shared.glance.note(machine.last_applied, &machine.state);
        Ok(responses)
    }

    fn count_bytes(&self, bytes: u64) {
        let before = self.shared.unsaved_bytes.fetch_add(bytes, Ordering::Relaxed);
        if before + bytes >= SNAPSHOT_BYTES {
            self.shared.unsaved_bytes.store(0, Ordering::Relaxed);
            self.shared.snapshot_wanted.notify_one();
        }
    }

    /// Applies one batch: decode, lock, apply, unlock; then effects, the index, the responders.
    fn apply_batch(&self, batch: &mut Vec<EntryResponder<Types>>) -> io::Result<()> {
        let Some((first, _)) = batch.first() else { return Ok(()) };
        let timing =
            self.shared.stages.applying(first.log_id.index, first.log_id.index + batch.len() as u64 - 1);
        let mut steps = Vec::with_capacity(batch.len());
        let mut responders: Vec<Option<ApplyResponder<Types>>> = Vec::with_capacity(batch.len());
        let mut bytes = 0;
        for (entry, responder) in batch.drain(..) {
            if let Some(observer) = &self.shared.observer {
                observer::tell(observer.as_ref(), &entry);
            }
            bytes += entry_bytes(&entry);
            steps.push((entry.log_id, self.decode(&entry)?));
            responders.push(responder);
        }
        let Some((last, _)) = steps.last() else { return Ok(()) };
        let last = *last;
        let mut effects = Vec::new();
        let responses = self.apply_steps(steps, &mut effects)?;
        if !effects.is_empty() {
            (self.shared.hooks.effects)(&effects);
            if effects.contains(&Effect::MemberChanged) {
                self.shared.names.note(&self.shared.machine.read().state);
                self.shared.members_changed.notify_one();
            }
        }
        self.shared.applied.send_replace(Some(last));
        self.shared.stages.applied(timing);
        for (responder, response) in responders.into_iter().zip(responses) {
            if let Some(responder) = responder {
                responder.send(response);
            }
        }
        self.count_bytes(bytes as u64);
        Ok(())
    }
}

impl RaftStateMachine<Types> for StateMachine {
    type SnapshotData = SnapshotFile;
    type SnapshotBuilder = Builder;

    async fn applied_state(&mut self) -> io::Result<(Option<LogId>, Membership)> {
        let machine = self.shared.machine.read();
        Ok((machine.last_applied, machine.membership.clone()))
    }

    async fn apply<S>(&mut self, mut entries: S) -> io::Result<()>
    where
        S: Stream<Item = io::Result<EntryResponder<Types>>> + Unpin + OptionalSend,
    {
        let mut batch = Vec::with_capacity(16);
        while let Some(entry) = entries.next().await {
            batch.push(entry?);
            if batch.len() == APPLY_MAX {
                self.apply_batch(&mut batch)?;
            }
        }
        self.apply_batch(&mut batch)
    }

    async fn get_snapshot_builder(&mut self) -> Builder {
        self.shared.unsaved_bytes.store(0, Ordering::Relaxed);
        Builder { machine: self.shared.machine.read().clone(), shared: self.shared.clone() }
    }

    async fn install_snapshot(&mut self, _meta: &SnapshotMeta, file: SnapshotFile) -> io::Result<()> {
        let shared = self.shared.clone();
        let work = shared.snapshots.work().clone();
        let installed = work.run(move || -> io::Result<()> {
            let (header, mut state) = file.read()?;
            if header.cluster_id != shared.cluster_id {
                let found = &header.cluster_id;
                let reason =
                    format!("the snapshot sent here is of cluster {found}, not of {}", shared.cluster_id);
                return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
            }
            shared.snapshots.adopt(&header, &file)?;
            state.follow_members(&listed(header.membership.membership()));
            shared.met.note(header.membership.membership());
            shared.snapshots.tally().installed();
            let mut machine = shared.machine.write();
            let (last_applied, membership) = (header.last_log_id, header.membership);
            let levels = AppliedLevels::behind_snapshot(machine.levels.pin);
            let new = Machine { state, last_applied, membership, levels };
            let old = std::mem::replace(&mut *machine, new);
            shared.glance.note(machine.last_applied, &machine.state);
            shared.names.note(&machine.state);
            drop(machine);
            // Dropping a large state takes time that readers need not wait for.
            drop(old);
            shared.applied.send_replace(header.last_log_id);
            Ok(())
        });
        installed.await??;
        (self.shared.hooks.replaced)();
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> io::Result<Option<Snapshot>> {
        Ok(self.shared.snapshots.current())
    }
}

#[cfg(test)]
mod tests;
