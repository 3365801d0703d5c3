//! What the leader takes in while disks or memory are full.

use std::sync::Arc;

use tokio::sync::watch;
use tripod_state::{Command, Envelope};

use super::room::{Admitted, Room};
use crate::handle::ProposeError;
use crate::options::StateLimits;
use crate::state_machine::StateMachine;

/// The word that nothing may grow at the moment, with its reason. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Admission {
    refusal: watch::Sender<Option<Arc<str>>>,
    room: Room,
}

impl Admission {
    /// Everything is taken in.
    pub(crate) fn new(limits: StateLimits) -> Self {
        Self { refusal: watch::Sender::new(None), room: Room::new(limits) }
    }

    /// Why nothing may grow, if so. On a follower: as the leader said last.
    pub(crate) fn refusal(&self) -> Option<Arc<str>> {
        self.refusal.borrow().clone()
    }

    /// Changes the word.
    pub(super) fn set(&self, refusal: Option<String>) {
        self.refusal.send_if_modified(|current| {
            let same_kind = current.is_some() == refusal.is_some();
            let changed = current.as_deref() != refusal.as_deref();
            if !same_kind {
                match &refusal {
                    Some(reason) => tracing::warn!(reason, "nothing may grow"),
                    None => tracing::info!("there is room to grow again"),
                }
            }
            *current = refusal.map(Into::into);
            changed
        });
    }

    /// Takes in a command that is `encoded` bytes long, if disks and memory have room for it. What it gives is to be kept
    /// until the command's outcome is known.
    ///
    /// # Errors
    /// One has not; nothing is to be appended.
    pub(crate) fn admit(
        &self,
        machine: &StateMachine,
        envelope: &Envelope,
        encoded: usize,
    ) -> Result<Option<Admitted>, ProposeError> {
        self.check(&envelope.command)?;
        machine.read(|state| self.room.admit(state, envelope, encoded))
    }

    /// Refuses a command if it would make the state grow and nothing may.
    fn check(&self, command: &Command) -> Result<(), ProposeError> {
        match self.refusal() {
            Some(reason) if command.grows() => Err(ProposeError::DiskFull(reason.to_string())),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use tripod_state::ids::JobId;
    use tripod_state::{Scope, kv};

    use super::*;

    #[test]
    fn only_what_grows_is_refused_and_only_while_nothing_may() {
        let scope = Scope { job: JobId(1), service: None };
        let put = kv::Command::Insert { scope, key: "k".into(), value: "v".into(), overwrite: true };
        let (put, delete) = (Command::Kv(put), Command::Kv(kv::Command::Delete { scope, key: "k".into() }));
        let admission = Admission::new(StateLimits::default());
        assert_eq!(admission.check(&put), Ok(()));
        admission.set(Some("no room".into()));
        assert_eq!(admission.check(&put), Err(ProposeError::DiskFull("no room".into())));
        assert_eq!(admission.check(&delete), Ok(()));
        admission.set(None);
        assert_eq!(admission.check(&put), Ok(()));
    }
}
