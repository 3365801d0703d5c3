//! What the leader takes in while disks or memory are full.

use std::sync::Arc;

use tokio::sync::watch;
use tripod_state::{Command, Envelope};

use super::admitted_bytes::{Admitted, AdmittedBytes};
use crate::apply::state_machine::StateMachine;
use crate::base::error::ProposeError;
use crate::base::options::StateLimits;

/// The word that nothing may grow at the moment, with its reason. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Admission {
    refusal: watch::Sender<Option<Word>>,
    room: AdmittedBytes,
}

/// Why nothing may grow.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Word {
    reason: Arc<str>,
    /// This node decided it, as leader. What another leader said does not bind a node that leads after it: often
    /// leadership was moved because the disk of the other one is full.
    own: bool,
}

impl Admission {
    /// Everything is taken in.
    pub(crate) fn new(limits: StateLimits) -> Self {
        Self { refusal: watch::Sender::new(None), room: AdmittedBytes::new(limits) }
    }

    /// Why nothing may grow, if so. On a follower: as the leader said last.
    pub(crate) fn refusal(&self) -> Option<Arc<str>> {
        self.refusal.borrow().as_ref().map(|word| word.reason.clone())
    }

    /// The same, if it is this node's own decision.
    pub(super) fn decided(&self) -> Option<Arc<str>> {
        self.refusal.borrow().as_ref().filter(|word| word.own).map(|word| word.reason.clone())
    }

    /// This node leads, and has decided.
    pub(super) fn decide(&self, refusal: Option<String>) {
        self.set(refusal.map(|reason| Word { reason: reason.into(), own: true }));
    }

    /// The leader of this node has decided.
    pub(super) fn hear(&self, refusal: Option<String>) {
        self.set(refusal.map(|reason| Word { reason: reason.into(), own: false }));
    }

    fn set(&self, refusal: Option<Word>) {
        self.refusal.send_if_modified(|current| {
            let same_kind = current.is_some() == refusal.is_some();
            let changed = *current != refusal;
            if !same_kind {
                match &refusal {
                    Some(Word { reason, .. }) => tracing::warn!(reason = &**reason, "nothing may grow"),
                    None => tracing::info!("there is room to grow again"),
                }
            }
            *current = refusal;
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
        let bytes = || machine.bytes_at_a_glance();
        if let Some(admitted) = self.room.at_a_glance(bytes, &envelope.command, encoded) {
            return Ok(Some(admitted));
        }
        machine.read(|state| self.room.admit(state, envelope, encoded))
    }

    /// Refuses a command if it would make the state grow and nothing may.
    fn check(&self, command: &Command) -> Result<(), ProposeError> {
        match self.decided() {
            Some(reason) if command.grows() => Err(ProposeError::DiskFull(reason.to_string())),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    //! Numbers as in `n7` are those of the walk-through of a new operator.

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
        admission.decide(Some("no room".into()));
        assert_eq!(admission.check(&put), Err(ProposeError::DiskFull("no room".into())));
        assert_eq!(admission.check(&delete), Ok(()));
        admission.decide(None);
        assert_eq!(admission.check(&put), Ok(()));
    }

    /// Between the moment when a node begins to lead and its first look at the disks.
    #[test]
    fn n51_a_new_leader_does_not_refuse_because_the_disk_of_the_last_one_was_full() {
        let scope = Scope { job: JobId(1), service: None };
        let put = kv::Command::Insert { scope, key: "k".into(), value: "v".into(), overwrite: true };
        let admission = Admission::new(StateLimits::default());
        admission.hear(Some("the leader, node 3, has no room".into()));
        assert!(admission.refusal().is_some() && admission.decided().is_none());
        assert_eq!(admission.check(&Command::Kv(put)), Ok(()));
    }
}
