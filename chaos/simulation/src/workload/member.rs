//! One task of a gang: the calls that it makes.

use std::collections::BTreeSet;
use std::time::Duration;

use tonic::{Code, Status};
use tripod_proto::xla::coordination as n;
use tripod_proto::xla::coordination::coordination_service_client::CoordinationServiceClient;

use crate::client::{Answer, Client, Phase, to_job};
use crate::invariant::barrier_all_or_none::End;
use crate::invariant::incarnation_fencing::Task;
use crate::observation::{Life, SimTime};
use crate::witness::now;

/// By how much a deadline is later than the patience of who gave it.
const AHEAD: Duration = Duration::from_millis(50);

/// Who a task is.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) task: Task,
    /// The life of the job's service.
    pub(super) service: u64,
}

/// How a call that is repeated until it is answered ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallEnd {
    Yes,
    No,
    /// The simulation ends.
    Nothing,
}

impl Member {
    fn job(&self) -> &str {
        &self.task.0
    }

    fn incarnations(&self) -> Option<n::Incarnations> {
        Some(n::Incarnations { service_incarnation: self.service, ..n::Incarnations::default() })
    }

    /// Registers a life. Tries until there is an answer.
    pub(super) async fn register(&self, client: &mut Client, life: Life) -> CallEnd {
        let invoked = now();
        let told = self.register_once_answered(client, life).await;
        if told == CallEnd::Yes {
            client.witness.life_registered(&self.task, life, invoked);
        }
        client.witness.note(
            now(),
            "gang",
            format_args!("register {:?} life {}: {told:?}", self.task, life.0),
        );
        told
    }

    /// [`Self::register`] for a life that is over: the witness is told of a yes as of any other call.
    pub(super) async fn register_zombie(&self, client: &mut Client, life: Life) {
        let invoked = now();
        let told = self.register_once_answered(client, life).await;
        if told == CallEnd::Yes {
            client.witness.life_acknowledged(&self.task, life, invoked, "a registration");
        }
        client.witness.note(now(), "gang", format_args!("zombie registers {:?}: {told:?}", self.task));
    }

    async fn register_once_answered(&self, client: &mut Client, life: Life) -> CallEnd {
        while client.phase() != Phase::Ending {
            let mut service = CoordinationServiceClient::new(client.channel());
            let request =
                n::RegisterTaskRequest { incarnation: u64::from(life.0), source_task_id: self.task.1 };
            let request = to_job(self.job(), request);
            match client.ask(async move { service.register_task(request).await }).await {
                Answer::Yes(_) => return CallEnd::Yes,
                Answer::No(_) => return CallEnd::No,
                Answer::NotExecuted(_) | Answer::Lost(_) => client.pause(200).await,
            }
        }
        CallEnd::Nothing
    }

    /// Leaves the job in order.
    pub(super) async fn leave(&self, client: &mut Client) -> CallEnd {
        while client.phase() != Phase::Ending {
            let mut service = CoordinationServiceClient::new(client.channel());
            let request =
                n::ShutdownTaskRequest { incarnations: self.incarnations(), source_task_id: self.task.1 };
            let request = to_job(self.job(), request);
            match client.ask(async move { service.shutdown_task(request).await }).await {
                Answer::Yes(_) => return CallEnd::Yes,
                Answer::No(_) => return CallEnd::No,
                Answer::NotExecuted(_) | Answer::Lost(_) => client.pause(200).await,
            }
        }
        CallEnd::Nothing
    }

    /// One heartbeat, through the next node in turn. `None`: no answer in time.
    pub(super) async fn beat(&self, client: &mut Client, life: Life, patience: Duration) -> Option<Beat> {
        let (node, channel) = client.next_channel();
        let mut service = CoordinationServiceClient::new(channel);
        let request = n::HeartbeatRequest {
            incarnations: self.incarnations(),
            incarnation: u64::from(life.0),
            source_task_id: self.task.1,
        };
        let mut request = to_job(self.job(), request);
        // As real clients do, whose next heartbeat comes by then.
        request.set_timeout(patience + AHEAD);
        let sent = now();
        let asked = client.member_at(node);
        let answer = tokio::time::timeout(patience, service.heartbeat(request)).await.ok()?;
        let answered = now();
        let accepted = match answer {
            Ok(_) => true,
            Err(status) if std::error::Error::source(&status).is_some() => return None,
            Err(_) => false,
        };
        // One that was removed, and is not told yet or just leaves, answers from what it knew last.
        let member = asked.filter(|asked| client.member_at(node) == Some(*asked));
        Some(Beat { member, sent, answered, accepted })
    }

    /// Arrives at a barrier and waits, again after an answer was lost, until `deadline`.
    pub(super) async fn arrive(&self, client: &mut Client, barrier: &str, timeout_ms: i64) -> End {
        let deadline = tokio::time::Instant::now()
            + Duration::from_millis(u64::try_from(timeout_ms).unwrap_or_default() * 2 + 4000);
        while tokio::time::Instant::now() < deadline {
            let mut service = CoordinationServiceClient::new(client.channel());
            let request = n::BarrierRequest {
                incarnations: self.incarnations(),
                barrier_id: barrier.to_owned(),
                barrier_timeout_in_ms: timeout_ms,
                task_ids: Vec::new(),
                source_task_id: self.task.1,
                counter: 0,
            };
            let request = to_job(self.job(), request);
            let left = deadline.saturating_duration_since(tokio::time::Instant::now());
            match client.ask_within(left, async move { service.barrier(request).await }).await {
                Answer::Yes(_) => return End::Passed,
                // An earlier attempt of this task, whose answer was lost, was held somewhere and came later.
                Answer::No(status) if is_superseded(&status) => client.pause(100).await,
                Answer::No(status) => return of_barrier(&status),
                Answer::NotExecuted(_) | Answer::Lost(_) => client.pause(100).await,
            }
        }
        End::Unknown
    }
}

/// An answered heartbeat.
pub(super) struct Beat {
    /// Who answered, if it was a member all the while.
    pub(super) member: Option<tripod_state::ids::NodeId>,
    pub(super) sent: SimTime,
    pub(super) answered: SimTime,
    pub(super) accepted: bool,
}

/// The call was replaced by another one of the same task; the barrier goes on.
fn is_superseded(status: &Status) -> bool {
    status.message().contains("more recent barrier call")
}

/// The end of a barrier as dialect N tells it, in words.
fn of_barrier(status: &Status) -> End {
    const MISSING: &str = "Some timed out task names:\n";
    match (status.code(), status.message().split_once(MISSING)) {
        (Code::DeadlineExceeded, Some((_, names))) => {
            let missing: BTreeSet<i32> = names.lines().filter_map(|name| name.trim().parse().ok()).collect();
            End::TimedOut { missing }
        }
        (code, _) => End::Failed(format!("{code:?}: {}", status.message())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_missing_tasks_are_read_from_the_text() {
        let text = "Barrier timed out. Id: b::0. ...\n# of tasks that reached the barrier: 1/3.\nThe first task at \
                    the barrier: 0. Some timed out task names:\n1\n2\n";
        let end = of_barrier(&Status::deadline_exceeded(text));
        assert_eq!(end, End::TimedOut { missing: [1, 2].into() });
        let end = of_barrier(&Status::internal("task is set to ERROR"));
        assert_eq!(end, End::Failed("Internal: task is set to ERROR".into()));
    }
}
