//! Calls about schedulers and workers.

use tonic::Status;
use tripod_gateway::Consistency;
use tripod_proto::mars::v1 as pb;
use tripod_state::Scope;

use crate::cluster::{Worker, named, statuses};
use crate::fields::{self, Fields};
use crate::front::Front;

pub(super) async fn count_schedulers(front: &Front) -> Result<pb::CountResponse, Status> {
    let count = front.schedulers().await?.len() as u64;
    Ok(pb::CountResponse { header: Some(front.header()), count })
}

pub(super) async fn schedulers(front: &Front) -> Result<pb::GetSchedulersResponse, Status> {
    let schedulers = front.schedulers().await?;
    Ok(pb::GetSchedulersResponse { header: Some(front.header()), schedulers })
}

pub(super) async fn schedulers_info(
    front: &Front,
    message: pb::GetSchedulersInfoRequest,
) -> Result<pb::GetSchedulersInfoResponse, Status> {
    let fields = Fields::read(&message.filter_fields, fields::SCHEDULER)?;
    let infos = front.schedulers_info(named("addresses", message.addresses)?, &fields).await?;
    Ok(pb::GetSchedulersInfoResponse { header: Some(front.header()), infos })
}

pub(super) async fn count_workers(
    front: &Front,
    scope: Scope,
    message: pb::CountWorkersRequest,
) -> Result<pb::CountResponse, Status> {
    let wanted = statuses(&message.statuses)?;
    let all = front.workers(scope.job, Consistency::Linearizable).await?;
    let count = all.iter().filter(|worker| wanted.contains(&worker.status)).count() as u64;
    Ok(pb::CountResponse { header: Some(front.header()), count })
}

pub(super) async fn workers(
    front: &Front,
    scope: Scope,
    message: pb::GetWorkersRequest,
) -> Result<pb::GetWorkersResponse, Status> {
    let wanted = statuses(&message.statuses)?;
    let all = front.workers(scope.job, Consistency::Linearizable).await?;
    let workers = all.iter().filter(|worker| wanted.contains(&worker.status)).map(Worker::message).collect();
    Ok(pb::GetWorkersResponse { header: Some(front.header()), workers })
}

pub(super) async fn workers_info(
    front: &Front,
    scope: Scope,
    message: pb::GetWorkersInfoRequest,
) -> Result<pb::GetWorkersInfoResponse, Status> {
    let fields = Fields::read(&message.filter_fields, fields::WORKER)?;
    let ids = named("worker_ids", message.worker_ids)?;
    let infos = front.workers_info(scope.job, ids, &fields).await?;
    Ok(pb::GetWorkersInfoResponse { header: Some(front.header()), infos })
}
