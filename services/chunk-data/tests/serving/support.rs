//! Played stores with real servers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Channel, Server};
use tonic::{Extensions, Status, Streaming};
use tripod_chunk_data::mutable::Engine;
use tripod_chunk_data::{
    ChunkData, MESSAGE_BYTES_MAX, MutableStates, Object, ObjectError, Store, Sweeper, Usage, Whereabouts,
    Wish,
};
use tripod_proto::mars::v1::worker_client::WorkerClient;
use tripod_proto::mars::v1::worker_server::WorkerServer;
use tripod_proto::mars::v1::{
    ChunkData as Message, ChunkMeta, ChunkPlace, Compression, ElementType, GetChunksDataRequest,
    GetWorkerStatusRequest, MutableChunk, MutableInfo, MutableState, Scalar, scalar,
};

/// What the scheduler says, to all stores.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) chunks: BTreeMap<String, (Option<u64>, Vec<String>)>,
    pub(crate) mutables: BTreeMap<String, MutableInfo>,
    pub(crate) asked: usize,
    /// Who is refused whatever it wants to have removed.
    pub(crate) no_orders: bool,
    /// What it says whose word its answers about tileables are.
    pub(crate) cluster: String,
    /// It has applied nothing that made a tileable.
    pub(crate) is_behind: bool,
    /// It does not answer how far tileables are.
    pub(crate) is_away: bool,
}

pub(crate) type Scheduler = Arc<Mutex<Facts>>;

/// The objects of one store.
#[derive(Debug)]
struct Played {
    address: String,
    scheduler: Scheduler,
    objects: watch::Sender<BTreeMap<u64, (Bytes, u64)>>,
    coming: Arc<Mutex<BTreeSet<u64>>>,
}

#[tonic::async_trait]
impl Store for Played {
    fn address(&self) -> &str {
        &self.address
    }

    async fn admit(&self, _: &Extensions, wish: Wish) -> Result<(), Status> {
        if wish == Wish::Order && self.scheduler.lock().unwrap().no_orders {
            return Err(Status::permission_denied("a stranger"));
        }
        Ok(())
    }

    fn whereabouts(&self, object: u64) -> Whereabouts {
        if self.objects.borrow().contains_key(&object) {
            Whereabouts::Here
        } else if self.coming.lock().unwrap().contains(&object) {
            Whereabouts::Coming
        } else {
            Whereabouts::Absent
        }
    }

    async fn object(&self, object: u64) -> Result<Object, ObjectError> {
        let mut objects = self.objects.subscribe();
        let objects = objects.wait_for(|objects| objects.contains_key(&object)).await;
        let objects = objects.map_err(|_| ObjectError::Unavailable("the store ends".to_owned()))?;
        let (bytes, metadata_offset) = objects[&object].clone();
        Ok(Object { bytes, metadata_offset, keep: Box::new(()) })
    }

    async fn make(&self, object: u64, pieces: Vec<Bytes>, metadata_offset: u64) -> Result<(), ObjectError> {
        self.objects.send_modify(|objects| {
            objects.insert(object, (pieces.concat().into(), metadata_offset));
        });
        Ok(())
    }

    fn usage(&self) -> Usage {
        let objects = self.objects.borrow().len();
        Usage { workers: 3, used_bytes: 10, capacity_bytes: 100, spilled_bytes: 5, objects }
    }

    async fn chunk_metas(&self, session: &str, keys: Vec<String>) -> Result<Vec<ChunkMeta>, Status> {
        let mut facts = self.scheduler.lock().unwrap();
        facts.asked += keys.len();
        if session != "s" {
            return Err(Status::not_found(format!("there is no session {session}")));
        }
        let of = |key: String| match facts.chunks.get(&key) {
            None => ChunkMeta { key, ..ChunkMeta::default() },
            Some((object_id, workers)) => ChunkMeta {
                found: true,
                key,
                object_id: *object_id,
                workers: workers
                    .iter()
                    .map(|worker_id| ChunkPlace { worker_id: worker_id.clone(), ..ChunkPlace::default() })
                    .collect(),
                ..ChunkMeta::default()
            },
        };
        Ok(keys.into_iter().map(of).collect())
    }

