//! A process's connection to the object store of its machine.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};
use tonic::Code;
use tripod_local::{check_listener, check_socket};
use tripod_proto::tripod::v1::local_reply::Told;
use tripod_proto::tripod::v1::local_request::Ask;
use tripod_proto::tripod::v1::{
    LocalAbort, LocalCancel, LocalCreate, LocalGet, LocalHello, LocalPut, LocalRelease, LocalReply,
    LocalRequest, LocalRun,
};

use super::incoming::Incoming;
use super::object::{Draft, LocalError, Object};
use super::{VERSION, frame, outgoing};
use crate::ids::{ObjectId, Run, StoreId};
use crate::made::{Made, Teller};

/// What the store says when a process connects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Welcome {
    pub store: StoreId,
    /// Where other stores reach it.
    pub address: String,
    /// Objects up to this size can be [`Connection::put`].
    pub inline_bytes_max: u64,
    pub capacity_bytes: u64,
}

/// A connection to the object store of this machine. Many calls can be under way at a time; a call that is dropped
/// is cancelled. Cheap to clone; the connection ends with its last clone and the last object got through it.
#[derive(Debug, Clone)]
pub struct Connection {
    sender: Sender,
    welcome: Arc<Welcome>,
}

/// The answer of one request.
type Answer = (Told, Option<OwnedFd>);

#[derive(Debug)]
struct Asked {
    answer: oneshot::Sender<Result<Option<Answer>, LocalError>>,
    /// What undoes it, if it was dropped when its descriptor comes.
    undo: Option<Ask>,
}

/// Requests that are not answered yet, by tag; `None` after the end.
type Pending = Arc<Mutex<Option<HashMap<u64, Asked>>>>;

/// The way to the store, shared by everything that came through one connection.
#[derive(Debug, Clone)]
pub(super) struct Sender {
    pending: Pending,
    requests: mpsc::UnboundedSender<LocalRequest>,
    tags: Arc<std::sync::atomic::AtomicU64>,
}

/// Cancels a get that is dropped.
struct Cancel<'a> {
    sender: &'a Sender,
    tag: u64,
    answered: bool,
}

impl Drop for Cancel<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.sender.tell(Ask::Cancel(LocalCancel { get_tag: self.tag }));
        }
    }
}

impl Sender {
    /// Sends a request of which nobody waits for the answer.
    pub(super) fn tell(&self, ask: Ask) {
        // After the connection's end the store has let everything go by itself.
        _ = self.requests.send(LocalRequest { tag: self.tag(), ask: Some(ask) });
    }

    pub(super) async fn ask(&self, ask: Ask) -> Result<Option<Answer>, LocalError> {
        let ended = || LocalError::Disconnected("the store closed it".into());
        let (answer, answered) = oneshot::channel();
        let undo = match &ask {
            Ask::Get(get) => Some(Ask::Release(LocalRelease { objectid: get.objectid })),
            Ask::Create(create) => Some(Ask::Abort(LocalAbort { objectid: create.objectid })),
            _ => None,
        };
        let cancels = matches!(ask, Ask::Get(_));
        let tag = self.tag();
        self.pending.lock().as_mut().ok_or_else(ended)?.insert(tag, Asked { answer, undo });
        self.requests.send(LocalRequest { tag, ask: Some(ask) }).map_err(|_| ended())?;
        let mut cancel = Cancel { sender: self, tag, answered: !cancels };
        let answer = answered.await.map_err(|_| ended())?;
        cancel.answered = true;
        answer
    }

    fn tag(&self) -> u64 {
        self.tags.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
    }

    /// Hands a reply to who asked for it.
    fn answered(&self, reply: LocalReply, descriptor: Option<OwnedFd>) {
        let Some(asked) = self.pending.lock().as_mut().and_then(|pending| pending.remove(&reply.tag)) else {
            return;
        };
        let held = descriptor.is_some();
        let code = Code::from_i32(reply.code);
        let answer = match code {
            Code::Ok => Ok(reply.told.map(|told| (told, descriptor))),
            code => Err(LocalError::Refused { code, text: reply.text }),
        };
        if asked.answer.send(answer).is_err()
            && held
            && let Some(undo) = asked.undo
        {
            // The call was dropped when its answer was on its way already.
            self.tell(undo);
        }
    }

    fn ended(&self, why: &str) {
        for (_, asked) in self.pending.lock().take().unwrap_or_default() {
            // Who does not wait any more need not know.
            _ = asked.answer.send(Err(LocalError::Disconnected(why.to_owned())));
        }
    }
}

