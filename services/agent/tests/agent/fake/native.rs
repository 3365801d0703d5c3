//! The part of `tripod.v1` that agents use.

use std::pin::Pin;
use std::time::Duration;

use prost::Message as _;
use tokio_stream::{Stream, StreamExt as _, wrappers::WatchStream};
use tonic::{Code, Request, Response, Status};
use tripod_proto::tripod::v1 as pb;
use tripod_proto::tripod::v1::agents_server::Agents;
use tripod_proto::tripod::v1::jobs_server::Jobs;
use tripod_proto::tripod::v1::kv_server::Kv;
use tripod_proto::tripod::v1::sessions_server::Sessions;
use tripod_proto::xla::coordination::HeartbeatResponse;

use super::node::{BeatConduct, Conduct, Shared};

/// The service incarnation of the fake job.
pub(super) const SERVICE: u64 = 7;

#[derive(Clone)]
pub(super) struct Native(pub(super) Shared);

type Streamed<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl Agents for Native {
    type BeatStream = Streamed<pb::BeatVerdict>;
    type WatchMembersStream = Streamed<pb::MembersResponse>;

    async fn beat(&self, request: Request<pb::BeatRequest>) -> Result<Response<Self::BeatStream>, Status> {
        let pb::BeatRequest { beats, set, .. } = request.into_inner();
        // Whoever has registered is waited for until its first heartbeat.
        if let Some(presence) = beats.first().and_then(|beat| beat.presence) {
            let goes_on = self.0.cluster.change(|state| {
                state.presences.push(presence);
                state.batches.is_empty()
            });
            let code = if goes_on { Code::Ok } else { Code::FailedPrecondition };
            let verdict = pb::BeatVerdict { code: code.into(), ..Default::default() };
            return Ok(Response::new(Box::pin(tokio_stream::iter([Ok(verdict)]))));
        }
        let Conduct { beats: conduct, has_sets, .. } = self.0.conduct.lock().clone();
        let set = set.filter(|_| has_sets);
        if conduct == BeatConduct::Silence && (!beats.is_empty() || set.is_some()) {
            return Ok(Response::new(Box::pin(tokio_stream::pending())));
        }
        if let Some(set) = set {
            let word = self.0.cluster.change(|state| state.told_set(&set));
            let verdict = pb::BeatVerdict { set: word.into(), ..Default::default() };
            return Ok(Response::new(Box::pin(tokio_stream::iter([Ok(verdict)]))));
        }
        let count = u32::try_from(beats.len()).expect("few");
        if count > 0 {
            self.0.cluster.change(|state| state.batches.push((self.0.node, beats)));
        }
        let verdicts = (0..count).map(move |beat| {
            Ok(match conduct {
                BeatConduct::Refuse(text) => {
                    let details = b"details".as_slice().into();
                    pb::BeatVerdict { beat, code: 10, text: text.into(), details, ..Default::default() }
                }
                BeatConduct::Outage(word) => {
                    pb::BeatVerdict { beat, outage: word.into(), ..Default::default() }
                }
                BeatConduct::Answer | BeatConduct::Silence | BeatConduct::Late(_) => {
                    let message = HeartbeatResponse { service_incarnation: SERVICE }.encode_to_vec().into();
                    pb::BeatVerdict { beat, message, ..Default::default() }
                }
            })
        });
        Ok(Response::new(Box::pin(tokio_stream::iter(verdicts))))
    }

    async fn watch_members(
        &self,
        _: Request<pb::WatchMembersRequest>,
    ) -> Result<Response<Self::WatchMembersStream>, Status> {
        let cluster = self.0.cluster.clone();
        // As with a real node, the word that it stops is its last.
        let stops = WatchStream::new(self.0.stopping.subscribe());
        let mut is_over = false;
        let words = stops.take_while(move |stopping| !std::mem::replace(&mut is_over, *stopping));
        let told = words.map(move |stopping| {
            let members = cluster.look(|state| state.members.clone());
            let members = members
                .into_iter()
                .zip(1..)
                .map(|(client_address, node_id)| pb::MemberAddress { node_id, client_address });
            Ok(pb::MembersResponse { members: members.collect(), stopping })
        });
        Ok(Response::new(Box::pin(told)))
    }
}

