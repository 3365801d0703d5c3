//! Brings about the change under way, on the leader.

use std::time::Duration;

use openraft::errors::{ChangeMembershipError, ClientWriteError, RaftError};
use tokio_util::sync::CancellationToken;
use tripod_state::ids::NodeId;
use tripod_state::member::{self, Ending, Open};

use super::judge::{MembersView, Unwise};
use super::step::{self, Entry, Step};
use super::{Effective, Members};

use crate::apply::cluster_configuration::ClusterConfiguration;

/// Between two looks at a learner that catches up, and two attempts at what failed.
const PAUSE: Duration = Duration::from_millis(100);
/// After a hand-over that nobody took.
const HAND_OVER_PAUSE: Duration = Duration::from_secs(1);

impl Members {
    /// Does what is to be done whenever this node leads, until it stops.
    pub(crate) async fn drive(self, stop: CancellationToken) {
        tokio::select! {
            () = self.while_leading() => {}
            () = stop.cancelled() => {}
        }
    }

    async fn while_leading(&self) {
        let mut leadership = self.leadership.subscribe();
        // A leader that is ready has all of earlier terms in its state: it finds what the last one left.
        while leadership.wait_for(|now| now.ready_here).await.is_ok() {
            let rest = self.step().await;
            tokio::select! {
                () = sleep(rest) => {}
                // By whomever, also if he is not there any more to be answered, or proposed before this node lost its
                // office and got it back.
                () = self.machine.members_changed() => {}
                _ = leadership.changed() => {}
            }
        }
    }

    /// One step; gives how long to rest, `None` if there is nothing to do.
    async fn step(&self) -> Option<Duration> {
        #[cfg(test)]
        if self.idle.load(std::sync::atomic::Ordering::Relaxed) {
            return None;
        }
        let Ok(Effective { configuration, settled }) = self.effective().await else { return Some(PAUSE) };
        if !settled {
            return Some(PAUSE);
        }
        if self.is_drained() && self.hand_over.to(None).await.is_ok() {
            return Some(PAUSE);
        }
        let Some(open) = self.machine.read(|state| state.registry().open().cloned()) else {
            let rest = self.settle(&configuration).await;
            // Somebody else may be able to lead later.
            return rest.or_else(|| self.is_drained().then_some(HAND_OVER_PAUSE));
        };
        match step::next(&open, &configuration, self.calls.node()) {
            Step::Enter(entry) => self.enter(&open, entry).await,
            Step::EnterWhenCaughtUp(node, entry) => match self.caught_up(node, &configuration).await {
                Ok(()) => self.enter(&open, entry).await,
                Err(why) => {
                    tracing::debug!(node, ?why, "a learner has not caught up yet");
                    Some(PAUSE)
                }
            },
            Step::HandOver => self.make_way(&open).await,
            Step::End(ending) => self.end(&open, ending).await,
        }
    }

    /// Two sets of voters that nobody's change explains: of a program without changes in the log.
    async fn settle(&self, configuration: &ClusterConfiguration) -> Option<Duration> {
        if !configuration.is_joint() {
            return None;
        }
        let Entry { change, retain } = Entry::settle(configuration, true);
        if let Err(error) = self.raft.change_membership(change, retain).await {
            tracing::debug!(%error, "the voters could not be settled yet");
        }
        Some(PAUSE)
    }

    async fn enter(&self, open: &Open, Entry { change, retain }: Entry) -> Option<Duration> {
        tracing::info!(change = %open.change, by = open.by, entry = %change, "members change");
        let entered = tokio::select! {
            entered = self.raft.change_membership(change, retain) => entered,
            () = self.leadership.deposed() => return Some(PAUSE),
        };
        let Err(error) = entered else { return Some(Duration::ZERO) };
        let hopeless = match &error {
            RaftError::APIError(ClientWriteError::ChangeMembershipError(error)) => matches!(
                error,
                ChangeMembershipError::EmptyMembership(_) | ChangeMembershipError::LearnerNotFound(_)
            ),
            _ => false,
        };
        if hopeless {
            return self.end(open, Ending::Failed(error.to_string())).await;
        }
        tracing::debug!(%error, "members could not be changed yet");
        Some(PAUSE)
    }

    async fn caught_up(&self, node: u64, configuration: &ClusterConfiguration) -> Result<(), Unwise> {
        let lags = self.lags();
        let mut answering = std::collections::BTreeSet::new();
        if let Some(address) = configuration.nodes.get(&node)
            && self.answers(node, address).await
        {
            answering.insert(node);
        }
        MembersView { configuration, answering: &answering, lags: &lags }.caught_up(NodeId(node))
    }

    async fn make_way(&self, open: &Open) -> Option<Duration> {
        tracing::info!(change = %open.change, "this node would take itself out, and hands over first");
        match self.hand_over.to(None).await {
            Ok(()) => Some(PAUSE),
            Err(error) => {
                tracing::warn!(%error, "leadership not handed over, so the change waits");
                Some(HAND_OVER_PAUSE)
            }
        }
    }

    async fn end(&self, open: &Open, ending: Ending) -> Option<Duration> {
        let command = member::Command::End { change: open.id, ending: ending.clone() };
        match self.submit(command).await {
            Ok(_) => {
                tracing::info!(change = %open.change, ?ending, "the change of members has ended");
                None
            }
            Err(error) => {
                tracing::debug!(?error, "the end of a change could not be told yet");
                Some(PAUSE)
            }
        }
    }
}

async fn sleep(rest: Option<Duration>) {
    match rest {
        Some(rest) => tokio::time::sleep(rest).await,
        None => std::future::pending().await,
    }
}
