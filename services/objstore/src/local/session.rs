//! One process's connection to the store: what it asks, what it writes, what it holds.

use std::collections::HashMap;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use prost::Message as _;
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tonic::Code;
use tripod_proto::tripod::v1::local_reply::Told;
use tripod_proto::tripod::v1::local_request::Ask;
use tripod_proto::tripod::v1::{
    LocalCreate, LocalGet, LocalHello, LocalObject, LocalPut, LocalReply, LocalRequest, LocalRun, LocalSeal,
    LocalWelcome,
};

use super::answer::{Answer, get_refused, not_writing, seal_refused, write_refused};
use super::outgoing::{self, Outgoing, Passed};
use super::relayed::{self, Relay};
use super::untold::Untold;
use super::{VERSION, frame};
use crate::ids::{ObjectId, Run};
use crate::incarnation::Incarnation;
use crate::made::{Made, Teller};
use crate::relay::Nodes;
use crate::shelf::{GetError, ReserveError, SealFailed, Writer};
use crate::value::Value;

/// Bytes of a request besides an object's.
const OVERHEAD_BYTES: usize = 256;
/// Replies that wait to be written; a process that does not read is not read from either.
const REPLIES_MAX: usize = 1024;
/// Requests of one process that wait for something.
const WAITING_MAX: usize = 65_536;

/// Serves one connection until it ends. Whatever it was writing is given up, and what it holds is released.
pub(crate) async fn serve(
    stream: UnixStream,
    incarnation: Arc<Incarnation>,
    address: Arc<str>,
    nodes: Arc<Nodes>,
) {
    let ended = match converse(&stream, incarnation, address).await {
        Ok(Some((relay, buffer))) => relayed::carry(&stream, buffer, relay, &nodes).await,
        ended => ended.map(drop),
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a process of this machine was disconnected");
    }
}

/// Answers requests until the end, or until the connection is to carry something else: what, and what was read of it.
async fn converse(
    stream: &UnixStream,
    incarnation: Arc<Incarnation>,
    address: Arc<str>,
) -> Result<Option<(Relay, BytesMut)>, Broken> {
    let (replies, queue) = mpsc::channel(REPLIES_MAX);
    let mut writing = pin!(outgoing::write_all(stream, queue));
    let mut session = Session {
        untold: Untold::new(Arc::clone(&incarnation.shelf)),
        incarnation,
        address,
        replies,
        greeted: None,
        relay: None,
        writers: HashMap::new(),
        held: HashMap::new(),
        waiting: JoinSet::new(),
        gets: HashMap::new(),
        gets_begun: 0,
    };
    let mut buffer = BytesMut::new();
    tokio::select! {
        read = session.run(stream, &mut buffer) => read?,
        written = &mut writing => return written.map(|()| None),
    }
    let relay = session.relay.take();
    drop(session);
    if relay.is_some() {
        // What was answered before is written first.
        writing.await?;
    }
    Ok(relay.map(|relay| (relay, buffer)))
}

struct Session {
    incarnation: Arc<Incarnation>,
    /// What the store is known as to others.
    address: Arc<str>,
    replies: mpsc::Sender<Outgoing>,
    /// The hello, once it has come.
    greeted: Option<LocalHello>,
    /// What the connection is to carry instead, once that was asked for.
    relay: Option<Relay>,
    writers: HashMap<ObjectId, Writer>,
    untold: Untold,
    /// Objects passed by descriptor, and how often.
    held: HashMap<ObjectId, (u64, Arc<Value>)>,
    waiting: JoinSet<Done>,
    /// Gets that wait, by their tags; with the number of each, since a tag may be used again.
    gets: HashMap<u64, (u64, AbortHandle)>,
    gets_begun: u64,
}

/// What came of a request that had to wait.
enum Done {
    Get { tag: u64, number: u64, id: ObjectId, got: Result<Arc<Value>, Answer> },
    Created { tag: u64, id: ObjectId, created: Result<Writer, Answer> },
    Put { tag: u64, id: ObjectId, made: Made, put: Result<(), Answer> },
    Sealed { tag: u64, id: ObjectId, made: Made, writer: Writer, sealed: Result<(), SealFailed> },
}

/// The connection is to end.
type Broken = io::Error;

