//! Objects of this store as chunks of tensors and frames: what `tripod-chunk-data` needs of a store.

use std::sync::Arc;

use bytes::Bytes;
use tonic::transport::Channel;
use tonic::{Extensions, Request, Status};
use tripod_chunk_data::{MutableStates, Object, ObjectError, Store, Usage, Whereabouts, Wish};
use tripod_proto::mars::v1::scheduler_client::SchedulerClient;
use tripod_proto::mars::v1::worker_client::WorkerClient;
use tripod_proto::mars::v1::{
    ChunkMeta, GetMetasRequest, GetMutableStatesRequest, GetMutableTileableRequest, MutableInfo,
};

use crate::callers::{self, Callers};
use crate::ids::ObjectId;
use crate::incarnation::{Current, Incarnation};
use crate::made::Made;
use crate::peers::Peers;
use crate::scheduler::Endpoints;
use crate::shelf::{GetError, WriteError};

/// Bytes of what the nodes say of 1,000 chunks, or of a tileable with 65,536.
const TOLD_BYTES_MAX: usize = 16 << 20;

/// The store, as its chunks are served.
#[derive(Debug)]
pub(crate) struct Chunks {
    current: Current,
    callers: Arc<Callers>,
    endpoints: Arc<Endpoints>,
    peers: Arc<Peers>,
    address: Arc<str>,
}

impl Chunks {
    pub(crate) fn new(
        current: Current,
        callers: Arc<Callers>,
        endpoints: Arc<Endpoints>,
        peers: Arc<Peers>,
        address: Arc<str>,
    ) -> Self {
        Self { current, callers, endpoints, peers, address }
    }

    fn current(&self) -> Option<Arc<Incarnation>> {
        self.current.borrow().clone()
    }
}

#[tonic::async_trait]
impl Store for Chunks {
    fn address(&self) -> &str {
        &self.address
    }

    async fn admit(&self, extensions: &Extensions, wish: Wish) -> Result<(), Status> {
        let wish = match wish {
            Wish::Data => callers::Wish::Object,
            Wish::Order => callers::Wish::Order,
        };
        self.callers.check(extensions, wish).await
    }

    fn whereabouts(&self, object: u64) -> Whereabouts {
        let Some(current) = self.current() else { return Whereabouts::Absent };
        let id = ObjectId(object);
        if current.shelf.is_ready(id) {
            Whereabouts::Here
        } else if current.shelf.is_coming(id) {
            Whereabouts::Coming
        } else {
            Whereabouts::Absent
        }
    }

    async fn object(&self, object: u64) -> Result<Object, ObjectError> {
        let unavailable = "the store is not registered with a scheduler yet; try again";
        let current = self.current().ok_or_else(|| ObjectError::Unavailable(unavailable.to_owned()))?;
        let value = current.shelf.get(ObjectId(object)).await.map_err(|error| {
            let text = error.to_string();
            match error {
                GetError::Deallocated(_) | GetError::TooLarge { .. } | GetError::GivenUp { .. } => {
                    ObjectError::Gone(text)
                }
                GetError::Lost(_) => ObjectError::Damaged(text),
                GetError::Reserve(_) => ObjectError::NoRoom(text),
                GetError::Ended => ObjectError::Unavailable(text),
            }
        })?;
        let mapped = value.bytes();
        let pinned = mapped
            .map_err(|error| ObjectError::NoRoom(format!("object {object} cannot be mapped: {error}")))?;
        let (bytes, metadata_offset) = (pinned.bytes.clone(), value.metadata_offset);
        Ok(Object { bytes, metadata_offset, keep: Box::new(pinned) })
    }

    async fn make(&self, object: u64, pieces: Vec<Bytes>, metadata_offset: u64) -> Result<(), ObjectError> {
        let unavailable = "the store is not registered with a scheduler yet; try again";
        let current = self.current().ok_or_else(|| ObjectError::Unavailable(unavailable.to_owned()))?;
        let id = ObjectId(object);
        if current.shelf.is_ready(id) {
            return Ok(());
        }
        let size_bytes = pieces.iter().map(|piece| piece.len() as u64).sum();
        let created = current.shelf.create(id, size_bytes).await;
        let mut writer = created.map_err(|error| match error {
            // Another call makes it just now.
            WriteError::Refused(error) => ObjectError::Unavailable(error.to_string()),
            WriteError::Reserve(error) => ObjectError::NoRoom(error.to_string()),
        })?;
        let mut offset = 0;
        for piece in pieces {
            let written = writer.append(offset, &piece);
            written
                .map_err(|error| ObjectError::NoRoom(format!("object {id} cannot be written: {error}")))?;
            offset += piece.len() as u64;
        }
        let sealed = writer.seal_soon(metadata_offset, Made::default()).await;
        sealed.map_err(|error| ObjectError::Unavailable(error.to_string()))
    }

    fn usage(&self) -> Usage {
        let Some(current) = self.current() else { return Usage::default() };
        let usage = current.shelf.usage();
        Usage {
            workers: current.followers.count(),
            used_bytes: usage.used_bytes,
            capacity_bytes: usage.capacity_bytes,
            spilled_bytes: usage.spilled_bytes,
            objects: current.shelf.ready().len(),
        }
    }

