//! A node that serves one job's port, and workers that are as real as their frames.

use std::sync::Weak;

use bytes::{Bytes, BytesMut};
use prost::Message;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tripod_dial::{Dialler, Rule};
use tripod_gateway::{FrontEnds, Gateway, JobBinding, MemoryBackend};
use tripod_lines::Lines;
use tripod_mindspore::wire::Frame as _;
use tripod_mindspore::wire::rpc0::Frame;
use tripod_mindspore::{Mindspore, PORT};
use tripod_port::{Listener, serve};
use tripod_proto::mindspore::topology as pb;
use tripod_state::ids::{LogIndex, NodeId, ServiceIncarnation, Term, TimeMs};
use tripod_state::mindspore::topology::View;
use tripod_state::{ApplyContext, Command, Envelope, Scope, job, level, session};

const PLACE: &str = "node:8400";
/// What a worker calls its scheduler.
const SCHEDULER: &[u8] = b"@node:8400";

/// One node, and one job of so many workers.
pub(crate) struct Cluster {
    pub(crate) backend: std::sync::Arc<MemoryBackend>,
    pub(crate) scope: Scope,
    lines: Lines,
    stop: oneshot::Sender<()>,
    tasks: JoinSet<()>,
}

impl Cluster {
    pub(crate) async fn of(workers: u32) -> Self {
        let (gateway, backend) = Gateway::in_memory();
        let submit = async |command| gateway.submit(command).await.unwrap().unwrap();
        submit(Command::Level(level::Command::Raise { to: level::NEWEST, heard: vec![NodeId(1)] })).await;
        let spec = job::Spec::of_tasks(workers);
        submit(Command::Job(job::Command::Create {
            name: "ms".into(),
            spec,
            service: ServiceIncarnation(7),
        }))
        .await;
        let job = backend.state().job_named("ms").unwrap();
        let mindspore = Mindspore::new(&gateway, &Dialler::new(Rule::any()));
        let front_ends = FrontEnds::of(vec![Box::new(mindspore)]);
        let served = front_ends.served(PORT, &JobBinding::Fixed(job));
        let lines = Lines::new();
        let listener = Listener::within(lines.listen(PLACE));
        let (stop, stopped) = oneshot::channel::<()>();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { serve(listener, served, async { drop(stopped.await) }).await.unwrap() });
        for (_name, background) in front_ends.background() {
            tasks.spawn(background);
        }
        Self { backend, scope: Scope { job, service: None }, lines, stop, tasks }
    }

    pub(crate) fn connect(&self) -> Client {
        Client { stream: self.lines.dial(PLACE).unwrap(), buffer: BytesMut::new() }
    }

    /// How far the dynamic cluster of the job is.
    pub(crate) fn view(&self) -> View {
        self.backend.state().topology(self.scope).unwrap()
    }

    /// Stops the port; the rest of the node goes with this value.
    pub(crate) fn stop(self) -> JoinSet<()> {
        self.stop.send(()).unwrap();
        self.tasks
    }
}

/// Puts commands into the log before what is proposed now.
pub(crate) fn before(backend: &Weak<MemoryBackend>, commands: impl IntoIterator<Item = Command>) {
    let backend = backend.upgrade().expect("alive while it is asked");
    let mut state = backend.state();
    let context = ApplyContext { index: LogIndex(1), term: Term(1), now_ms: state.now_ms() };
    for command in commands {
        state.apply(&context, Envelope { stamp: None, command }).reply.expect("nothing is against it");
    }
    backend.replace(state);
}

/// As after a long outage.
pub(crate) fn end_of_sessions() -> Command {
    Command::Session(session::Command::ExpireIdle { before_ms: TimeMs(u64::MAX) })
}

/// One connection of a worker.
pub(crate) struct Client {
    stream: DuplexStream,
    buffer: BytesMut,
}