impl Session {
    /// Runs until the end, or until the connection is for something else; `buffer` has what was read of that.
    async fn run(&mut self, stream: &UnixStream, buffer: &mut BytesMut) -> Result<(), Broken> {
        let inline_max = self.incarnation.shelf.limits().inline_bytes_max;
        let frame_max = usize::try_from(inline_max).map_err(io::Error::other)? + OVERHEAD_BYTES;
        loop {
            while let Some(request) = frame::take(buffer, frame_max).map_err(io::Error::other)? {
                let request = LocalRequest::decode(request).map_err(io::Error::other)?;
                self.asked(request).await?;
                if self.relay.is_some() {
                    return Ok(());
                }
            }
            tokio::select! {
                Some(done) = self.waiting.join_next() => match done {
                    Ok(done) => self.done(done).await?,
                    // A get that was cancelled; it was answered then.
                    Err(error) if error.is_cancelled() => {}
                    Err(error) => return Err(io::Error::other(error)),
                },
                () = self.untold.due() => self.untold.tell_due(),
                readable = stream.readable() => {
                    readable?;
                    buffer.reserve(4096);
                    match stream.try_read_buf(buffer) {
                        Ok(0) => return Ok(()),
                        Ok(_) => {}
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        Err(error) => return Err(error),
                    }
                }
            }
        }
    }

    async fn asked(&mut self, request: LocalRequest) -> Result<(), Broken> {
        let tag = request.tag;
        let Some(ask) = request.ask else {
            return self
                .refuse(tag, Answer::new(Code::InvalidArgument, "the request asks for nothing known"))
                .await;
        };
        if self.greeted.is_none() && !matches!(ask, Ask::Hello(_)) {
            return self
                .refuse(tag, Answer::new(Code::InvalidArgument, "a connection begins with a hello"))
                .await;
        }
        if self.waiting.len() >= WAITING_MAX {
            let text = format!("{WAITING_MAX} requests of this connection wait already");
            return self.refuse(tag, Answer::new(Code::ResourceExhausted, text)).await;
        }
        match ask {
            Ask::Hello(hello) => self.hello(tag, hello).await,
            Ask::Put(put) => self.put(tag, put).await,
            Ask::Create(create) => self.create(tag, create).await,
            Ask::Seal(seal) => self.seal(tag, &seal).await,
            Ask::Abort(abort) => {
                let id = ObjectId(abort.objectid);
                let aborted = self.writers.remove(&id).map(drop).ok_or_else(|| not_writing(id));
                self.answer(tag, aborted).await
            }
            Ask::Get(get) => self.get(tag, &get).await,
            Ask::Cancel(cancel) => self.cancel(tag, cancel.get_tag).await,
            Ask::Release(release) => {
                let released = self.release(ObjectId(release.objectid));
                self.answer(tag, released).await
            }
            Ask::Batches(batches) => {
                self.relay = Some(Relay::Batches(batches));
                Ok(())
            }
            Ask::Orders(_) => self.orders(tag).await,
        }
    }

    async fn hello(&mut self, tag: u64, hello: LocalHello) -> Result<(), Broken> {
        if hello.version != VERSION {
            let text = format!(
                "version {} of the protocol is not known; this store speaks {VERSION}",
                hello.version
            );
            return self.refuse(tag, Answer::new(Code::InvalidArgument, text)).await;
        }
        self.greeted = Some(hello);
        let limits = self.incarnation.shelf.limits();
        let welcome = LocalWelcome {
            objstoreid: self.incarnation.id.0,
            objstore_address: self.address.to_string(),
            inline_bytes_max: limits.inline_bytes_max,
            capacity_bytes: limits.capacity_bytes,
            relays: true,
        };
        self.tell(tag, Some(Told::Welcome(welcome)), Passed::Nothing).await
    }

    async fn put(&mut self, tag: u64, put: LocalPut) -> Result<(), Broken> {
        let inline_max = self.incarnation.shelf.limits().inline_bytes_max;
        if put.data.len() as u64 > inline_max {
            let text = format!("objects above {inline_max} bytes are created, written and sealed");
            return self.refuse(tag, Answer::new(Code::InvalidArgument, text)).await;
        }
        let shelf = Arc::clone(&self.incarnation.shelf);
        let (id, made) = (ObjectId(put.objectid), made_by(put.run, put.told_by_maker));
        let work = async move {
            // A copy, so that a small object does not keep a whole buffer of what was read alive.
            let data = Bytes::copy_from_slice(&put.data);
            shelf.put(id, data, put.metadata_offset, made).await.map_err(|error| write_refused(&error))
        };
        self.begin(async move { Done::Put { tag, id, made, put: work.await } }).await
    }