    async fn chunk_metas(&self, session: &str, keys: Vec<String>) -> Result<Vec<ChunkMeta>, Status> {
        let question = GetMetasRequest {
            session_id: session.to_owned(),
            keys,
            filter_fields: Vec::new(),
            // It may be older than the chunk, whose key its client has from an answer.
            stale_ok: false,
        };
        let send = |channel, request| async move { scheduler(channel).get_chunk_metas(request).await };
        let asked = self.endpoints.call("GetChunkMetas", || Request::new(question.clone()), send).await;
        Ok(asked.map_err(|refused| refused.status)?.metas)
    }

    async fn mutable_of(&self, session: &str, key: &str) -> Result<MutableInfo, Status> {
        let question = GetMutableTileableRequest {
            session_id: session.to_owned(),
            name: String::new(),
            chunk_key: key.to_owned(),
        };
        let send = |channel, request| async move { scheduler(channel).get_mutable_tileable(request).await };
        let asked = self.endpoints.call("GetMutableTileable", || Request::new(question.clone()), send).await;
        let info = asked.map_err(|refused| refused.status)?.info;
        info.ok_or_else(|| Status::unavailable("a node told nothing of a mutable tileable"))
    }

    async fn mutable_states(&self, tileables: Vec<u64>) -> Result<MutableStates, Status> {
        let question = GetMutableStatesRequest { ids: tileables };
        let send = |channel, request| async move { scheduler(channel).get_mutable_states(request).await };
        let asked = self.endpoints.call("GetMutableStates", || Request::new(question.clone()), send).await;
        let told = asked.map_err(|refused| refused.status)?;
        let states = told.states().collect();
        let header = told.header.unwrap_or_default();
        // A job has the numbers of its own tileables only.
        let cluster = if header.cluster_id.is_empty() {
            String::new()
        } else {
            format!("{} {}", header.cluster_id, self.endpoints.job())
        };
        Ok(MutableStates { cluster, applied_index: header.applied_index, states })
    }

    async fn worker(&self, address: &str) -> Result<WorkerClient<Channel>, String> {
        Ok(WorkerClient::new(self.peers.channel(address).await?))
    }
}

fn scheduler(channel: Channel) -> SchedulerClient<Channel> {
    SchedulerClient::new(channel).max_decoding_message_size(TOLD_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::{mpsc, watch};
    use tripod_dial::Allow;

    use super::*;
    use crate::config::Config;
    use crate::delivery::{Deliveries, Rules};
    use crate::ids::StoreId;
    use crate::relay::Followers;
    use crate::shelf::{Limits, Report, Shelf};

    #[tokio::test]
    async fn an_object_that_is_made_is_reported_and_read_as_it_was_made() {
        let (sender, mut reports) = mpsc::unbounded_channel();
        let limits = Limits { capacity_bytes: 1 << 20, inline_bytes_max: 100, anew: Duration::ZERO };
        let shelf = Shelf::new(limits, Arc::default(), None, sender);
        let rules =
            Rules { transfers_max: 1, stall: Duration::from_secs(1), patience: Duration::from_secs(1) };
        let peers = Arc::new(Peers::new(Allow::Own));
        let deliveries = Deliveries::new(Arc::clone(&shelf), Arc::clone(&peers), rules, "here".to_owned());
        let followers = Followers::default();
        let incarnation = Arc::new(Incarnation { id: StoreId(1), shelf, deliveries, followers });
        let current = watch::Sender::new(Some(incarnation));
        let config = Config::new(vec!["127.0.0.1:1".to_owned()], "/nowhere".into());
        let endpoints = Arc::new(Endpoints::new(&config).expect("an address"));
        let callers = Arc::new(Callers::new(Allow::Own, Arc::clone(&endpoints)));
        let chunks = Chunks::new(current.subscribe(), callers, endpoints, peers, "here:1".into());
        for (object, len) in [(1, 10), (2, 5_000)] {
            assert_eq!(chunks.whereabouts(object), Whereabouts::Absent);
            let pieces = vec![Bytes::from(vec![0; 64]), Bytes::from(vec![7; len])];
            for _ in 0..2 {
                chunks.make(object, pieces.clone(), 64).await.expect("made");
            }
            assert_eq!(chunks.whereabouts(object), Whereabouts::Here);
            let read = chunks.object(object).await.expect("here");
            assert_eq!((read.bytes, read.metadata_offset), (pieces.concat().into(), 64));
            let report = reports.recv().await.expect("a report");
            assert_eq!(report, Report::Ready { object: ObjectId(object), run: None });
        }
        let usage = chunks.usage();
        assert_eq!((usage.objects, usage.workers, usage.capacity_bytes), (2, 0, 1 << 20));
        let large = chunks.make(3, vec![Bytes::from(vec![0; 2 << 20])], 64).await;
        assert!(matches!(large, Err(ObjectError::NoRoom(_))), "{large:?}");
        current.send_replace(None);
        assert!(matches!(chunks.object(1).await, Err(ObjectError::Unavailable(_))));
    }
}
