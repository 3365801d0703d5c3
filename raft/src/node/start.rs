//! From options to a node that runs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use openraft::errors::Fatal;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tripod_state::ids::FeatureLevel;

use super::{Node, port};
use crate::apply::engine::Raft;
use crate::apply::hooks::Hooks;
use crate::apply::pin::PinNote;
use crate::apply::state_machine::StateMachine;
use crate::base::advice;
use crate::base::error::{ProposeError, StartError};
use crate::base::failure::Failure;
use crate::base::local_identity::LocalIdentity;
use crate::base::options::Options;
use crate::base::types::Types;
use crate::care::divergence::Comparer;
use crate::care::level::{LevelGate, LevelHandler, Own, Survey};
use crate::care::membership::Members;
use crate::care::rejoin::{Acknowledged, Forming};
use crate::care::space::{Admission, Gauge, Reports};
use crate::disk::Work;
use crate::disk::journal::Space;
use crate::lead::fitness::Fitness;
use crate::lead::forward::Forwarder;
use crate::lead::hand_over::HandOver;
use crate::lead::held_votes::HeldVotes;
use crate::lead::leader_link::LeaderLink;
use crate::lead::leader_signs::LeaderSigns;
use crate::lead::leadership::{LeadershipWatch, Sources};
use crate::lead::read_index::ReadRounds;
use crate::lead::submit::Submitter;
use crate::lead::suspicion::Suspicion;
use crate::log::LogStore;
use crate::node::config;
use crate::node::storage::Storage;
use crate::node::world::World;
use crate::offline::backup::Saves;
use crate::peers::calls::PeerCalls;
use crate::peers::channels::Channels;
use crate::peers::client::PeerClients;
use crate::peers::gate::Gate;
use crate::peers::proof::Proof;
use crate::peers::send_gate::SendGate;
use crate::snapshot::SnapshotStore;

impl Node {
    /// Opens the storage, recovers the state, and joins the peers.
    pub(crate) async fn start(world: World, options: Options, hooks: Hooks) -> Result<Self, StartError> {
        let config = config::raft_config(&options)?;
        let World { wires, work, clock, observer, level_max, who_may_call } = world;
        let (listener, failure) = (port::bind(&wires, &options.peer_listen).await?, Failure::new());
        let Storage { log, snapshots, space, marker, pin, skipped } =
            open_storage(&options, &failure, &work, level_max).await?;
        let (gauge, admission) = (Gauge::new(&options.data, space.clone()), Admission::new(options.state));
        let (fitness, send_gate, heard) = (Fitness::new(), SendGate::new(), heard(&options));
        let (tls, names) = (wires.tls(), wires.names());
        let channels = Channels::new(wires, config::connect_timeout(&options), options.node.0, level_max);
        let calls = PeerCalls::new(LocalIdentity::of(&options), channels.clone());
        let clients = PeerClients::new(calls.clone(), snapshots.clone(), send_gate.clone());
        let machine = new_machine(snapshots, &options, &hooks, &failure);
        let machine = machine.observed(observer).timed(log.stages()).with_skipped(skipped).naming(names);
        let machine = with_levels(machine, level_max, pin)?;
        let raft = match Raft::new(options.node.0, config, clients, log.clone(), machine.clone()).await {
            Ok(raft) => raft,
            Err(fatal) => {
                closed(&space, &log).await;
                return Err(StartError::Storage(recovery_failed(&options, &failure, &fatal)));
            }
        };
        let leadership = LeadershipWatch::start(options.node.0, &raft, sources(&machine, &fitness, &heard));
        let votes = HeldVotes::new(calls.clone(), raft.clone(), log.clone(), machine.clone());
        let submitter = Submitter::new(raft.clone(), clock, log.stages().clone(), leadership.clone());
        let members = members(&options, &raft, &machine, &leadership, &votes, &submitter, &calls);
        let (level_handler, stop) = (level_handler(&members, level_max), CancellationToken::new());
        let link = LeaderLink::new(calls.clone(), raft.clone(), leadership.clone());
        let node = Self {
            acknowledged: Acknowledged::watch(&raft, stop.clone()),
            reports: Reports::new(gauge.clone(), admission.clone(), leadership.clone(), raft.clone()),
            submitter,
            forwarder: Forwarder::start(link.clone()),
            own_rounds: own_rounds(votes, &leadership),
            remote_rounds: remote_rounds(&link),
            comparer: Comparer::new(options.node.0, options.data.clone(), failure.clone(), work.clone()),
            suspicion: Suspicion::new(options.node, raft.clone(), machine.clone()),
            stopping: AtomicBool::new(false),
            stop,
            server: Mutex::new(None),
            options,
            hooks,
            raft,
            machine,
            log,
            failure,
            leadership,
            fitness,
            send_gate,
            heard,
            space,
            gauge,
            admission,
            link,
            hand_over: members.hand_over.clone(),
            members,
            level_handler,
            saves: Saves::default(),
            removed: watch::Sender::new(None),
            work,
            gate: Gate::closed(),
            forming: Forming::default(),
        };
        node.follow_membership(&channels);
        node.join(calls, marker);
        let proof = tls.map(|tls| Proof::new(tls, channels, initial(&node.options)));
        node.serve(listener, proof, who_may_call);
        node.watch();
        Ok(node)
    }
}

