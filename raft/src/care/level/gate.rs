//! Which commands the leader takes. Those of the first level pass unread; what needs more passes only at the level
//! that allows it, and never while the level is being changed: behind a pin in the log no such command may follow,
//! or a node that has gone back to an older build would stop at it.
//!
//! In a cluster that has just been formed nothing passes at all until its leader has looked what the members support, or
//! the first commands would be applied by the rules of the first level.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, watch};
use tripod_state::ids::{FeatureLevel, NodeId, Term};
use tripod_state::{Command, State, level};

use super::{MemberLevel, survey};
use crate::apply::state_machine::StateMachine;
use crate::base::error::ProposeError;
use crate::lead::leadership::LeadershipWatch;

/// Leave to append commands, for as long as this lives: the level stays as it is until then.
#[derive(Debug)]
pub(crate) struct Passage {
    /// In force; of what needs no more than the first level it need not be known.
    level: FeatureLevel,
    /// `None`: nothing but commands of the first level.
    _unchanged: Option<OwnedRwLockReadGuard<()>>,
}

/// The gate of one node. Clones are the same gate.
#[derive(Clone)]
pub(crate) struct LevelGate {
    machine: StateMachine,
    leadership: LeadershipWatch,
    changing: Arc<RwLock<()>>,
    /// What the members said last, for the text of a refusal.
    said: Arc<Mutex<Vec<MemberLevel>>>,
    /// The last term in which this node led and has looked.
    looked: Arc<watch::Sender<Term>>,
    /// Whether this node need not look: it has seen that the cluster is in use.
    in_use: Arc<AtomicBool>,
}

impl LevelGate {
    /// The gate of a build that supports levels up to this one. One of the first level never looks.
    pub(crate) fn new(machine: StateMachine, leadership: LeadershipWatch, build_max: FeatureLevel) -> Self {
        Self {
            machine,
            leadership,
            changing: Arc::default(),
            said: Arc::default(),
            looked: Arc::new(watch::Sender::new(Term(0))),
            in_use: Arc::new(AtomicBool::new(build_max == level::FIRST)),
        }
    }

    /// Waits, on the leader of a cluster that nobody has used yet, until it has looked what the members support: that takes
    /// milliseconds if all of them are up, and two seconds at most.
    ///
    /// # Errors
    /// This node has ceased to lead. Nothing was appended.
    pub(crate) async fn wait_for_first_look(&self) -> Result<(), ProposeError> {
        if self.in_use.load(Ordering::Relaxed) {
            return Ok(());
        }
        let here = Some(NodeId(self.leadership.node()));
        let mut leadership = self.leadership.subscribe();
        let mut looked = self.looked.subscribe();
        loop {
            if !self.machine.read(State::is_unused) {
                self.in_use.store(true, Ordering::Relaxed);
                return Ok(());
            }
            let now = *leadership.borrow_and_update();
            if now.leader != here {
                return Err(ProposeError::NoLeader("this node ceased to lead".into()));
            }
            if now.ready_here && *looked.borrow_and_update() == now.term {
                return Ok(());
            }
            tokio::select! {
                _ = looked.changed() => {}
                changed = leadership.changed() => if changed.is_err() {
                    return Err(ProposeError::Stopped("this node is stopping".into()));
                },
            }
        }
    }

    /// Lets commands pass from now on, as the leader of this term has looked.
    pub(super) fn open_for(&self, term: Term) {
        let is_first = self.looked.send_if_modified(|looked| std::mem::replace(looked, term) != term);
        let level = self.level();
        if is_first && level < level::NEWEST && self.machine.read(State::is_unused) {
            tracing::info!(
                %level,
                why = survey::why_not_above(&self.said.lock(), level),
                "this new cluster is used at a feature level below the newest; `tripod level show` tells when it rises"
            );
        }
    }

    /// Leave for commands none of which needs more than `needs_max`, each of which [`Self::check`] looks at. It is to
    /// be kept until they have outcomes. Waits while the level is being changed, if one of them may need more than the
    /// first.
    ///
    /// # Errors
    /// This node does not lead, or is not ready: only commands of the first level may be appended.
    pub(crate) async fn enter(&self, needs_max: FeatureLevel) -> Result<Passage, ProposeError> {
        if needs_max <= level::FIRST {
            return Ok(Passage { level: level::FIRST, _unchanged: None });
        }
        let unchanged = self.changing.clone().read_owned().await;
        self.check_leads()?;
        Ok(Passage { level: self.level(), _unchanged: Some(unchanged) })
    }