impl Client {
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        // A node that ends the connection takes no more of it.
        let _ = self.stream.write_all(bytes).await;
    }

    /// The next frame; `None` when the node ends the connection.
    pub(crate) async fn hear(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = Frame::take(&mut self.buffer).unwrap() {
                return Some(frame);
            }
            if self.stream.read_buf(&mut self.buffer).await.unwrap_or(0) == 0 {
                assert!(self.buffer.is_empty(), "it ends within a frame");
                return None;
            }
        }
    }

    /// Says nothing more, and listens still.
    pub(crate) async fn end(&mut self) {
        self.stream.shutdown().await.expect("a connection");
    }

    pub(crate) async fn say(&mut self, name: &str, body: impl Into<Bytes>) {
        let part = |text: &[u8]| Bytes::copy_from_slice(text);
        let frame =
            Frame { name: part(name.as_bytes()), to: part(SCHEDULER), from: part(b"@"), body: body.into() };
        self.send(&frame.encode()).await;
    }

    /// What is answered: the name and the body.
    pub(crate) async fn ask(&mut self, name: &str, body: impl Into<Bytes>) -> (String, Bytes) {
        self.say(name, body).await;
        let Frame { name, to, from, body } = self.hear().await.expect("an answer");
        assert_eq!((&to[..], &from[..]), (SCHEDULER, &b"@"[..]));
        (String::from_utf8(name.to_vec()).unwrap(), body)
    }

    /// The answer to a message, which is always a success.
    async fn told<M: Message + Default>(&mut self, name: &str, message: &impl Message) -> M {
        let (told, body) = self.ask(name, message.encode_to_vec()).await;
        assert_eq!(told, "3");
        M::decode(body).unwrap()
    }

    pub(crate) async fn register(
        &mut self,
        message: &pb::RegistrationMessage,
    ) -> pb::RegistrationRespMessage {
        self.told("0", message).await
    }

    pub(crate) async fn beat(&mut self, node: &str) -> pb::HeartbeatRespMessage {
        self.told("2", &pb::HeartbeatMessage { node_id: node.into() }).await
    }

    pub(crate) async fn unregister(&mut self, node: &str) -> String {
        let message = pb::UnregistrationMessage { node_id: node.into() };
        let (name, body) = self.ask("1", message.encode_to_vec()).await;
        assert_eq!(name.as_bytes(), body, "a digit twice");
        name
    }

    pub(crate) async fn write(&mut self, name: &str, value: &str) {
        let message =
            pb::MetadataMessage { name: name.into(), value: Bytes::copy_from_slice(value.as_bytes()) };
        self.say("6", message.encode_to_vec()).await;
    }

    /// The number of the answer, and the value.
    pub(crate) async fn read(&mut self, name: &str) -> (String, Bytes) {
        self.metadata("7", name).await
    }

    /// [`Self::read`], without waiting for the answer.
    pub(crate) async fn ask_for(&mut self, name: &str) {
        let message = pb::MetadataMessage { name: name.into(), value: Bytes::new() };
        self.say("7", message.encode_to_vec()).await;
    }

    pub(crate) async fn delete(&mut self, name: &str) -> String {
        let (told, value) = self.metadata("8", name).await;
        assert_eq!(value, "");
        told
    }

    async fn metadata(&mut self, ask: &str, name: &str) -> (String, Bytes) {
        let message = pb::MetadataMessage { name: name.into(), value: Bytes::new() };
        let (told, body) = self.ask(ask, message.encode_to_vec()).await;
        let answer = pb::MetadataMessage::decode(body).unwrap();
        assert_eq!(answer.name, name);
        (told, answer.value)
    }
}

/// What a worker of 2.0 says of itself.
pub(crate) fn of_2_0(node: &str) -> pb::RegistrationMessage {
    pb::RegistrationMessage {
        node_id: node.into(),
        host_name: "vm".into(),
        role: "MS_WORKER".into(),
        ..Default::default()
    }
}

/// What a worker of 2.10 without a device says.
pub(crate) fn of_2_10(node: &str) -> pb::RegistrationMessage {
    pb::RegistrationMessage { host_ip: "127.0.0.1".into(), device_id: Some(u32::MAX), ..of_2_0(node) }
}
