//! What the leader takes in while disks are full.

use std::sync::Arc;

use tokio::sync::watch;
use tripod_state::Command;

use crate::handle::ProposeError;

/// The word that nothing may grow at the moment, with its reason. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Admission {
    refusal: watch::Sender<Option<Arc<str>>>,
}

impl Admission {
    /// Everything is taken in.
    pub(crate) fn new() -> Self {
        Self { refusal: watch::Sender::new(None) }
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

    /// Refuses a command if it would make the state grow and nothing may.
    pub(crate) fn check(&self, command: &Command) -> Result<(), ProposeError> {
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
        let admission = Admission::new();
        assert_eq!(admission.check(&put), Ok(()));
        admission.set(Some("no room".into()));
        assert_eq!(admission.check(&put), Err(ProposeError::DiskFull("no room".into())));
        assert_eq!(admission.check(&delete), Ok(()));
        admission.set(None);
        assert_eq!(admission.check(&put), Ok(()));
    }
}