    async fn mutable_of(&self, _: &str, key: &str) -> Result<MutableInfo, Status> {
        let facts = self.scheduler.lock().unwrap();
        facts.mutables.get(key).cloned().ok_or_else(|| Status::not_found("there is no such chunk"))
    }

    async fn mutable_states(&self, tileables: Vec<u64>) -> Result<MutableStates, Status> {
        let facts = self.scheduler.lock().unwrap();
        if facts.is_away {
            return Err(Status::unavailable("it is away"));
        }
        let known: BTreeMap<u64, MutableState> =
            facts.mutables.values().map(|info| (info.id, info.state())).collect();
        let state = |tileable: &u64| known.get(tileable).copied().unwrap_or(MutableState::Deleted);
        Ok(MutableStates {
            cluster: facts.cluster.clone(),
            applied_index: if facts.is_behind { 0 } else { u64::MAX },
            states: tileables.iter().map(state).collect(),
        })
    }

    async fn worker(&self, address: &str) -> Result<WorkerClient<Channel>, String> {
        WorkerClient::connect(format!("http://{address}")).await.map_err(|error| error.to_string())
    }
}

/// A store that serves.
pub(crate) struct Served {
    pub(crate) address: String,
    pub(crate) client: WorkerClient<Channel>,
    store: Arc<Played>,
    engine: Option<Arc<Engine>>,
    service: ChunkData,
    server: JoinHandle<()>,
}

impl Served {
    pub(crate) async fn start(scheduler: &Scheduler) -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap(), scheduler, None, 0).await
    }

    pub(crate) async fn with_mutable(scheduler: &Scheduler, directory: &Path, quota_bytes: u64) -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap(), scheduler, Some(directory), quota_bytes).await
    }

    pub(crate) async fn start_at(
        at: SocketAddr,
        scheduler: &Scheduler,
        directory: Option<&Path>,
        quota_bytes: u64,
    ) -> Self {
        let listener = TcpListener::bind(at).await.expect("a port");
        let address = listener.local_addr().expect("bound").to_string();
        let store = Arc::new(Played {
            address: address.clone(),
            scheduler: Arc::clone(scheduler),
            objects: watch::Sender::default(),
            coming: Arc::default(),
        });
        let engine = directory.map(|path| Arc::new(Engine::open(path, quota_bytes).expect("opened")));
        let service = ChunkData::new(Arc::<Played>::clone(&store), engine.clone());
        let worker = WorkerServer::new(service.clone()).max_decoding_message_size(MESSAGE_BYTES_MAX);
        let incoming = TcpListenerStream::new(listener);
        let server = tokio::spawn(async move {
            drop(Server::builder().add_service(worker).serve_with_incoming(incoming).await);
        });
        let client = WorkerClient::connect(format!("http://{address}")).await.expect("connected");
        Self { address, client, store, engine, service, server }
    }

    pub(crate) fn sweeper(&self) -> Sweeper {
        self.service.sweeper()
    }

    /// Chunks and bytes of what is mutable, as it says.
    pub(crate) async fn kept(&mut self) -> (u64, u64) {
        let objects = self.store.objects.borrow().len() as u64;
        let asked = GetWorkerStatusRequest { session_id: "s".to_owned() };
        let told = self.client.get_worker_status(asked).await.expect("told").into_inner();
        // Five bytes are those of objects on disk.
        (told.chunks - objects, told.disk_used_bytes - 5)
    }

    /// Ends it, so that another one can have its address and its directory.
    pub(crate) async fn stop(self) -> SocketAddr {
        self.server.abort();
        drop(self.server.await);
        if let Some(engine) = &self.engine {
            engine.close();
        }
        self.address.parse().expect("an address")
    }

    /// A chunk as an object whose description stands behind 64 bytes of something else.
    pub(crate) fn put(&self, object: u64, chunk: &tripod_chunk_data::layout::Chunk) {
        let image = chunk.image().concat();
        self.store.objects.send_modify(|objects| {
            objects.insert(object, (image.into(), 0));
        });
    }

    pub(crate) fn put_bytes(&self, object: u64, bytes: Bytes) {
        self.store.objects.send_modify(|objects| {
            objects.insert(object, (bytes, 0));
        });
    }

    pub(crate) fn expect(&self, object: u64) {
        self.store.coming.lock().unwrap().insert(object);
    }

    pub(crate) async fn get(&mut self, request: GetChunksDataRequest) -> Result<Vec<Message>, Status> {
        collect(self.client.get_chunks_data(request).await?.into_inner()).await
    }
}

