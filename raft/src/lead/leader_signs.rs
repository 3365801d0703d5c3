//! Whom peers' appends come from, and when the last one came. openraft tells who leads only after it has made
//! that leader's vote durable; on a node whose disk does not answer, that takes as long as the disk does, while
//! what the node is asked to pass on could long be with the new leader. And it goes on telling it when the leader
//! is gone, until somebody else is elected.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::base::types::Vote;

/// The last sign of life of a leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sign {
    /// What the leadership rests on.
    pub(crate) vote: Vote,
    /// Until when it counts.
    pub(crate) until: Instant,
}

/// The sign of the leader with the highest vote that any append carried. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct LeaderSigns {
    /// How long a sign counts.
    patience: Duration,
    newest: watch::Sender<Option<Sign>>,
}

impl LeaderSigns {
    pub(crate) fn new(patience: Duration) -> Self {
        Self { patience, newest: watch::Sender::new(None) }
    }

    /// Notes the vote of an append that came. Those who watch are woken by another leader, and by one that
    /// comes back from silence; that a leader goes on living tells them nothing.
    pub(crate) fn note(&self, vote: &Vote) {
        if !vote.committed {
            return;
        }
        let now = Instant::now();
        let sign = Sign { vote: *vote, until: now + self.patience };
        self.newest.send_if_modified(|newest| match newest {
            Some(known) if known.vote == *vote => {
                let silent = now >= known.until;
                *known = sign;
                silent
            }
            Some(known) if known.vote > *vote => false,
            _ => {
                *newest = Some(sign);
                true
            }
        });
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Option<Sign>> {
        self.newest.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_millis(600);

    #[test]
    fn the_highest_leader_stays_and_candidates_do_not_count() {
        let heard = LeaderSigns::new(PATIENCE);
        let told = heard.subscribe();
        let vote = || told.borrow().map(|sign| sign.vote);
        heard.note(&Vote::new(3, 1));
        assert_eq!(vote(), None, "nobody has elected it");
        heard.note(&Vote::new_committed(2, 3));
        heard.note(&Vote::new_committed(4, 1));
        heard.note(&Vote::new_committed(3, 2));
        assert_eq!(vote(), Some(Vote::new_committed(4, 1)));
    }

    #[tokio::test(start_paused = true)]
    async fn who_goes_on_living_wakes_nobody_and_who_comes_back_does() {
        let heard = LeaderSigns::new(PATIENCE);
        let mut told = heard.subscribe();
        let vote = Vote::new_committed(4, 1);
        heard.note(&vote);
        assert!(told.has_changed().unwrap());
        let began = told.borrow_and_update().unwrap().until;
        tokio::time::advance(PATIENCE - Duration::from_millis(1)).await;
        heard.note(&vote);
        assert!(!told.has_changed().unwrap());
        assert!(told.borrow_and_update().unwrap().until > began);
        tokio::time::advance(PATIENCE).await;
        heard.note(&Vote::new_committed(3, 2));
        assert!(!told.has_changed().unwrap(), "a leader of earlier is no sign of this one");
        heard.note(&vote);
        assert!(told.has_changed().unwrap());
    }
}
