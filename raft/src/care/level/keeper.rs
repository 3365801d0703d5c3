//! Looks after the level while a node runs: on the leader it is raised when all members support more, and elsewhere
//! the leader is asked for a pin that this node may have missed.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tripod_state::ids::{FeatureLevel, NodeId, Term};
use tripod_state::level::Command;

use super::handler::LevelHandler;
use super::survey;

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The same while a term is young and the level could be higher.
const LOOK_SOON: Duration = Duration::from_millis(100);
/// How long a term is young.
const YOUNG_FOR: Duration = Duration::from_secs(5);
/// How long the leader of a new cluster looks again for members that do not say what they support, before it takes
/// commands without them. A look that has begun by then is waited for.
const FIRST_LOOKS: Duration = Duration::from_secs(1);

/// Since when this node leads in a term.
struct Tenure {
    term: Term,
    since: Instant,
}

impl LevelHandler {
    /// Looks until the node stops.
    pub(crate) async fn keep(self, stop: CancellationToken) {
        let keeping = async {
            let mut leadership = self.leadership.subscribe();
            let mut tenure: Option<Tenure> = None;
            loop {
                let now = *leadership.borrow_and_update();
                let mut pause = LOOK_EVERY;
                if now.ready_here {
                    let led = tenure.take().filter(|tenure| tenure.term == now.term);
                    let led = led.unwrap_or_else(|| Tenure { term: now.term, since: Instant::now() });
                    pause = self.look_as_leader(&led).await;
                    tenure = Some(led);
                }
                self.ask_for_pin().await;
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    changed = leadership.changed() => if changed.is_err() { return },
                }
            }
        };
        tokio::select! {
            () = keeping => {}
            () = stop.cancelled() => {}
        }
    }

    /// Looks, and tells in how long to look again.
    async fn look_as_leader(&self, tenure: &Tenure) -> Duration {
        let is_known = self.look().await;
        let led = tenure.since.elapsed();
        if is_known || led >= FIRST_LOOKS {
            self.gate.open_for(tenure.term);
        }
        let may_rise = self.gate.level() < self.own.build_max;
        if may_rise && led < YOUNG_FOR { LOOK_SOON } else { LOOK_EVERY }
    }

    /// Whether the level is as high as all members let it be.
    async fn look(&self) -> bool {
        // At its highest level a leader has nothing to raise, and refuses nothing. One that is pinned asks all the
        // same, for the texts of its refusals.
        if self.gate.level() >= self.own.build_max {
            return true;
        }
        if self.gate.check_leads().is_err() {
            return false;
        }
        let said = self.survey.ask().await;
        self.gate.note(&said);
        let Some(to) = survey::common(&said) else { return false };
        if to <= self.gate.level() {
            return true;
        }
        // Whoever is being added has not been asked.
        if self.own.machine.read(|state| state.registry().open().is_some()) {
            return false;
        }
        let heard: Vec<NodeId> = said.iter().map(|one| one.node).collect();
        match self.raise(to, heard).await {
            Ok(()) => self.gate.level() >= to,
            Err(error) => {
                tracing::debug!(?error, to = to.0, "the feature level was not raised");
                false
            }
        }
    }

    async fn raise(&self, to: FeatureLevel, heard: Vec<NodeId>) -> Result<(), super::LevelError> {
        let closed = self.gate.close().await;
        // It may have been pinned while this waited.
        if to <= self.gate.level() || to > self.own.max() {
            return Ok(());
        }
        self.submit(tripod_state::Command::Level(Command::Raise { to, heard })).await?;
        drop(closed);
        tracing::info!(level = to.0, "all members support it: the feature level is raised");
        Ok(())
    }
}
