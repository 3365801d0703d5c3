//! The order of what comes by one connection in messages that may overtake each other.
//!
//! HTTP/2 cuts messages into pieces and sends those of several in turn, so a short one is here before a long one that was
//! sent first; and each is taken by a task of its own. Batches of commands say which one of their connection they are,
//! and take their turns here.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// For how long a message waits for those before it: far longer than one takes that is on its way. One that never comes, as
/// its call was refused on the way, must not hold up the others.
const PATIENCE: Duration = Duration::from_secs(2);
/// Messages that may have had their turns before those that are missing. A node has eight batches under way.
const AHEAD_MAX: usize = 64;

/// The messages of one connection. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Succession(Arc<watch::Sender<Line>>);

#[derive(Debug)]
struct Line {
    /// The first one that has not had its turn.
    next: u64,
    /// Later ones that have had theirs, or will have none.
    ahead: BTreeSet<u64>,
}

/// That of one message. It is over when this is dropped, however that comes about.
#[derive(Debug)]
pub(crate) struct Turn {
    succession: Succession,
    number: u64,
}

impl Default for Succession {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Line { next: 1, ahead: BTreeSet::new() })))
    }
}

impl Succession {
    /// The turn of the message with this number, counted from 1, when those before it have had theirs, from `oldest` on: what
    /// was before that has been answered, by this connection or by one that it took the place of. That of number 0 is now, and
    /// nobody waits for it.
    pub(crate) async fn turn(&self, number: u64, oldest: u64) -> Turn {
        let turn = Turn { succession: self.clone(), number };
        self.0.send_if_modified(|line| line.skip_to(oldest.min(number)));
        let mut line = self.0.subscribe();
        // The sender is ours, so the only error is that time is over.
        if timeout(PATIENCE, line.wait_for(|line| line.next >= number)).await.is_err() {
            self.0.send_if_modified(|line| line.skip_to(number));
        }
        turn
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.number > 0 {
            self.succession.0.send_modify(|line| line.pass(self.number));
        }
    }
}

impl Line {
    fn pass(&mut self, number: u64) {
        if number < self.next {
            return;
        }
        self.ahead.insert(number);
        if self.ahead.len() > AHEAD_MAX
            && let Some(first) = self.ahead.first()
        {
            self.next = *first;
        }
        self.go_on();
    }

    /// Nobody waits any more for what is before that one. Whether anybody did.
    fn skip_to(&mut self, number: u64) -> bool {
        let skips = number > self.next;
        if skips {
            self.next = number;
            self.ahead = self.ahead.split_off(&number);
            self.go_on();
        }
        skips
    }

    fn go_on(&mut self) {
        while self.ahead.remove(&self.next) {
            self.next = self.next.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_message_has_its_turn_when_those_before_it_have_had_theirs() {
        let succession = Succession::default();
        let mut third = Box::pin(succession.turn(3, 1));
        let mut second = Box::pin(succession.turn(2, 1));
        assert!(third.as_mut().now_or_never().is_none() && second.as_mut().now_or_never().is_none());
        let first = succession.turn(1, 1).now_or_never().expect("nobody is before it");
        drop(succession.turn(0, 1).now_or_never().expect("it has no number"));
        assert!(second.as_mut().now_or_never().is_none(), "the first one is not over");
        drop(first);
        let second = second.await;
        assert!(third.as_mut().now_or_never().is_none());
        drop(second);
        drop(third.await);
        drop(succession.turn(4, 1).now_or_never().expect("it is the next one"));
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_given_up_before_its_turn_holds_up_nobody() {
        let succession = Succession::default();
        let first = succession.turn(1, 1).await;
        let second = succession.turn(2, 1).now_or_never();
        assert!(second.is_none(), "it was given up while it waited");
        let mut third = Box::pin(succession.turn(3, 1));
        assert!(third.as_mut().now_or_never().is_none());
        drop(first);
        third.now_or_never().expect("the second one will not come");
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_never_comes_holds_up_the_others_for_a_while_and_once() {
        let succession = Succession::default();
        let begun = Instant::now();
        let second = succession.turn(2, 1).await;
        assert_eq!(begun.elapsed(), PATIENCE);
        drop(second);
        drop(succession.turn(3, 1).now_or_never().expect("it waits for nobody"));
        drop(succession.turn(1, 1).now_or_never().expect("it is late, and waits for nobody either"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_answered_by_another_connection_is_not_waited_for() {
        let succession = Succession::default();
        let mut ninth = Box::pin(succession.turn(9, 8));
        assert!(ninth.as_mut().now_or_never().is_none(), "the eighth has no answer");
        let eighth = succession.turn(8, 8).now_or_never().expect("nobody is before it");
        drop(eighth);
        drop(ninth.now_or_never().expect("it is the next one"));
        drop(succession.turn(20, u64::MAX).now_or_never().expect("it says that it is the oldest"));
    }

    #[test]
    fn who_makes_up_numbers_takes_little_memory() {
        let mut line = Line { next: 1, ahead: BTreeSet::new() };
        for number in 1..10_000 {
            line.pass(number * 2);
            assert!(line.ahead.len() <= AHEAD_MAX);
        }
        line.pass(u64::MAX);
        line.skip_to(u64::MAX);
        line.pass(u64::MAX);
        assert!(line.ahead.is_empty(), "{line:?}");
    }
}
