//! One instance of a barrier, from the first arrival to the last answer.

use std::collections::BTreeMap;

use super::member::Member;
use crate::client::Client;
use crate::invariant::barrier_all_or_none::{Arrival, End, Instance};
use crate::observation::SimTime;
use crate::witness::{Witness, now};
use tripod_checkers::history::{self, Call, Generation, Missing, Outcome, Reply};

/// When nothing is wrong an arrival is recorded within so many milliseconds.
const RECORDED_WITHIN_MS: u64 = 1200;
/// After a fault it takes so long until nothing is wrong.
const AFTERMATH_MS: u64 = 3000;

/// What is to happen at a barrier.
pub(super) struct Meeting<'a> {
    pub(super) name: String,
    pub(super) members: &'a [Member],
    /// Who stays away.
    pub(super) absent: Option<i32>,
    pub(super) timeout_ms: i64,
}

/// Has the members meet, each with a client of its own. Tells whether all passed.
pub(super) async fn meet(witness: &Witness, meeting: &Meeting<'_>, clients: &mut [Client]) -> bool {
    let begun = now();
    let coming = meeting
        .members
        .iter()
        .zip(clients)
        .filter(|(member, _)| Some(member.task.1) != meeting.absent)
        .map(|(member, client)| arrive(meeting, member, client));
    let arrivals: BTreeMap<i32, Arrival> = futures::future::join_all(coming).await.into_iter().collect();
    let passed = arrivals.values().all(|arrival| arrival.end == End::Passed);
    let calm = witness.calm_since(SimTime(begun.0.saturating_sub(AFTERMATH_MS)));
    witness.barrier(&Instance {
        name: meeting.name.clone(),
        tasks: meeting.members.iter().map(|member| member.task.1).collect(),
        arrivals,
        recorded_within_ms: calm.then_some(RECORDED_WITHIN_MS),
    });
    passed
}

async fn arrive(meeting: &Meeting<'_>, member: &Member, client: &mut Client) -> (i32, Arrival) {
    client.pause(300).await;
    let task = |id: i32| history::TaskId(id);
    let call = Call::Arrive {
        job: history::Job::from(member.task.0.as_str()),
        barrier: history::Barrier::from(meeting.name.as_str()),
        generation: Generation(0),
        task: task(member.task.1),
        members: meeting.members.iter().map(|member| task(member.task.1)).collect(),
        timeout_ms: meeting.timeout_ms.unsigned_abs(),
    };
    let invoked = now();
    let mut end = End::Unknown;
    let witness = client.witness.clone();
    let made = async {
        end = member.arrive(client, &meeting.name, meeting.timeout_ms).await;
        outcome(&end)
    };
    witness.record(history::ClientId(100 + client_number(member)), call, made).await;
    (member.task.1, Arrival { invoked, ended: now(), end })
}

/// A task makes one call at a time besides its heartbeats.
fn client_number(member: &Member) -> u32 {
    member.task.1.unsigned_abs()
}

fn outcome(end: &End) -> Outcome {
    match end {
        End::Passed => Outcome::Ok(Reply::Passed),
        End::TimedOut { missing } => {
            let named: Vec<_> = missing.iter().map(|task| history::TaskId(*task)).collect();
            let missing = Missing { count: u32::try_from(named.len()).unwrap_or(u32::MAX), named };
            Outcome::Ok(Reply::BarrierFailed { reason: "timed out".into(), missing: Some(missing) })
        }
        End::Failed(reason) => Outcome::Ok(Reply::BarrierFailed { reason: reason.clone(), missing: None }),
        End::Unknown => Outcome::Unknown("no answer in time".into()),
    }
}
