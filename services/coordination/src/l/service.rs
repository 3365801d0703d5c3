//! The calls of dialect L: decode, ask the cluster, encode.

use tonic::{Request, Response, Status, async_trait};
use tripod_gateway::{Consistency, SetBeat};
use tripod_proto::metadata::DEVICES;
use tripod_proto::xla as pb;
use tripod_proto::xla::distributed_runtime_service_server::DistributedRuntimeService;
use tripod_state::runtime::Patience;
use tripod_state::{Answer, Fault};

use super::exchange::Wish;
use super::topology::Topology;
use super::waiting_call::WaitingCall;
use super::{decode, encode};
use crate::answer;
use crate::caller::Caller;
use crate::front::{Front, Outcome, speaker};
use crate::{origin, own_task};

/// Answers `xla.DistributedRuntimeService`.
pub(crate) struct Service {
    front: Front,
}

impl Service {
    pub(crate) fn new(front: Front) -> Self {
        Self { front }
    }

    /// See [`Front::set_beat`].
    pub(crate) async fn set_beat(&self, request: &Request<pb::HeartbeatRequest>) -> Result<SetBeat, Status> {
        self.front.set_beat(request, decode::heartbeat).await
    }

    /// What a heartbeat of a living task is answered.
    pub(crate) fn beat_answer(answer: Answer) -> Result<pb::HeartbeatResponse, Status> {
        encode::beat(answer)
    }

    /// A call that waits for so long.
    async fn held<M, R>(
        &self,
        request: Request<M>,
        decode: impl FnOnce(Caller, &M, Patience) -> WaitingCall + Send,
        encode: impl FnOnce(Answer) -> Result<R, Status> + Send,
    ) -> Outcome<R>
    where
        M: prost::Message,
    {
        let gateway = self.front.gateway();
        let (caller, call) = {
            // As in the other dialects: nothing of it is kept, nor has room, when the call waits.
            let asked = request;
            let caller = self.front.caller(&asked).await?;
            // The port's job was found on this node, and its specification never changes.
            let patience = gateway.read(Consistency::Local, |state| state.runtime_patience(caller.job)).await;
            let patience = match patience {
                Ok(Some(patience)) => patience,
                Ok(None) => return self.front.answer(Ok(Err(Fault::JobUnknown { name: None })), encode),
                Err(outage) => return self.front.answer(Err(outage), encode),
            };
            let mut call = decode(caller, asked.get_ref(), patience);
            own_task::check(asked.extensions(), call.sender())?;
            call.task = call.task.or_else(|| speaker(&asked, caller));
            (caller, call)
        };
        let reply = call.call(caller, gateway).await;
        self.front.answer(reply, encode)
    }
}

// The calls that are made often, of which nothing is boxed here.
impl Service {
    pub(crate) async fn beat(
        &self,
        request: Request<pb::HeartbeatRequest>,
    ) -> Outcome<pb::HeartbeatResponse> {
        self.front.heartbeat(request, decode::heartbeat, encode::beat).await
    }

    pub(crate) async fn get(
        &self,
        request: Request<pb::KeyValueGetRequest>,
    ) -> Outcome<pb::KeyValueGetResponse> {
        self.held(request, decode::get, encode::got).await
    }

    pub(crate) async fn set(
        &self,
        request: Request<pb::KeyValueSetRequest>,
    ) -> Outcome<pb::KeyValueSetResponse> {
        self.front.command(request, decode::set, answer::done).await
    }

    pub(crate) async fn arrive(
        &self,
        request: Request<pb::WaitAtBarrierRequest>,
    ) -> Outcome<pb::WaitAtBarrierResponse> {
        self.held(request, decode::barrier, answer::done).await
    }
}

#[async_trait]
impl DistributedRuntimeService for Service {
    async fn connect(&self, request: Request<pb::ConnectRequest>) -> Outcome<pb::ConnectResponse> {
        decode::check_version(request.get_ref())?;
        let origin = origin::of(&request);
        let begin = |caller, message: &pb::ConnectRequest, patience| {
            decode::connect(caller, message, patience).with_origin(origin)
        };
        self.held(request, begin, encode::connected).await
    }

    async fn enumerate_devices(
        &self,
        request: Request<pb::EnumerateDevicesRequest>,
    ) -> Outcome<pb::EnumerateDevicesResponse> {
        let own = Topology::parse(request.get_ref().local_topology.clone()).map_err(|error| {
            Status::invalid_argument(format!("local_topology cannot be decoded: {error}"))
        })?;
        let begin = |caller, message: &pb::EnumerateDevicesRequest, patience| {
            decode::enumerate(message.session_id, caller, &own, patience)
        };
        let wish = Wish::of(request.metadata());
        let answered = self.held(request, begin, |answer| encode::enumerated(&own, wish, answer)).await?;
        let (mut metadata, (devices, name), extensions) = answered.into_parts();
        if let Some(name) = name {
            metadata.insert(DEVICES, name);
        }
        Ok(Response::from_parts(metadata, devices, extensions))
    }

    async fn heartbeat(&self, request: Request<pb::HeartbeatRequest>) -> Outcome<pb::HeartbeatResponse> {
        self.beat(request).await
    }

    async fn shutdown(&self, request: Request<pb::ShutdownRequest>) -> Outcome<pb::ShutdownResponse> {
        self.held(request, decode::shutdown, answer::done).await
    }

    async fn key_value_get(
        &self,
        request: Request<pb::KeyValueGetRequest>,
    ) -> Outcome<pb::KeyValueGetResponse> {
        self.get(request).await
    }

    async fn key_value_set(
        &self,
        request: Request<pb::KeyValueSetRequest>,
    ) -> Outcome<pb::KeyValueSetResponse> {
        self.set(request).await
    }

    async fn wait_at_barrier(
        &self,
        request: Request<pb::WaitAtBarrierRequest>,
    ) -> Outcome<pb::WaitAtBarrierResponse> {
        self.arrive(request).await
    }
}
