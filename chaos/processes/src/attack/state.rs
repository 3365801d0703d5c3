//! What makes the state grow.

use bytes::Bytes;
use tripod_proto::tripod::v1::jobs_client::JobsClient;
use tripod_proto::tripod::v1::kv_client::KvClient;
use tripod_proto::tripod::v1::{CreateJobRequest, DeleteJobRequest, JobSpec, PutRequest};
use tripod_proto::xla::coordination as n;
use tripod_proto::xla::coordination::coordination_service_client::CoordinationServiceClient as DialectN;

use super::aim::Aim;
use super::tally::{Bounds, Tally, ended, repeat};

/// Calls that are under way at a time.
const AT_ONCE: usize = 64;

/// Writes a key after the other, with values of that many bytes.
pub async fn keys(aim: &Aim, bounds: Bounds, prefix: &str, value_bytes: usize) -> Tally {
    let value = Bytes::from(vec![b'x'; value_bytes]);
    let channels = aim.channels(aim.nodes().len());
    repeat(bounds, AT_ONCE, |turn| {
        let mut client = KvClient::new(channels[turn % channels.len()].clone());
        let key = format!("{prefix}{turn}");
        let request = PutRequest { key, value: value.clone(), ..PutRequest::default() };
        async move { ended(&client.put(request).await) }
    })
    .await
}

/// Comes to a barrier after the other, whose names have that many bytes, and at which nobody else arrives.
pub async fn barriers(aim: &Aim, bounds: Bounds, name_bytes: usize) -> Tally {
    let channels = aim.channels(aim.nodes().len());
    repeat(bounds, AT_ONCE, |turn| {
        let mut client = DialectN::new(channels[turn % channels.len()].clone());
        let request = n::BarrierRequest {
            incarnations: Some(aim.life()),
            barrier_id: format!("attack/{turn:0name_bytes$}"),
            // Over at once, but its name is kept for whoever comes late.
            barrier_timeout_in_ms: 1,
            ..n::BarrierRequest::default()
        };
        async move { ended(&client.barrier(request).await) }
    })
    .await
}

/// Comes to a barrier after the other at which so many tasks are to arrive, the same one again and again.
pub async fn wide_barriers(aim: &Aim, bounds: Bounds, members: usize) -> Tally {
    let channels = aim.channels(aim.nodes().len());
    let task_ids: Vec<_> =
        (0..members / 2).cycle().take(members).filter_map(|id| i32::try_from(id).ok()).collect();
    repeat(bounds, AT_ONCE, |turn| {
        let mut client = DialectN::new(channels[turn % channels.len()].clone());
        let request = n::BarrierRequest {
            incarnations: Some(aim.life()),
            barrier_id: format!("attack/wide/{turn}"),
            barrier_timeout_in_ms: 1,
            task_ids: task_ids.clone(),
            ..n::BarrierRequest::default()
        };
        async move { ended(&client.barrier(request).await) }
    })
    .await
}

/// Makes so many jobs, and deletes them: whoever has none could not make one otherwise.
pub async fn jobs(aim: &Aim, bounds: Bounds) -> Tally {
    let channels = aim.channels(aim.nodes().len());
    let jobs =
        |turn: usize| (JobsClient::new(channels[turn % channels.len()].clone()), format!("attack-{turn}"));
    let mut tally = repeat(bounds, AT_ONCE, |turn| {
        let (mut client, name) = jobs(turn);
        let spec = Some(JobSpec { tasks: 1, ..JobSpec::default() });
        async move { ended(&client.create(CreateJobRequest { name, spec }).await) }
    })
    .await;
    let deleted = repeat(bounds, AT_ONCE, |turn| {
        let (mut client, name) = jobs(turn);
        async move { ended(&client.delete(DeleteJobRequest { name }).await) }
    })
    .await;
    tally.merge(&deleted);
    tally
}
