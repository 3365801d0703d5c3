//! Looks after the level while a node runs: on the leader it is raised when all members support more, and elsewhere
//! the leader is asked for a pin that this node may have missed.

use std::time::Duration;

use tokio::sync::watch;
use tripod_state::ids::{FeatureLevel, NodeId};
use tripod_state::level::Command;

use super::desk::Desk;
use super::survey;

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Desk {
    /// Looks until the node stops.
    pub(crate) async fn keep(self, mut stop: watch::Receiver<bool>) {
        let keeping = async {
            loop {
                tokio::time::sleep(LOOK_EVERY).await;
                self.look().await;
                self.ask_for_pin().await;
            }
        };
        tokio::select! {
            () = keeping => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
    }

    async fn look(&self) {
        // At its highest level a leader has nothing to raise, and refuses nothing. One that is pinned asks all the
        // same, for the texts of its refusals.
        if self.door.level() >= self.own.build_max || self.door.check_leads().is_err() {
            return;
        }
        let said = self.survey.ask().await;
        self.door.note(&said);
        let Some(to) = survey::common(&said).filter(|to| *to > self.door.level()) else { return };
        // Whoever is being added has not been asked.
        if self.own.machine.read(|state| state.registry().open().is_some()) {
            return;
        }
        let heard: Vec<NodeId> = said.iter().map(|one| one.node).collect();
        if let Err(error) = self.raise(to, heard).await {
            tracing::debug!(?error, to = to.0, "the feature level was not raised");
        }
    }

    async fn raise(&self, to: FeatureLevel, heard: Vec<NodeId>) -> Result<(), super::LevelError> {
        let closed = self.door.close().await;
        // It may have been pinned while this waited.
        if to <= self.door.level() || to > self.own.max() {
            return Ok(());
        }
        self.submit(tripod_state::Command::Level(Command::Raise { to, heard })).await?;
        drop(closed);
        tracing::info!(level = to.0, "all members support it: the feature level is raised");
        Ok(())
    }
}
