//! Whom peers' appends come from, and when the last one came. openraft tells who leads only after it has made
//! that leader's vote durable; on a node whose disk does not answer, that takes as long as the disk does, while
//! what the node is asked to pass on could long be with the new leader. And it goes on telling it when the leader
//! is gone, until somebody else is elected.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
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
    /// Streams of appends that are open, by the term of who sends.
    streams: Arc<Mutex<BTreeMap<u64, usize>>>,
}

/// A stream of appends, for as long as it is open.
#[derive(Debug)]
pub(crate) struct AppendStream {
    signs: LeaderSigns,
    /// In which the sender leads, once it has said so.
    term: Option<u64>,
}

impl LeaderSigns {
    pub(crate) fn new(patience: Duration) -> Self {
        Self { patience, newest: watch::Sender::new(None), streams: Arc::default() }
    }

    /// A stream that has been opened.
    pub(crate) fn stream(&self) -> AppendStream {
        AppendStream { signs: self.clone(), term: None }
    }

    /// Whether the leader of a term has a stream open to this node. The system closes it when its process ends.
    pub(crate) fn is_streaming(&self, term: u64) -> bool {
        self.streams.lock().contains_key(&term)
    }

    /// When the leader of a term was heard last, if nobody was heard in a later one.
    pub(crate) fn heard_at(&self, term: u64) -> Option<Instant> {
        let newest = self.newest.borrow();
        let sign = newest.as_ref().filter(|sign| sign.vote.leader_id.term == term)?;
        sign.until.checked_sub(self.patience)
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

impl AppendStream {
    /// Notes the vote of an append that came on it.
    pub(crate) fn note(&mut self, vote: &Vote) {
        self.signs.note(vote);
        let term = vote.leader_id.term;
        if vote.committed && self.term != Some(term) {
            self.end();
            *self.signs.streams.lock().entry(term).or_default() += 1;
            self.term = Some(term);
        }
    }

    /// It has ended, whatever still holds it.
    pub(crate) fn end(&mut self) {
        let Some(term) = self.term.take() else { return };
        let mut streams = self.signs.streams.lock();
        if let Some(open) = streams.get_mut(&term) {
            *open -= 1;
            if *open == 0 {
                streams.remove(&term);
            }
        }
    }
}

impl Drop for AppendStream {
    fn drop(&mut self) {
        self.end();
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

    #[test]
    fn a_leader_streams_as_long_as_one_of_its_streams_is_open() {
        let heard = LeaderSigns::new(PATIENCE);
        let (mut one, mut other) = (heard.stream(), heard.stream());
        assert!(!heard.is_streaming(3), "nobody has said who sends");
        one.note(&Vote::new(3, 1));
        assert!(!heard.is_streaming(3), "nobody has elected it");
        one.note(&Vote::new_committed(3, 1));
        one.note(&Vote::new_committed(3, 1));
        other.note(&Vote::new_committed(3, 1));
        one.end();
        assert!(heard.is_streaming(3));
        other.note(&Vote::new_committed(4, 1));
        assert!(!heard.is_streaming(3) && heard.is_streaming(4));
        drop((one, other));
        assert!(!heard.is_streaming(4));
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_known_when_the_leader_of_a_term_was_heard() {
        let heard = LeaderSigns::new(PATIENCE);
        assert_eq!(heard.heard_at(4), None);
        tokio::time::advance(PATIENCE).await;
        heard.note(&Vote::new_committed(4, 1));
        assert_eq!(heard.heard_at(4), Some(Instant::now()));
        assert_eq!(heard.heard_at(3), None);
    }
}
