//! `mars.v1.Scheduler`: each call is decoded, handed on and encoded.

mod cluster;
mod graphs;
mod metas;
mod mutables;
mod sessions;

use std::pin::Pin;

use futures::Stream;
use tonic::{Request, Response, Status};
use tripod_proto::mars::v1 as pb;
use tripod_proto::mars::v1::scheduler_server::Scheduler;
use tripod_state::Scope;

use crate::deadline;
use crate::domain::GraphKind;
use crate::front::Front;
use crate::submit::Submission;

/// The calls of one port.
pub(crate) struct Service {
    front: Front,
}

type Outcome<T> = Result<Response<T>, Status>;
type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl Service {
    pub(crate) fn new(front: Front) -> Self {
        Self { front }
    }

    /// Which job a call is about, and what it says.
    async fn opened<M: Send>(&self, request: Request<M>) -> Result<(Scope, M), Status> {
        let (metadata, _, message) = request.into_parts();
        Ok((self.front.scope(&metadata).await?, message))
    }

    async fn wait(
        &self,
        kind: GraphKind,
        request: Request<pb::WaitGraphRequest>,
    ) -> Outcome<pb::WaitGraphResponse> {
        let hold = deadline::hold(request.metadata(), request.get_ref().timeout.as_ref())?;
        let (scope, message) = self.opened(request).await?;
        graphs::wait(&self.front, scope, kind, message, hold).await.map(Response::new)
    }
}

#[tonic::async_trait]
impl Scheduler for Service {
    type WatchWorkersStream = Answers<pb::WorkerChanges>;
    type WatchGraphStream = Answers<pb::GetGraphInfoResponse>;

    async fn count_schedulers(
        &self,
        request: Request<pb::CountSchedulersRequest>,
    ) -> Outcome<pb::CountResponse> {
        self.opened(request).await?;
        cluster::count_schedulers(&self.front).await.map(Response::new)
    }

    async fn get_schedulers(
        &self,
        request: Request<pb::GetSchedulersRequest>,
    ) -> Outcome<pb::GetSchedulersResponse> {
        self.opened(request).await?;
        cluster::schedulers(&self.front).await.map(Response::new)
    }

    async fn get_schedulers_info(
        &self,
        request: Request<pb::GetSchedulersInfoRequest>,
    ) -> Outcome<pb::GetSchedulersInfoResponse> {
        let (_, message) = self.opened(request).await?;
        cluster::schedulers_info(&self.front, message).await.map(Response::new)
    }

    async fn count_workers(&self, request: Request<pb::CountWorkersRequest>) -> Outcome<pb::CountResponse> {
        let (scope, message) = self.opened(request).await?;
        cluster::count_workers(&self.front, scope, message).await.map(Response::new)
    }

    async fn get_workers(&self, request: Request<pb::GetWorkersRequest>) -> Outcome<pb::GetWorkersResponse> {
        let (scope, message) = self.opened(request).await?;
        cluster::workers(&self.front, scope, message).await.map(Response::new)
    }

    async fn get_workers_info(
        &self,
        request: Request<pb::GetWorkersInfoRequest>,
    ) -> Outcome<pb::GetWorkersInfoResponse> {
        let (scope, message) = self.opened(request).await?;
        cluster::workers_info(&self.front, scope, message).await.map(Response::new)
    }

    async fn watch_workers(
        &self,
        request: Request<pb::WatchWorkersRequest>,
    ) -> Outcome<Self::WatchWorkersStream> {
        let (scope, message) = self.opened(request).await?;
        let changes = self.front.clone().watch_workers(scope, message.from_version);
        Ok(Response::new(Box::pin(changes)))
    }

    async fn create_session(
        &self,
        request: Request<pb::CreateSessionRequest>,
    ) -> Outcome<pb::CreateSessionResponse> {
        let (scope, message) = self.opened(request).await?;
        sessions::create(&self.front, scope, message).await.map(Response::new)
    }

    async fn has_session(&self, request: Request<pb::HasSessionRequest>) -> Outcome<pb::HasSessionResponse> {
        let (scope, message) = self.opened(request).await?;
        sessions::has(&self.front, scope, message).await.map(Response::new)
    }

    async fn delete_session(
        &self,
        request: Request<pb::DeleteSessionRequest>,
    ) -> Outcome<pb::DeleteSessionResponse> {
        let (scope, message) = self.opened(request).await?;
        sessions::delete(&self.front, scope, message).await.map(Response::new)
    }

    async fn list_sessions(
        &self,
        request: Request<pb::ListSessionsRequest>,
    ) -> Outcome<pb::ListSessionsResponse> {
        let (scope, _) = self.opened(request).await?;
        sessions::list(&self.front, scope).await.map(Response::new)
    }

    async fn submit_tileable_graph(
        &self,
        request: Request<pb::SubmitTileableGraphRequest>,
    ) -> Outcome<pb::SubmitGraphResponse> {
        let (scope, message) = self.opened(request).await?;
        let call = Submission {
            request_id: message.request_id,
            session_id: message.session_id,
            graph_key: message.graph_key,
            nodes: message.graph.map(|graph| graph.nodes),
            part: message.part,
            target_keys: message.target_keys,
            options: message.options,
        };
        self.front.submit_graph(scope, call).await.map(Response::new)
    }

    async fn submit_chunk_graph(
        &self,
        request: Request<pb::SubmitChunkGraphRequest>,
    ) -> Outcome<pb::SubmitGraphResponse> {
        let (scope, message) = self.opened(request).await?;
        let call = Submission {
            request_id: message.request_id,
            session_id: message.session_id,
            graph_key: message.graph_key,
            nodes: message.graph.map(|graph| graph.nodes),
            part: message.part,
            target_keys: message.target_keys,
            options: message.options,
        };
        self.front.submit_graph(scope, call).await.map(Response::new)
    }

