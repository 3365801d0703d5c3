//! A task's heartbeats.

use std::time::Duration;

use super::super::setting::Setting;
use super::super::wire::{Attempt, Wire};
use super::LIMIT;
use super::life::Life;
use super::refusal::refusal;
use tripod_checkers::history::{Call, ClientId, Reply};

const BEAT_EVERY: Duration = Duration::from_secs(1);
/// After a beat that was not answered: the time-out runs on.
const AGAIN_PAUSE: Duration = Duration::from_millis(100);
/// Between two beats of a life that is over.
const HAUNT_PAUSE: Duration = Duration::from_millis(500);
/// Beats of a life that is over: it goes on for so long that some of them fall in quiet times.
const HAUNT_BEATS: u32 = 20;
/// Once so many of them were refused, it gives up.
const HAUNT_REFUSALS: u32 = 3;

/// A task's heartbeats, beside whatever else it does.
pub(super) struct Beats {
    setting: Setting,
    id: ClientId,
    life: Life,
    wire: Wire,
}

impl Beats {
    pub(super) fn of(setting: &Setting, life: Life) -> Self {
        let id = setting.client_id();
        let wire = Wire::new(setting, &mut setting.random(id));
        Self { setting: setting.clone(), id, life, wire }
    }

    /// Until a beat is refused.
    pub(super) async fn run(mut self) {
        loop {
            match self.beat().await {
                Beaten::Refused => return,
                Beaten::Answered => tokio::time::sleep(BEAT_EVERY).await,
                // A beat that failed is repeated at once, as the time-out runs on.
                Beaten::Lost => tokio::time::sleep(AGAIN_PAUSE).await,
            }
        }
    }

    /// Beats on although another life has taken this one's place, through one node after the other, until it was
    /// told often enough. That it is told at all, the checker says.
    pub(super) async fn haunt(mut self) {
        let mut refused = 0;
        for _ in 0..HAUNT_BEATS {
            refused += u32::from(matches!(self.beat().await, Beaten::Refused));
            if refused == HAUNT_REFUSALS {
                return;
            }
            self.wire.move_on();
            tokio::time::sleep(HAUNT_PAUSE).await;
        }
    }

    async fn beat(&mut self) -> Beaten {
        let Life { job, task, incarnation, .. } = self.life.clone();
        let pending = self.setting.invoke(self.id, Call::Heartbeat { job, task, incarnation });
        let pending = pending.by_node(self.wire.node());
        let life = self.life.clone();
        let attempt = self.wire.attempt(LIMIT, |way| life.beat(way)).await;
        let beaten = match attempt {
            Attempt::Answer(()) => Beaten::Answered,
            Attempt::Refused(_) => Beaten::Refused,
            Attempt::NotExecuted(_) | Attempt::Unknown(_) => Beaten::Lost,
        };
        let outcome = attempt.outcome(|()| Ok(Reply::Done), |status| refusal(status, &self.life));
        self.setting.complete(pending, outcome);
        beaten
    }
}

enum Beaten {
    Answered,
    Refused,
    Lost,
}