    async fn create(&mut self, tag: u64, create: LocalCreate) -> Result<(), Broken> {
        let shelf = Arc::clone(&self.incarnation.shelf);
        let id = ObjectId(create.objectid);
        let work = async move {
            let created = shelf.create(id, create.size_bytes).await.map_err(|error| write_refused(&error));
            Done::Created { tag, id, created }
        };
        self.begin(work).await
    }

    /// Does the work at once if it need not wait, so that the common case costs no task.
    async fn begin(&mut self, work: impl Future<Output = Done> + Send + 'static) -> Result<(), Broken> {
        let mut work = Box::pin(work);
        // The waker is of no use: if this is not the end, a task asks again with its own.
        let now = work.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        match now {
            Poll::Ready(done) => self.done(done).await,
            Poll::Pending => {
                _ = self.waiting.spawn(work);
                Ok(())
            }
        }
    }

    async fn seal(&mut self, tag: u64, seal: &LocalSeal) -> Result<(), Broken> {
        let id = ObjectId(seal.objectid);
        let Some(mut writer) = self.writers.remove(&id) else {
            return self.refuse(tag, not_writing(id)).await;
        };
        let (metadata_offset, made) = (seal.metadata_offset, made_by(seal.run, seal.told_by_maker));
        let work = async move {
            let sealed = writer.seal_soon(metadata_offset, made).await;
            Done::Sealed { tag, id, made, writer, sealed }
        };
        self.begin(work).await
    }

    async fn get(&mut self, tag: u64, get: &LocalGet) -> Result<(), Broken> {
        let id = ObjectId(get.objectid);
        let shelf = Arc::clone(&self.incarnation.shelf);
        let now = shelf.get_now(id);
        if let Some(decided) = now.filter(|decided| !matches!(decided, Err(GetError::Deallocated(_)))) {
            return self.decided(tag, id, decided.map_err(|error| get_refused(&error))).await;
        }
        if self.gets.contains_key(&tag) {
            let text = format!("another get with the tag {tag} waits");
            return self.refuse(tag, Answer::new(Code::InvalidArgument, text)).await;
        }
        let timeout_ms = get.timeout_ms;
        self.gets_begun += 1;
        let number = self.gets_begun;
        let work = async move {
            let got = async { shelf.get_or_anew(id).await.map_err(|error| get_refused(&error)) };
            let got = match timeout_ms {
                0 => got.await,
                _ => {
                    tokio::time::timeout(Duration::from_millis(timeout_ms), got).await.unwrap_or_else(|_| {
                        let text = format!("object {id} has not come within {timeout_ms} ms");
                        Err(Answer::new(Code::DeadlineExceeded, text))
                    })
                }
            };
            Done::Get { tag, number, id, got }
        };
        let handle = self.waiting.spawn(work);
        self.gets.insert(tag, (number, handle));
        Ok(())
    }

    async fn cancel(&mut self, tag: u64, get_tag: u64) -> Result<(), Broken> {
        if let Some((_, get)) = self.gets.remove(&get_tag) {
            get.abort();
            self.refuse(get_tag, Answer::new(Code::Cancelled, "the get was cancelled")).await?;
        }
        self.answer(tag, Ok(())).await
    }

    async fn orders(&mut self, tag: u64) -> Result<(), Broken> {
        let Some(worker) = self.greeted.as_ref().and_then(|hello| hello.workerid) else {
            let text = "the hello names no worker; next: name the one that takes orders";
            return self.refuse(tag, Answer::new(Code::InvalidArgument, text)).await;
        };
        self.relay = Some(Relay::Orders(self.incarnation.followers.follow(worker)));
        self.answer(tag, Ok(())).await
    }

    fn release(&mut self, id: ObjectId) -> Result<(), Answer> {
        let Some((count, _)) = self.held.get_mut(&id) else {
            return Err(Answer::new(Code::NotFound, format!("this connection does not hold object {id}")));
        };
        *count -= 1;
        if *count == 0 {
            self.held.remove(&id);
        }
        Ok(())
    }