impl Connection {
    /// Connects to the socket that [`ObjStoreInfo`](tripod_proto::ray::ObjStoreInfoReply) tells.
    ///
    /// # Errors
    /// [`LocalError`].
    pub async fn open(socket: &Path, worker: Option<u64>) -> Result<Self, LocalError> {
        let disconnected =
            |error: io::Error| LocalError::Disconnected(format!("{}: {error}", socket.display()));
        // Who listens there is believed about every object. The path was told by whoever serves the store's address.
        check_socket(socket).map_err(|refused| disconnected(refused.into()))?;
        let stream = UnixStream::connect(socket).await.map_err(disconnected)?;
        check_listener(&stream).map_err(disconnected)?;
        let (requests, queue) = mpsc::unbounded_channel();
        let pending = Arc::new(Mutex::new(Some(HashMap::new())));
        let sender = Sender { pending: Arc::clone(&pending), requests, tags: Arc::default() };
        tokio::spawn(carry(stream, queue, pending, sender.requests.downgrade(), Arc::clone(&sender.tags)));
        let hello = LocalHello { version: VERSION, workerid: worker };
        let Some((Told::Welcome(welcome), _)) = sender.ask(Ask::Hello(hello)).await? else {
            return Err(LocalError::Unexpected);
        };
        let welcome = Welcome {
            store: StoreId(welcome.objstoreid),
            address: welcome.objstore_address,
            inline_bytes_max: welcome.inline_bytes_max,
            capacity_bytes: welcome.capacity_bytes,
        };
        Ok(Self { sender, welcome: Arc::new(welcome) })
    }

    /// What the store said of itself.
    #[must_use]
    pub fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    /// Stores a whole object, of any size: small ones travel in the request, others are written to shared memory.
    /// Afterwards it can be got here; the scheduler is told as `made` says.
    ///
    /// # Errors
    /// [`LocalError`].
    pub async fn put(
        &self,
        id: ObjectId,
        data: Bytes,
        metadata_offset: u64,
        made: impl Into<Made>,
    ) -> Result<(), LocalError> {
        let made = made.into();
        let size_bytes = data.len() as u64;
        if size_bytes > self.welcome.inline_bytes_max {
            let mut draft = self.create(id, size_bytes).await?;
            draft.write_at(&data, 0)?;
            return draft.seal(metadata_offset, made).await;
        }
        let put = LocalPut {
            objectid: id.0,
            data,
            metadata_offset,
            run: run_of(made.run),
            told_by_maker: made.teller == Teller::Maker,
        };
        self.sender.ask(Ask::Put(put)).await.map(drop)
    }

    /// Memory for an object that this process writes.
    ///
    /// # Errors
    /// [`LocalError`].
    pub async fn create(&self, id: ObjectId, size_bytes: u64) -> Result<Draft, LocalError> {
        let create = LocalCreate { objectid: id.0, size_bytes };
        let answer = self.sender.ask(Ask::Create(create)).await?;
        let Some((Told::Object(_), Some(descriptor))) = answer else { return Err(LocalError::Unexpected) };
        Ok(Draft::new(id, size_bytes, File::from(descriptor), self.sender.clone()))
    }

    /// Waits until the object is here. The scheduler is not asked to bring it: that is the caller's to do.
    ///
    /// # Errors
    /// [`LocalError`]; `DeadlineExceeded` after `timeout`.
    pub async fn get(&self, id: ObjectId, timeout: Option<Duration>) -> Result<Object, LocalError> {
        // 0 means for ever to the store, so no time at all is the least that it knows.
        let at_least_1 = |timeout: Duration| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX).max(1);
        let get = LocalGet { objectid: id.0, timeout_ms: timeout.map_or(0, at_least_1) };
        let answer = self.sender.ask(Ask::Get(get)).await?;
        let Some((Told::Object(object), descriptor)) = answer else { return Err(LocalError::Unexpected) };
        let (size_bytes, metadata_offset) = (object.size_bytes, object.metadata_offset);
        Ok(match descriptor {
            None => Object::inline(id, object.data, metadata_offset),
            Some(descriptor) => {
                Object::held(id, File::from(descriptor), size_bytes, metadata_offset, self.sender.clone())
            }
        })
    }
}

/// Carries requests and replies until either side ends.
async fn carry(
    stream: UnixStream,
    mut queue: mpsc::UnboundedReceiver<LocalRequest>,
    pending: Pending,
    requests: mpsc::WeakUnboundedSender<LocalRequest>,
    tags: Arc<std::sync::atomic::AtomicU64>,
) {
    let write = async {
        let mut buffer = BytesMut::new();
        while let Some(request) = queue.recv().await {
            frame::put(&request, &mut buffer);
            while let Ok(request) = queue.try_recv() {
                frame::put(&request, &mut buffer);
            }
            outgoing::write(&stream, &mut buffer).await?;
        }
        Ok(())
    };
    let read = async {
        let mut incoming = Incoming::default();
        while let Some((reply, descriptor)) = incoming.next(&stream).await? {
            // Only for as long as somebody holds the connection.
            let Some(requests) = requests.upgrade() else { return Ok(()) };
            let sender = Sender { pending: Arc::clone(&pending), requests, tags: Arc::clone(&tags) };
            sender.answered(reply, descriptor);
        }
        Ok(())
    };
    let ended: io::Result<()> = tokio::select! {
        ended = write => ended,
        ended = read => ended,
    };
    let why = ended.err().map_or_else(|| "the store closed it".to_owned(), |error| error.to_string());
    let (closed, _) = mpsc::unbounded_channel();
    Sender { pending, requests: closed, tags }.ended(&why);
}

pub(super) fn run_of(run: Option<Run>) -> Option<LocalRun> {
    run.map(|run| LocalRun { operationid: run.operation, attempt: run.attempt })
}
