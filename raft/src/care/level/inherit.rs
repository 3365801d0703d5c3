//! A pin that a node has not seen in the log, because a snapshot has taken the place of that part of it. A snapshot
//! has no room for pins, so the leader is asked.

use tripod_state::ids::{FeatureLevel, NodeId};

use super::handler::LevelHandler;
use crate::apply::levels::AppliedLevels;

impl LevelHandler {
    /// Asks the leader if this node may have missed a pin. It alone is asked: another node that lags may not have
    /// seen yet that the pin was lifted.
    pub(super) async fn ask_for_pin(&self) {
        if !self.own.machine.levels(AppliedLevels::may_lack_pin) {
            return;
        }
        let Some(NodeId(leader)) =
            self.leadership.get().leader.filter(|leader| leader.0 != self.leadership.node())
        else {
            return;
        };
        let Some(pinned) = self.survey.pin_of(leader).await else { return };
        let pin = (pinned > 0).then_some(FeatureLevel(pinned));
        // It is written down with the next snapshot of this node's own; before that a restart asks again.
        if self.own.machine.inherit_pin(pin) {
            tracing::info!(level = pinned, leader, "the feature level is pinned, as the leader says");
        }
    }
}
