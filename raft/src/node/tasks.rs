//! The port of a node, and the tasks that look after its engine.

use std::sync::Arc;

use openraft::async_runtime::WatchReceiver as _;
use tokio_util::sync::CancellationToken;
use tripod_gate::Gate;
use tripod_state::State;
use tripod_state::ids::{NodeId, Term};

use super::Node;
use super::port::{self, Inspector, LeaderService, RaftService, Sanity, Seldom};
use super::trim::Trimmer;
use crate::apply::engine::Raft;
use crate::apply::state_machine::StateMachine;
use crate::base::clock;
use crate::base::failure::Failure;
use crate::base::local_identity::LocalIdentity;
use crate::care::level::{self, Marks};
use crate::care::rejoin::Respondent;
use crate::disk::identity::Identity;
use crate::lead::fitness::Watcher;
use crate::lead::leadership::LeadershipWatch;
use crate::lead::suspicion;
use crate::peers::auth::{self, Guard};
use crate::peers::proof::Proof;
use crate::peers::wiring::PeerListener;

impl Node {
    /// Opens the port to the peers.
    pub(super) fn serve(&self, listener: PeerListener, proof: Option<Proof>, who_may_call: Arc<Gate>) {
        let cluster_id = &self.options.cluster_id;
        let raft = RaftService {
            raft: self.raft.clone(),
            snapshots: self.machine.snapshots().clone(),
            cluster_id: cluster_id.clone(),
            heard: self.heard.clone(),
            sanity: Sanity::new(self.raft.clone()),
            stop: self.stop.clone(),
            gate: self.gate.clone(),
            own: self.level_handler.own().clone(),
            respondent: Respondent {
                raft: self.raft.clone(),
                machine: self.machine.clone(),
                leadership: self.leadership.clone(),
                submitter: self.submitter.clone(),
                acknowledged: self.acknowledged.clone(),
            },
            suspicion: self.suspicion.clone(),
            log: self.log.clone(),
            asks: Arc::clone(&self.hooks.asks),
        };
        let leader = LeaderService {
            submitter: self.submitter.clone(),
            rounds: self.own_rounds.clone(),
            leadership: self.leadership.clone(),
            hooks: self.hooks.clone(),
            inspector: Inspector::new(self.machine.clone(), self.admission.clone()),
            reports: self.reports.clone(),
            comparer: self.comparer.clone(),
            level_gate: self.level_handler.gate().clone(),
            refusals: Seldom::default(),
            takes_newer: self.level_handler.own().takes_newer(),
        };
        let (machine, cluster) = (self.machine.clone(), cluster_id.clone());
        let why_end = move |node, supported| {
            let (removed, level) =
                machine.read(|state| (state.registry().is_removed(NodeId(node)), state.level()));
            if removed {
                return Some(auth::removed(&cluster, node));
            }
            (supported < level).then(|| level::too_old(node, supported, level))
        };
        let guard = Guard::new(LocalIdentity::of(&self.options), Arc::new(why_end)).proved_by(proof);
        let task = port::serve(listener, &guard, who_may_call, raft, leader, self.stop.clone());
        *self.server.lock() = Some(task);
    }

    /// Starts the tasks that look after the engine.
    pub(super) fn watch(&self) {
        tokio::spawn(watch_engine(self.raft.clone(), self.failure.clone(), self.stop.clone()));
        let reports = self.reports.clone();
        if !self.work.is_inline() {
            // A simulated disk has no file system that could be measured.
            tokio::spawn(reports.run(self.machine.clone(), self.link.clone(), self.stop.clone()));
            // Nor is its clock this process's.
            let (leadership, machine) = (self.leadership.clone(), self.machine.clone());
            tokio::spawn(keep_time(leadership, machine, self.stop.clone()));
        }
        let watcher = Watcher {
            node: self.options.node,
            raft: self.raft.clone(),
            flushes: self.log.flushes().clone(),
            send_gate: self.send_gate.clone(),
            hand_over: self.hand_over.clone(),
            fitness: self.fitness.clone(),
        };
        tokio::spawn(watcher.run(self.options.clone(), self.stop.clone()));
        let suspicious = suspicion::Watcher::new(
            self.suspicion.clone(),
            self.members.calls.clone(),
            self.leadership.clone(),
            self.heard.clone(),
            self.gate.clone(),
        );
        tokio::spawn(suspicious.run(self.stop.clone()));
        tokio::spawn(self.members.clone().drive(self.stop.clone()));
        self.watch_levels();
        let (machine, link) = (self.machine.clone(), self.link.clone());
        tokio::spawn(self.comparer.clone().run(machine, link, self.stop.clone()));
        let snapshots = self.machine.snapshots().clone();
        let trimmer = Trimmer::new(&self.options, self.raft.clone(), self.log.clone(), snapshots);
        tokio::spawn(trimmer.run(self.stop.clone()));
        let (raft, machine, stop) = (self.raft.clone(), self.machine.clone(), self.stop.clone());
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
                () = stop.cancelled() => {}
            }
        });
    }
}

impl Node {
    /// Starts the tasks that look after the feature level.
    fn watch_levels(&self) {
        let own = self.level_handler.own().clone();
        if own.build_max == tripod_state::level::FIRST {
            // To be a build that does not do such things.
            return;
        }
        tokio::spawn(self.level_handler.clone().keep(self.stop.clone()));
        let marks = Marks {
            data: self.options.data.clone(),
            identity: Identity::of(&self.options),
            own,
            raft: self.raft.clone(),
            work: self.work.clone(),
        };
        tokio::spawn(marks.run(self.stop.clone()));
    }
}

/// Has this process's clock catch up with the log's time whenever this node begins to lead.
async fn keep_time(leadership: LeadershipWatch, machine: StateMachine, stop: CancellationToken) {
    let keeping = async {
        let mut leadership = leadership.subscribe();
        let mut led_term: Option<Term> = None;
        while let Ok(now) = leadership.wait_for(|now| now.ready_here && Some(now.term) != led_term).await {
            led_term = Some(now.term);
            drop(now);
            clock::catch_up(machine.read(State::now_ms));
        }
    };
    tokio::select! {
        () = keeping => {}
        () = stop.cancelled() => {}
    }
}

/// Turns an end of the engine that nobody asked for into a failure of the node.
async fn watch_engine(raft: Raft, failure: Failure, stop: CancellationToken) {
    let ended = async {
        let mut metrics = raft.server_metrics();
        // The sender lives in the engine's task, and goes with it, a panic included.
        while metrics.changed().await.is_ok() {}
        let reason = raft.metrics().borrow_watched().running_state.clone();
        reason.err().map_or_else(|| "it panicked".to_owned(), |fatal| fatal.to_string())
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        reason = ended => failure.set(&format!("the Raft engine stopped: {reason}")),
    }
}
