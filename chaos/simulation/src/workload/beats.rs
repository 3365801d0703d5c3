//! The heartbeats of a gang.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use super::member::Member;
use crate::client::Client;
use crate::observation::Life;
use crate::witness::now;

/// The heartbeat timeout of gangs.
pub(super) const TIMEOUT_MS: u64 = 3000;
/// Between two beats of a task.
const EVERY_MS: u64 = 250;
/// A beat without an answer by then is given up.
const PATIENCE: Duration = Duration::from_millis(1400);
/// An answer that took less is the leader's word: later a node may answer by its own state.
pub(super) const LEADERS_WORD_MS: u64 = 1000;

/// Which tasks beat, and as which life. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct Pulse {
    beating: Rc<RefCell<BTreeMap<i32, Life>>>,
    /// Of which the leader has heard.
    heard: Rc<RefCell<BTreeSet<(i32, Life)>>>,
}

impl Pulse {
    pub(super) fn set(&self, task: i32, life: Life) {
        self.beating.borrow_mut().insert(task, life);
    }

    pub(super) fn stop(&self, task: i32) {
        self.beating.borrow_mut().remove(&task);
    }

    /// Whether the leader has heard the life of a task that beats now, or it beats no more. Before, nobody knows how rarely
    /// it beats.
    pub(super) fn is_heard(&self, task: i32) -> bool {
        self.life(task).is_none_or(|life| self.heard.borrow().contains(&(task, life)))
    }

    fn life(&self, task: i32) -> Option<Life> {
        self.beating.borrow().get(&task).copied()
    }

    /// Beats for one task for as long as it is to beat; never ends.
    pub(super) async fn run(&self, mut client: Client, member: &Member) {
        let task = member.task.1;
        loop {
            tokio::time::sleep(Duration::from_millis(EVERY_MS)).await;
            let Some(life) = self.life(task) else { continue };
            let Some(beat) = member.beat(&mut client, life, PATIENCE).await else {
                client.witness.note(now(), "gang", format_args!("beat of {:?} lost", member.task));
                continue;
            };
            if !beat.accepted {
                client.witness.note(now(), "gang", format_args!("beat of {:?} refused", member.task));
                // A task that is told that it is broken ends. Another life may have begun meanwhile.
                if self.life(task) == Some(life) {
                    self.stop(task);
                }
            } else if let Some(node) = beat.member
                && beat.answered.since_ms(beat.sent) < LEADERS_WORD_MS
            {
                client.witness.beat(&member.task, node, beat.sent);
                self.heard.borrow_mut().insert((task, life));
            }
        }
    }
}
