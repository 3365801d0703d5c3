//! Barriers as an agent counts them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tonic::Status;
use tripod_proto::xla::coordination as pb;

use super::agent::{Agent, Shared};
use super::config::ms;
use crate::support::payloads::barrier_error;

/// What an agent remembers of its barriers.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// The last instance of each id of which the service said how it ended.
    last: BTreeMap<String, i64>,
    /// Where it waits.
    ongoing: BTreeSet<String>,
}

impl Agent {
    /// Waits at a barrier of the given tasks, or of all if the list is empty.
    pub(crate) fn wait_at_barrier(
        &self,
        id: &str,
        timeout: Duration,
        tasks: &[i32],
    ) -> impl Future<Output = Result<(), Status>> + Send + use<> {
        let (shared, id, tasks) = (Arc::clone(&self.shared), id.to_owned(), tasks.to_vec());
        async move { shared.wait_at_barrier(id, timeout, tasks).await }
    }
}

impl Shared {
    async fn wait_at_barrier(&self, id: String, timeout: Duration, tasks: Vec<i32>) -> Result<(), Status> {
        self.check_running()?;
        let counter = {
            let mut counters = self.counters.lock();
            if !counters.ongoing.insert(id.clone()) {
                return Err(Status::failed_precondition(format!("barrier {id} is ongoing")));
            }
            counters.last.get(&id).map_or(0, |last| last + 1)
        };
        let message = pb::BarrierRequest {
            incarnations: self.life(),
            barrier_id: id.clone(),
            barrier_timeout_in_ms: i64::try_from(ms(timeout).0).expect("a short time"),
            task_ids: tasks,
            source_task_id: self.task,
            counter,
        };
        let outcome = self.told_unless_over(self.client.clone().barrier(message)).await;
        let mut counters = self.counters.lock();
        counters.ongoing.remove(&id);
        // An error of the transport says nothing about the barrier: the next call is for the same instance.
        let consumed = match &outcome {
            Ok(reply) => Some(reply.counter),
            Err(status) => barrier_error(status).map(|(_, counter)| counter),
        };
        if let Some(counter) = consumed {
            counters.last.insert(id, counter);
        }
        outcome.map(drop)
    }
}