#[tonic::async_trait]
impl Sessions for Native {
    async fn open(
        &self,
        _: Request<pb::OpenSessionRequest>,
    ) -> Result<Response<pb::OpenSessionResponse>, Status> {
        let session = self.0.cluster.open_session();
        Ok(Response::new(pb::OpenSessionResponse { session, session_high: 0 }))
    }

    async fn close(
        &self,
        _: Request<pb::CloseSessionRequest>,
    ) -> Result<Response<pb::CloseSessionResponse>, Status> {
        Err(Status::unimplemented("agents let sessions expire"))
    }
}

#[tonic::async_trait]
impl Jobs for Native {
    async fn create(&self, request: Request<pb::CreateJobRequest>) -> Result<Response<pb::Job>, Status> {
        let pb::CreateJobRequest { name, spec } = request.into_inner();
        let spec = pb::JobSpec { heartbeat_timeout_ms: 1000, ..spec.unwrap_or_default() };
        let job = pb::Job { name, spec: Some(spec), ..Default::default() };
        self.0.cluster.change(|state| state.job = Some(job.clone()));
        // A node answers when the job is replicated.
        tokio::time::sleep(Duration::from_millis(1)).await;
        Ok(Response::new(job))
    }

    async fn get(&self, request: Request<pb::GetJobRequest>) -> Result<Response<pb::Job>, Status> {
        let name = request.into_inner().name;
        let job = self.0.cluster.look(|state| state.job.clone());
        job.filter(|job| job.name == name).map(Response::new).ok_or_else(|| Status::not_found("no such job"))
    }

    async fn list(&self, _: Request<pb::ListJobsRequest>) -> Result<Response<pb::ListJobsResponse>, Status> {
        Err(Status::unimplemented("agents know one job"))
    }

    async fn delete(
        &self,
        _: Request<pb::DeleteJobRequest>,
    ) -> Result<Response<pb::DeleteJobResponse>, Status> {
        Err(Status::unimplemented("agents delete nothing"))
    }

    async fn note(&self, _: Request<pb::NoteJobRequest>) -> Result<Response<pb::NoteJobResponse>, Status> {
        Err(Status::unimplemented("agents note nothing"))
    }

    async fn note_host(
        &self,
        _: Request<pb::NoteHostRequest>,
    ) -> Result<Response<pb::NoteHostResponse>, Status> {
        Err(Status::unimplemented("no agent asks for it"))
    }

    async fn end_task(
        &self,
        _: Request<pb::EndTaskRequest>,
    ) -> Result<Response<pb::EndTaskResponse>, Status> {
        Err(Status::unimplemented("agents end no task"))
    }
}

#[tonic::async_trait]
impl Kv for Native {
    /// What a linearizable read needs is what `Silence` lacks.
    async fn get(&self, _: Request<pb::GetRequest>) -> Result<Response<pb::GetResponse>, Status> {
        self.0.cluster.change(|state| state.probes.push(self.0.node));
        let conduct = self.0.conduct.lock().beats.clone();
        match conduct {
            BeatConduct::Silence => std::future::pending().await,
            BeatConduct::Late(time) => tokio::time::sleep(time).await,
            BeatConduct::Answer | BeatConduct::Refuse(_) | BeatConduct::Outage(_) => {}
        }
        Err(Status::not_found("no such job"))
    }

    async fn put(&self, _: Request<pb::PutRequest>) -> Result<Response<pb::PutResponse>, Status> {
        Err(Status::unimplemented("agents write nothing"))
    }

    async fn delete(&self, _: Request<pb::DeleteRequest>) -> Result<Response<pb::DeleteResponse>, Status> {
        Err(Status::unimplemented("agents delete nothing"))
    }

    async fn list(&self, _: Request<pb::ListRequest>) -> Result<Response<pb::ListResponse>, Status> {
        Err(Status::unimplemented("agents list nothing"))
    }
}