pub(crate) async fn collect(mut stream: Streaming<Message>) -> Result<Vec<Message>, Status> {
    let mut messages = Vec::new();
    while let Some(message) = stream.message().await? {
        messages.push(message);
    }
    Ok(messages)
}

pub(crate) fn request(keys: &[&str]) -> GetChunksDataRequest {
    GetChunksDataRequest {
        session_id: "s".to_owned(),
        chunk_keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        ..GetChunksDataRequest::default()
    }
}

/// The bytes of one chunk's messages, which must follow each other, or the code of its error.
pub(crate) fn bytes_of(key: &str, messages: &[Message]) -> Result<Vec<u8>, i32> {
    let mut bytes = Vec::new();
    let mut messages = (0..).zip(messages.iter().filter(|message| message.chunk_key == key)).peekable();
    while let Some((seq, message)) = messages.next() {
        if let Some(error) = &message.error {
            return Err(i32::try_from(error.code).unwrap());
        }
        assert_eq!((message.seq, message.last), (seq, messages.peek().is_none()));
        assert_eq!(message.crc32c, crc32c::crc32c(&message.bytes));
        bytes.extend_from_slice(&decompressed(message));
    }
    Ok(bytes)
}

fn decompressed(message: &Message) -> Vec<u8> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let read = match message.compression() {
        Compression::None => (&message.bytes[..]).read_to_end(&mut bytes),
        Compression::Lz4Frame => {
            lz4_flex::frame::FrameDecoder::new(&message.bytes[..]).read_to_end(&mut bytes)
        }
        Compression::Zstd => {
            ruzstd::decoding::StreamingDecoder::new(&message.bytes[..]).unwrap().read_to_end(&mut bytes)
        }
        Compression::Gzip => flate2::read::GzDecoder::new(&message.bytes[..]).read_to_end(&mut bytes),
    };
    read.expect("compressed as it says");
    bytes
}

/// What is behind the head of a file of numpy, as numbers.
pub(crate) fn numbers(npy: &[u8]) -> Vec<f64> {
    let head = 10 + usize::from(u16::from_le_bytes([npy[8], npy[9]]));
    npy[head..].chunks_exact(8).map(|word| f64::from_le_bytes(word.try_into().unwrap())).collect()
}

/// A mutable tensor of one chunk of 2 x 3 numbers, all 0.5, at these workers.
pub(crate) fn tensor(key: &str, workers: &[&str]) -> MutableInfo {
    MutableInfo {
        id: 7,
        epoch: 1,
        name: "t".to_owned(),
        chunks: vec![MutableChunk {
            key: key.to_owned(),
            shape: vec![2, 3],
            workers: workers.iter().map(|worker| (*worker).to_owned()).collect(),
            ..MutableChunk::default()
        }],
        state: MutableState::Open.into(),
        dtype: ElementType::F64.into(),
        default_values: vec![Scalar { value: Some(scalar::Value::Fraction(0.5)) }],
        ..MutableInfo::default()
    }
}