    async fn done(&mut self, done: Done) -> Result<(), Broken> {
        match done {
            Done::Put { tag, id, made, put } => {
                if put.is_ok() {
                    self.untold.note(id, made);
                }
                self.answer(tag, put).await
            }
            Done::Sealed { tag, id, made, writer, sealed } => {
                if sealed.is_ok() {
                    self.untold.note(id, made);
                }
                if let Err(SealFailed::MappingLeft(_)) = &sealed {
                    // The process may unmap it and try again.
                    self.writers.insert(id, writer);
                }
                self.answer(tag, sealed.map_err(|error| seal_refused(&error))).await
            }
            Done::Created { tag, id, created } => match created {
                Ok(writer) => self.created(tag, id, writer).await,
                Err(answer) => self.refuse(tag, answer).await,
            },
            Done::Get { tag, number, id, got } => {
                // One that was cancelled when it was just done has been answered.
                if self.gets.get(&tag).is_none_or(|(current, _)| *current != number) {
                    return Ok(());
                }
                self.gets.remove(&tag);
                self.decided(tag, id, got).await
            }
        }
    }

    async fn decided(
        &mut self,
        tag: u64,
        id: ObjectId,
        got: Result<Arc<Value>, Answer>,
    ) -> Result<(), Broken> {
        match got {
            Ok(value) => self.got(tag, id, value).await,
            Err(answer) => self.refuse(tag, answer).await,
        }
    }

    async fn created(&mut self, tag: u64, id: ObjectId, writer: Writer) -> Result<(), Broken> {
        let size_bytes = writer.size_bytes();
        let file = match writer.file().map(std::fs::File::try_clone) {
            Some(Ok(file)) => file,
            Some(Err(error)) => {
                let text = ReserveError::System(error.to_string()).to_string();
                return self.refuse(tag, Answer::new(Code::ResourceExhausted, text)).await;
            }
            None => return self.refuse(tag, Answer::new(Code::Internal, "no memory was made")).await,
        };
        self.writers.insert(id, writer);
        let object = LocalObject { size_bytes, metadata_offset: 0, data: Bytes::new(), descriptor: true };
        self.tell(tag, Some(Told::Object(object)), Passed::Memory(file)).await
    }

    async fn got(&mut self, tag: u64, id: ObjectId, value: Arc<Value>) -> Result<(), Broken> {
        let mut object = LocalObject {
            size_bytes: value.size_bytes,
            metadata_offset: value.metadata_offset,
            data: Bytes::new(),
            descriptor: false,
        };
        let passed = if let Some(bytes) = value.inline_bytes() {
            object.data = bytes.clone();
            Passed::Nothing
        } else {
            object.descriptor = true;
            let held = self.held.entry(id).or_insert_with(|| (0, Arc::clone(&value)));
            held.0 += 1;
            // An object may have come again under its id; the newer one is what later gets are about.
            held.1 = Arc::clone(&value);
            Passed::Object(value)
        };
        self.tell(tag, Some(Told::Object(object)), passed).await
    }

    async fn answer(&mut self, tag: u64, answer: Result<(), Answer>) -> Result<(), Broken> {
        match answer {
            Ok(()) => self.tell(tag, None, Passed::Nothing).await,
            Err(answer) => self.refuse(tag, answer).await,
        }
    }

    async fn refuse(&mut self, tag: u64, answer: Answer) -> Result<(), Broken> {
        let reply = LocalReply { tag, code: answer.code as i32, text: answer.text, told: None };
        self.send(Outgoing { reply, passed: Passed::Nothing }).await
    }

    async fn tell(&mut self, tag: u64, told: Option<Told>, passed: Passed) -> Result<(), Broken> {
        let reply = LocalReply { tag, code: Code::Ok as i32, text: String::new(), told };
        self.send(Outgoing { reply, passed }).await
    }

    async fn send(&mut self, outgoing: Outgoing) -> Result<(), Broken> {
        self.replies.send(outgoing).await.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
    }
}

fn made_by(run: Option<LocalRun>, told_by_maker: bool) -> Made {
    let run = run.map(|run| Run { operation: run.operationid, attempt: run.attempt });
    Made { run, teller: if told_by_maker { Teller::Maker } else { Teller::Store } }
}
