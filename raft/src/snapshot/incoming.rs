//! The snapshot that comes in, and what is left of it when its transfer breaks.
//!
//! One transfer writes at a time. The next one, or the question how much is here, takes the turn from it: a
//! sender that asks again has lost its line, also when this side has not noticed yet. What was received
//! stays in the slot, whoever drops the turn, and however.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{Mutex, OwnedMutexGuard, watch};

use super::Part;
use crate::base::types::{LogId, Vote};

/// What tells a snapshot file from every other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileId {
    /// The last entry in the snapshot.
    pub(crate) last_log_id: Option<LogId>,
    /// Bytes of the file.
    pub(crate) bytes: u64,
    /// The end of the file, which holds a hash of everything before it: [`super::SnapshotFile::seal`].
    pub(crate) seal: Bytes,
}

/// Who asked for the turn last.
#[derive(Debug, Clone, Copy, Default)]
struct Asked {
    /// Counts them.
    number: u64,
    /// The vote of the leader on whose behalf it was.
    vote: Option<Vote>,
}

/// The place of the one incoming snapshot. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Incoming {
    asked: watch::Sender<Asked>,
    slot: Arc<Mutex<Option<Part>>>,
}

impl Incoming {
    /// Takes the turn from whoever has it, and waits until it is given back. `None`: a leader with a later
    /// vote has asked, before or meanwhile.
    pub(crate) async fn turn(&self, vote: Vote) -> Option<Turn> {
        let mut number = 0;
        let taken = self.asked.send_if_modified(|asked| {
            let deposed = asked.vote.is_some_and(|known| vote < known);
            if !deposed {
                number = asked.number + 1;
                *asked = Asked { number, vote: Some(vote) };
            }
            !deposed
        });
        if !taken {
            return None;
        }
        let slot = self.slot.clone().lock_owned().await;
        let turn = Turn { number, asked: self.asked.subscribe(), slot };
        (self.asked.borrow().number == number).then_some(turn)
    }

    /// Gives up what a snapshot that ends with `last_log_id` has made useless. What is being received stays.
    pub(crate) fn forget_up_to(&self, last_log_id: Option<LogId>) {
        let Ok(mut slot) = self.slot.try_lock() else { return };
        let is_useful = |part: &Part| part.id().is_some_and(|id| id.last_log_id > last_log_id);
        if !slot.as_ref().is_some_and(is_useful) {
            *slot = None;
        }
    }
}

/// The right to change what is there. What it leaves behind, the next one finds.
pub(crate) struct Turn {
    number: u64,
    asked: watch::Receiver<Asked>,
    slot: OwnedMutexGuard<Option<Part>>,
}

impl Turn {
    /// Resolves when somebody else wants the turn.
    pub(crate) fn wanted(&self) -> impl Future<Output = ()> + Send + use<> {
        let (mut asked, number) = (self.asked.clone(), self.number);
        async move {
            // The sender is gone when the node is: nobody receives any more, then.
            let _ = asked.wait_for(|asked| asked.number != number).await;
        }
    }

    /// How many bytes of this file are here and good.
    pub(crate) fn held_bytes(&self, id: &FileId) -> u64 {
        self.slot.as_ref().filter(|part| part.is_sound(id)).map_or(0, Part::received_bytes)
    }

    /// What is received.
    pub(crate) fn part(&mut self) -> Option<&mut Part> {
        self.slot.as_mut()
    }

    /// Begins another file.
    pub(crate) fn begin(&mut self, part: Part) {
        *self.slot = Some(part);
    }

    /// What was received goes.
    pub(crate) async fn discard(&mut self) {
        if let Some(part) = self.slot.take() {
            part.remove().await;
        }
    }

    /// Takes out what is complete.
    pub(crate) fn take(&mut self) -> Option<Part> {
        self.slot.take()
    }
}