/// Where the first members are.
fn initial(options: &Options) -> BTreeMap<u64, String> {
    options.initial.iter().map(|member| (member.node.0, member.peer.clone())).collect()
}

async fn open_storage(
    options: &Options,
    failure: &Failure,
    work: &Work,
    level_max: FeatureLevel,
) -> Result<Storage, StartError> {
    let (options, failure, within) = (options.clone(), failure.clone(), work.clone());
    let opened = work.run(move || Storage::open(within, &options, failure, level_max)).await;
    let mut storage = opened.map_err(|error| {
        StartError::Storage(format!("T3113 recovery: opening the storage panicked: {error}"))
    })??;
    let saved = storage.snapshots.current().and_then(|snapshot| snapshot.meta.last_log_id);
    if let Some(saved) = saved
        && storage.log.cut_beside(saved).await.map_err(|error| StartError::Storage(error.to_string()))?
    {
        tracing::warn!(snapshot = %saved, "dropped entries of a replaced leader, in whose place the snapshot has others");
    }
    Ok(storage)
}

/// What changes the feature level.
fn level_handler(members: &Members, level_max: FeatureLevel) -> LevelHandler {
    let (machine, leadership) = (members.machine.clone(), members.leadership.clone());
    let own = Own { machine: machine.clone(), build_max: level_max, marked: Arc::default() };
    let survey = Survey { calls: members.calls.clone(), raft: members.raft.clone(), own };
    let gate = LevelGate::new(machine, leadership.clone(), level_max);
    LevelHandler::new(survey, gate, members.submitter.clone(), leadership)
}

/// A state machine that has read nothing yet.
fn new_machine(
    snapshots: SnapshotStore,
    options: &Options,
    hooks: &Hooks,
    failure: &Failure,
) -> StateMachine {
    StateMachine::new(snapshots, options.cluster_id.clone(), hooks.clone(), failure.clone())
}

/// The state machine of a build that supports levels up to this one.
fn with_levels(
    machine: StateMachine,
    level_max: FeatureLevel,
    pin: PinNote,
) -> Result<StateMachine, StartError> {
    machine.with_levels(level_max, pin).map_err(|error| {
        StartError::Storage(format!(
            "T4410 level-pin: this node cannot read at which feature level it is pinned: {error}; remove that file \
             and start the node again, then pin the level again if it is to be pinned: `tripod level pin N`"
        ))
    })
}

/// Whoever is heard leads until an election is due.
fn heard(options: &Options) -> LeaderSigns {
    LeaderSigns::new(Duration::from_millis(options.timing.election_max.0))
}

/// What tells who leads.
fn sources(machine: &StateMachine, fitness: &Fitness, heard: &LeaderSigns) -> Sources {
    Sources { applied: machine.applied(), unfit: fitness.subscribe(), heard: heard.subscribe() }
}

/// What changes who the members are.
fn members(
    options: &Options,
    raft: &Raft,
    machine: &StateMachine,
    leadership: &LeadershipWatch,
    votes: &HeldVotes,
    submitter: &Submitter,
    calls: &PeerCalls,
) -> Members {
    Members {
        calls: calls.clone(),
        raft: raft.clone(),
        machine: machine.clone(),
        leadership: leadership.clone(),
        votes: votes.clone(),
        hand_over: HandOver::new(options, raft.clone(), machine.clone(), leadership.clone(), votes.clone()),
        submitter: submitter.clone(),
        patience: Duration::from_millis(options.timing.election_max.0),
        turn: Arc::default(),
        #[cfg(test)]
        idle: Arc::default(),
    }
}

/// A round waits no longer than this node leads, so that those who share it need not watch for that, each of them.
fn own_rounds(votes: HeldVotes, leadership: &LeadershipWatch) -> ReadRounds {
    let leadership = leadership.clone();
    ReadRounds::start(move || {
        let (votes, leadership) = (votes.clone(), leadership.clone());
        async move {
            let ceased = || ProposeError::NoLeader("this node ceased to lead".into());
            if !leadership.leads_here() {
                // Or those who came during the last round would wait as long as it did.
                return Err(ceased());
            }
            tokio::select! {
                biased;
                index = votes.confirm() => index,
                () = leadership.deposed() => Err(ceased()),
            }
        }
    })
}

fn remote_rounds(link: &LeaderLink) -> ReadRounds {
    let link = link.clone();
    ReadRounds::start(move || {
        let link = link.clone();
        async move { link.read_index().await }
    })
}

/// What a node that does not start after all has opened.
async fn closed(space: &Space, log: &LogStore) {
    space.close();
    log.stop().await;
}

fn recovery_failed(options: &Options, failure: &Failure, fatal: &Fatal<Types>) -> String {
    // What the state machine or the log said is more exact than what openraft makes of it.
    failure.get().unwrap_or_else(|| {
        format!(
            "T3113 recovery: the state of node {} cannot be recovered from {}: {fatal}. {}",
            options.node,
            options.data.display(),
            advice::rejoin(&options.data)
        )
    })
}
