//! Whom peers' appends come from. openraft tells who leads only after it has made that leader's vote
//! durable; on a node whose disk does not answer, that takes as long as the disk does, while what the
//! node is asked to pass on could long be with the new leader.

use tokio::sync::watch;

use crate::types::Vote;

/// The highest vote of a leader that any append carried. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    highest: watch::Sender<Option<Vote>>,
}

impl Heard {
    pub(crate) fn new() -> Self {
        Self { highest: watch::Sender::new(None) }
    }

    /// Notes the vote of an append that came.
    pub(crate) fn note(&self, vote: &Vote) {
        if !vote.committed {
            return;
        }
        self.highest.send_if_modified(|highest| {
            let higher = highest.as_ref().is_none_or(|known| vote > known);
            if higher {
                *highest = Some(*vote);
            }
            higher
        });
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Option<Vote>> {
        self.highest.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_leader_stays_and_candidates_do_not_count() {
        let heard = Heard::new();
        let told = heard.subscribe();
        heard.note(&Vote::new(3, 1));
        assert_eq!(*told.borrow(), None, "nobody has elected it");
        heard.note(&Vote::new_committed(2, 3));
        heard.note(&Vote::new_committed(4, 1));
        heard.note(&Vote::new_committed(3, 2));
        assert_eq!(*told.borrow(), Some(Vote::new_committed(4, 1)));
    }
}
