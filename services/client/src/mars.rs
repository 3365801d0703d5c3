//! The sessions, graphs and metas of Mars of one job, as people look at them.

use std::future::Future;

use tonic::metadata::MetadataValue;
use tonic::{Request, Response, Status};
use tripod_calls::Way;
use tripod_proto::bounds::ANSWER_ENCODED_BYTES_MAX;
use tripod_proto::mars::v1 as pb;
use tripod_proto::mars::v1::scheduler_client::SchedulerClient;
use tripod_proto::metadata as key;

use crate::call::Repeat;
use crate::client::Client;
use crate::error::Error;

/// Of which kind a graph is. Each kind has keys of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarsGraphKind {
    Tileable,
    Chunk,
}

/// The sessions of a job.
#[derive(Debug, Clone)]
pub struct Mars {
    client: Client,
    job: String,
}

impl Client {
    /// The sessions of a job; an empty name means `default`.
    #[must_use]
    pub fn mars(&self, job: &str) -> Mars {
        Mars { client: self.clone(), job: job.to_owned() }
    }
}

impl Mars {
    /// All of them.
    ///
    /// # Errors
    /// [`Error::Refused`] when there is no such job, else as any call.
    pub async fn sessions(&self) -> Result<pb::ListSessionsResponse, Error> {
        let list = |way, request: Request<()>| {
            let request = request.map(|()| pb::ListSessionsRequest {});
            async move { client(way).list_sessions(request).await }
        };
        self.call("mars sessions", list).await
    }

    /// How a graph is. `fields`: those that are wanted; none: all.
    ///
    /// # Errors
    /// [`Error::Refused`] when there is no such graph, else as any call.
    pub async fn graph(
        &self,
        kind: MarsGraphKind,
        session: &str,
        graph: &str,
        fields: &[&str],
    ) -> Result<pb::GraphInfo, Error> {
        let message = pb::GetGraphInfoRequest {
            session_id: session.to_owned(),
            graph_key: graph.to_owned(),
            filter_fields: fields.iter().map(|field| (*field).to_owned()).collect(),
        };
        let ask = |way, request: Request<()>| {
            let request = request.map(|()| message.clone());
            async move {
                match kind {
                    MarsGraphKind::Tileable => client(way).get_tileable_graph_info(request).await,
                    MarsGraphKind::Chunk => client(way).get_chunk_graph_info(request).await,
                }
            }
        };
        Ok(self.call("mars graph", ask).await?.info.unwrap_or_default())
    }

    /// Stops a graph; the state that it has then. Nothing happens to one that has ended, so it may be sent again.
    ///
    /// # Errors
    /// [`Error::Refused`] when there is no such graph, else as any call.
    pub async fn stop(
        &self,
        kind: MarsGraphKind,
        session: &str,
        graph: &str,
    ) -> Result<pb::GraphState, Error> {
        let message = pb::StopGraphRequest {
            request_id: String::new(),
            session_id: session.to_owned(),
            graph_key: graph.to_owned(),
        };
        let ask = |way, request: Request<()>| {
            let request = request.map(|()| message.clone());
            async move {
                match kind {
                    MarsGraphKind::Tileable => client(way).stop_tileable_graph(request).await,
                    MarsGraphKind::Chunk => client(way).stop_chunk_graph(request).await,
                }
            }
        };
        Ok(self.call("mars stop", ask).await?.state())
    }

    /// What is known of tileables, in the order of their keys.
    ///
    /// # Errors
    /// [`Error::Refused`] when there is no such session, else as any call.
    pub async fn tileable_metas(
        &self,
        session: &str,
        keys: &[String],
    ) -> Result<Vec<pb::TileableMeta>, Error> {
        let message = metas(session, keys);
        let ask = |way, request: Request<()>| {
            let request = request.map(|()| message.clone());
            async move { client(way).get_tileable_metas(request).await }
        };
        Ok(self.call("mars metas", ask).await?.metas)
    }

    /// What is known of chunks, in the order of their keys.
    ///
    /// # Errors
    /// [`Error::Refused`] when there is no such session, else as any call.
    pub async fn chunk_metas(&self, session: &str, keys: &[String]) -> Result<Vec<pb::ChunkMeta>, Error> {
        let message = metas(session, keys);
        let ask = |way, request: Request<()>| {
            let request = request.map(|()| message.clone());
            async move { client(way).get_chunk_metas(request).await }
        };
        Ok(self.call("mars metas", ask).await?.metas)
    }

    /// A call that may be made again.
    async fn call<T, F, Fut>(&self, what: &'static str, send: F) -> Result<T, Error>
    where
        F: Fn(Way, Request<()>) -> Fut,
        Fut: Future<Output = Result<Response<T>, Status>>,
    {
        let request = || {
            let mut request = Request::new(());
            if !self.job.is_empty()
                && let Ok(job) = MetadataValue::try_from(self.job.as_str())
            {
                request.metadata_mut().insert(key::JOB, job);
            }
            request
        };
        self.client.caller().call(what, Repeat::Freely, |way| send(way, request())).await
    }
}

fn metas(session: &str, keys: &[String]) -> pb::GetMetasRequest {
    pb::GetMetasRequest { session_id: session.to_owned(), keys: keys.to_vec(), ..Default::default() }
}

fn client(way: Way) -> SchedulerClient<Way> {
    SchedulerClient::new(way).max_decoding_message_size(ANSWER_ENCODED_BYTES_MAX)
}