    /// Whether the level in force allows a command.
    ///
    /// # Errors
    /// [`ProposeError::Level`]: it does not.
    pub(crate) fn check(&self, passage: &Passage, command: &Command) -> Result<(), ProposeError> {
        let (kind, level) = (command.kind(), passage.level);
        // The commands about the level come from this leader's own keeper and handler.
        if kind.needs <= level && !command.is_about_level() {
            return Ok(());
        }
        Err(ProposeError::Level(format!(
            "T4401 level-low: {} needs feature level {}, and the cluster is at {level}: {}; see `tripod level show`",
            kind.name,
            kind.needs,
            survey::why_not_above(&self.said.lock(), level)
        )))
    }

    /// [`Self::enter`] for one command that has passed [`Self::check`].
    ///
    /// # Errors
    /// As both.
    pub(crate) async fn pass(&self, command: &Command) -> Result<Passage, ProposeError> {
        let passage = self.enter(command.needs()).await?;
        if command.needs() > level::FIRST {
            self.check(&passage, command)?;
        }
        Ok(passage)
    }

    /// Waits until no command that needs more than the first level is under way, and lets none pass until the
    /// guard goes.
    pub(super) async fn close(&self) -> OwnedRwLockWriteGuard<()> {
        self.changing.clone().write_owned().await
    }

    pub(super) fn note(&self, said: &[MemberLevel]) {
        *self.said.lock() = said.to_vec();
    }

    pub(super) fn level(&self) -> FeatureLevel {
        self.machine.read(State::level)
    }

    /// Only a leader that has everything of earlier terms in its state knows the level.
    pub(super) fn check_leads(&self) -> Result<(), ProposeError> {
        if self.leadership.get().ready_here {
            return Ok(());
        }
        Err(ProposeError::NoLeader("this node does not lead, or is not ready yet".into()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;
    use tripod_state::level::Command as LevelCommand;
    use tripod_state::{Envelope, job};

    use super::*;
    use crate::care::level::LevelRequest;
    use crate::test_cluster::{Cluster, Wire, create_job, each_seed, level_raised, propose};

    /// Longer than anything is under way.
    const LONG: Duration = Duration::from_millis(500);
    /// Shorter than an election timeout.
    const SHORT: Duration = Duration::from_millis(50);

    fn note(text: &str) -> Command {
        Command::Job(job::Command::Note { name: "job".into(), note: text.into() })
    }

    #[test]
    fn a_newer_command_in_a_batch_waits_while_the_level_is_changed_and_is_refused_by_the_lower_one() {
        each_seed(0..3, async || {
            let cluster = Cluster::start(3).await;
            let leader = cluster.leader().await;
            create_job(cluster.node(leader)).await;
            level_raised(&cluster).await;
            let follower = cluster.node(cluster.follower().await).clone();
            // From its answer on the follower sends such commands in batches.
            propose(&follower, &note("mine")).await.reply.unwrap();
            propose(&follower, &note("")).await.reply.unwrap();

            let level_handler = cluster.node(leader).node().level_handler.clone();
            let closed = level_handler.gate().close().await;
            let mut asked = std::pin::pin!(follower.propose(Envelope { stamp: None, command: note("late") }));
            assert!(timeout(LONG, &mut asked).await.is_err(), "it was let pass");
            let pin = LevelCommand::Pin { level: level::FIRST, by: "test".into() };
            level_handler.submit(Command::Level(pin)).await.unwrap();
            drop(closed);
            let refused = asked.await.unwrap_err();
            let ProposeError::Level(text) = &refused else { panic!("{refused:?}") };
            assert!(text.contains("level 2") && text.contains("at 1"), "{text}");
            cluster.stop().await;
        });
    }

    #[test]
    fn a_newer_command_waits_for_the_outcome_of_a_pin_that_nobody_waits_for_any_more() {
        each_seed(0..3, async || {
            let cluster = Cluster::start(3).await;
            let leader = cluster.leader().await;
            create_job(cluster.node(leader)).await;
            level_raised(&cluster).await;
            let node = cluster.node(leader).clone();

            let passage = node.node().level_handler.gate().enter(level::NEWEST).await.unwrap();
            let mut asked =
                Box::pin(node.levels(LevelRequest::Pin { level: level::FIRST, by: "test".into() }));
            assert!(timeout(LONG, &mut asked).await.is_err(), "a command is under way");
            let others = cluster.running().into_iter().filter(|other| *other != leader);
            others.clone().for_each(|other| cluster.wire(other, Wire::Held));
            drop(passage);
            assert!(timeout(SHORT, &mut asked).await.is_err(), "nobody else has heard of it");
            drop(asked);
            others.for_each(|other| cluster.wire(other, Wire::Whole));
            let refused = node.propose(Envelope { stamp: None, command: note("late") }).await;
            assert!(matches!(refused, Err(ProposeError::Level(_))), "{refused:?}");
            cluster.stop().await;
        });
    }
}