    async fn get_tileable_graph_info(
        &self,
        request: Request<pb::GetGraphInfoRequest>,
    ) -> Outcome<pb::GetGraphInfoResponse> {
        let (scope, message) = self.opened(request).await?;
        graphs::info(&self.front, scope, GraphKind::Tileable, message).await.map(Response::new)
    }

    async fn get_chunk_graph_info(
        &self,
        request: Request<pb::GetGraphInfoRequest>,
    ) -> Outcome<pb::GetGraphInfoResponse> {
        let (scope, message) = self.opened(request).await?;
        graphs::info(&self.front, scope, GraphKind::Chunk, message).await.map(Response::new)
    }

    async fn wait_tileable_graph(
        &self,
        request: Request<pb::WaitGraphRequest>,
    ) -> Outcome<pb::WaitGraphResponse> {
        self.wait(GraphKind::Tileable, request).await
    }

    async fn wait_chunk_graph(
        &self,
        request: Request<pb::WaitGraphRequest>,
    ) -> Outcome<pb::WaitGraphResponse> {
        self.wait(GraphKind::Chunk, request).await
    }

    async fn watch_graph(&self, request: Request<pb::WatchGraphRequest>) -> Outcome<Self::WatchGraphStream> {
        let (scope, message) = self.opened(request).await?;
        let infos = self.front.clone().watch_graph(scope, message).await?;
        Ok(Response::new(Box::pin(infos)))
    }

    async fn stop_tileable_graph(
        &self,
        request: Request<pb::StopGraphRequest>,
    ) -> Outcome<pb::StopGraphResponse> {
        let (scope, message) = self.opened(request).await?;
        graphs::stop(&self.front, scope, GraphKind::Tileable, message).await.map(Response::new)
    }

    async fn stop_chunk_graph(
        &self,
        request: Request<pb::StopGraphRequest>,
    ) -> Outcome<pb::StopGraphResponse> {
        let (scope, message) = self.opened(request).await?;
        graphs::stop(&self.front, scope, GraphKind::Chunk, message).await.map(Response::new)
    }

    async fn delete_tileable_graph(
        &self,
        request: Request<pb::DeleteGraphRequest>,
    ) -> Outcome<pb::DeleteGraphResponse> {
        let (scope, message) = self.opened(request).await?;
        graphs::delete(&self.front, scope, GraphKind::Tileable, message).await.map(Response::new)
    }

    async fn delete_chunk_graph(
        &self,
        request: Request<pb::DeleteGraphRequest>,
    ) -> Outcome<pb::DeleteGraphResponse> {
        let (scope, message) = self.opened(request).await?;
        graphs::delete(&self.front, scope, GraphKind::Chunk, message).await.map(Response::new)
    }

    async fn get_tileable_metas(
        &self,
        request: Request<pb::GetMetasRequest>,
    ) -> Outcome<pb::GetTileableMetasResponse> {
        let (scope, message) = self.opened(request).await?;
        metas::tileables(&self.front, scope, message).await.map(Response::new)
    }

    async fn get_chunk_metas(
        &self,
        request: Request<pb::GetMetasRequest>,
    ) -> Outcome<pb::GetChunkMetasResponse> {
        let (scope, message) = self.opened(request).await?;
        metas::chunks(&self.front, scope, message).await.map(Response::new)
    }

    async fn decref_tileables(
        &self,
        request: Request<pb::DecrefTileablesRequest>,
    ) -> Outcome<pb::DecrefTileablesResponse> {
        let (scope, message) = self.opened(request).await?;
        metas::decref(&self.front, scope, message).await.map(Response::new)
    }

    async fn create_mutable_tensor(
        &self,
        request: Request<pb::CreateMutableTensorRequest>,
    ) -> Outcome<pb::MutableResponse> {
        let (scope, message) = self.opened(request).await?;
        mutables::create_tensor(&self.front, scope, message).await.map(Response::new)
    }

    async fn create_mutable_data_frame(
        &self,
        request: Request<pb::CreateMutableDataFrameRequest>,
    ) -> Outcome<pb::MutableResponse> {
        let (scope, message) = self.opened(request).await?;
        mutables::create_frame(&self.front, scope, message).await.map(Response::new)
    }

    async fn get_mutable_tileable(
        &self,
        request: Request<pb::GetMutableTileableRequest>,
    ) -> Outcome<pb::MutableResponse> {
        let (scope, message) = self.opened(request).await?;
        mutables::get(&self.front, scope, message).await.map(Response::new)
    }

    async fn get_mutable_states(
        &self,
        request: Request<pb::GetMutableStatesRequest>,
    ) -> Outcome<pb::GetMutableStatesResponse> {
        let (scope, message) = self.opened(request).await?;
        mutables::states(&self.front, scope, message).await.map(Response::new)
    }

    async fn seal_mutable_tileable(
        &self,
        request: Request<pb::SealMutableTileableRequest>,
    ) -> Outcome<pb::SealMutableTileableResponse> {
        let hold = deadline::hold(request.metadata(), None)?;
        let (scope, message) = self.opened(request).await?;
        mutables::seal(&self.front, scope, message, hold).await.map(Response::new)
    }

    async fn delete_mutable_tileable(
        &self,
        request: Request<pb::DeleteMutableTileableRequest>,
    ) -> Outcome<pb::DeleteMutableTileableResponse> {
        let (scope, message) = self.opened(request).await?;
        mutables::delete(&self.front, scope, message).await.map(Response::new)
    }
}
