//! A task's heartbeats.

use std::time::Duration;

use tonic::transport::Channel;
use tripod_proto::xla::coordination as n;
use tripod_proto::xla::coordination::coordination_service_client::CoordinationServiceClient as DialectN;

use super::super::setting::Setting;
use super::super::wire::{Attempt, Wire};
use super::LIMIT;
use super::member::named;
use super::refusal::refusal;
use crate::history::{Call, ClientId, Incarnation, Job, Reply, TaskId};

const BEAT_EVERY: Duration = Duration::from_secs(1);
/// After a beat that was not answered: the time-out runs on.
const AGAIN_PAUSE: Duration = Duration::from_millis(100);

/// A task's heartbeats, beside whatever else it does.
pub(super) struct Beats {
    setting: Setting,
    id: ClientId,
    job: Job,
    task: TaskId,
    incarnation: Incarnation,
    life: n::Incarnations,
    wire: Wire,
}

impl Beats {
    /// Of the life `life` of the task.
    pub(super) fn of(setting: &Setting, job: &Job, life: n::Incarnations) -> Self {
        let id = setting.client_id();
        let wire = Wire::new(setting, &mut setting.random(id));
        let (task, incarnation) = (TaskId(life.task_id), Incarnation(life.task_incarnation));
        Self { setting: setting.clone(), id, job: job.clone(), task, incarnation, life, wire }
    }

    /// Until a beat is refused.
    pub(super) async fn run(mut self) {
        loop {
            let (job, task, incarnation) = (self.job.clone(), self.task, self.incarnation);
            let call = Call::Heartbeat { job: job.clone(), task, incarnation };
            let pending = self.setting.invoke(self.id, call).by_node(self.wire.node());
            let message = n::HeartbeatRequest {
                incarnations: Some(self.life),
                incarnation: incarnation.0,
                source_task_id: task.0,
            };
            let call = |channel: Channel| async move {
                DialectN::new(channel).heartbeat(named(message, &job)).await
            };
            let attempt = self.wire.attempt(LIMIT, call).await;
            let refused = matches!(attempt, Attempt::Refused(_));
            let answered = matches!(attempt, Attempt::Answer(_));
            let outcome = attempt.outcome(|_| Ok(Reply::Done), |status| refusal(status, task));
            self.setting.complete(pending, outcome);
            if refused {
                return;
            }
            // A beat that failed is repeated at once, as the time-out runs on.
            tokio::time::sleep(if answered { BEAT_EVERY } else { AGAIN_PAUSE }).await;
        }
    }
}
