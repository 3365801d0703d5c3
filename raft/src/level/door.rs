//! Which commands the leader takes. Those of the first level pass unread; what needs more passes only at the level
//! that allows it, and never while the level is being changed: behind a pin in the log no such command may follow,
//! or a node that has gone back to an older build would stop at it.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};
use tripod_state::ids::FeatureLevel;
use tripod_state::{Command, State};

use super::{MemberLevel, survey};
use crate::handle::ProposeError;
use crate::leadership::LeadershipWatch;
use crate::state_machine::StateMachine;

/// The door of one node. Clones are the same door.
#[derive(Clone)]
pub(crate) struct Door {
    machine: StateMachine,
    leadership: LeadershipWatch,
    changing: Arc<RwLock<()>>,
    /// What the members said last, for the text of a refusal.
    said: Arc<Mutex<Vec<MemberLevel>>>,
}

impl Door {
    pub(crate) fn new(machine: StateMachine, leadership: LeadershipWatch) -> Self {
        Self { machine, leadership, changing: Arc::default(), said: Arc::default() }
    }

    /// Lets a command pass that needs more than the first level. The level stays as it is until the
    /// guard goes, which is when the command has an outcome.
    ///
    /// # Errors
    /// [`ProposeError::Level`], or this node does not lead. Nothing was appended.
    pub(crate) async fn pass(&self, command: &Command) -> Result<OwnedRwLockReadGuard<()>, ProposeError> {
        let guard = self.changing.clone().read_owned().await;
        self.check_leads()?;
        // The commands about the level come from this leader's own keeper and desk.
        let early = command.is_about_level() || self.machine.read(|state| state.too_early(command).is_some());
        if !early {
            return Ok(guard);
        }
        let (kind, level) = (command.kind(), self.machine.read(State::level));
        Err(ProposeError::Level(format!(
            "T4401 level-low: {} needs feature level {}, and the cluster is at {level}: {}; see `tripod level show`",
            kind.name,
            kind.needs,
            survey::why_not_above(&self.said.lock(), level)
        )))
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
