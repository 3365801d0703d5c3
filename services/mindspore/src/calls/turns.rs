//! How many calls are under way at a time.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Calls to nodes that answer.
const SOUND_MAX: usize = 1_024;
/// Calls to those that did not the last time: they wait for each other and for nobody else.
const SHAKY_MAX: usize = 256;

/// What is known of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It answered the last time, or was never asked.
    Sound,
    Shaky,
}

#[derive(Debug)]
pub(super) struct Turns {
    sound: Arc<Semaphore>,
    shaky: Arc<Semaphore>,
}

impl Default for Turns {
    fn default() -> Self {
        Self { sound: Arc::new(Semaphore::new(SOUND_MAX)), shaky: Arc::new(Semaphore::new(SHAKY_MAX)) }
    }
}

impl Turns {
    /// Waits for one.
    pub(super) async fn take(&self, standing: Standing) -> OwnedSemaphorePermit {
        let turns = match standing {
            Standing::Sound => &self.sound,
            Standing::Shaky => &self.shaky,
        };
        Arc::clone(turns).acquire_owned().await.expect("it is never closed")
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn calls_to_nodes_that_do_not_answer_take_no_turn_of_the_others() {
        let turns = Turns::default();
        let now = |standing| {
            let mut taken = pin!(turns.take(standing));
            match taken.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(turn) => Some(turn),
                Poll::Pending => None,
            }
        };
        let held: Vec<_> = (0..SHAKY_MAX).map(|_| now(Standing::Shaky).expect("free")).collect();
        assert!(now(Standing::Shaky).is_none(), "all are taken");
        assert!(now(Standing::Sound).is_some());
        drop(held);
        assert!(now(Standing::Shaky).is_some());
    }
}
