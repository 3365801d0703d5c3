//! What the leader takes in while disks are full.

use std::sync::Arc;

use tokio::sync::watch;
use tripod_state::Envelope;

use crate::codec;
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

    /// Refuses an encoded envelope if it would make the state grow and nothing may. Looks into it only
    /// then: at other times commands pass unread.
    pub(crate) fn check(&self, payload: &[u8]) -> Result<(), ProposeError> {
        let Some(reason) = self.refusal() else { return Ok(()) };
        // One that cannot be read is refused by whoever applies it.
        match codec::decode::<Envelope>(payload) {
            Ok(envelope) if envelope.command.grows() => Err(ProposeError::DiskFull(reason.to_string())),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use tripod_state::ids::JobId;
    use tripod_state::{Command, Scope, kv};

    use super::*;

    fn encoded(command: kv::Command) -> Vec<u8> {
        codec::encode(&Envelope { stamp: None, command: Command::Kv(command) })
    }

    #[test]
    fn only_what_grows_is_refused_and_only_while_nothing_may() {
        let scope = Scope { job: JobId(1), service: None };
        let put = encoded(kv::Command::Insert { scope, key: "k".into(), value: "v".into(), overwrite: true });
        let delete = encoded(kv::Command::Delete { scope, key: "k".into() });
        let admission = Admission::new();
        assert_eq!(admission.check(&put), Ok(()));
        admission.set(Some("no room".into()));
        assert_eq!(admission.check(&put), Err(ProposeError::DiskFull("no room".into())));
        assert_eq!(admission.check(&delete), Ok(()));
        admission.set(None);
        assert_eq!(admission.check(&put), Ok(()));
    }
}
