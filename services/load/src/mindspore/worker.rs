//! A node of the dynamic cluster, with the two connections that each of them has.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use prost::Message;
use tripod_proto::mindspore::topology as pb;

use super::Failure;
use super::frames::Rpc0;
use super::line::{Line, within};

/// A cluster has all its nodes.
const INITIALIZED: u32 = 1;
const SUCCESS: &[u8] = b"3";

/// Which release is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// It says no address, and goes by the rank in the answer to its registration.
    V2_0,
    /// It reads its rank when all nodes are there.
    V2_10,
}

impl Dialect {
    /// The name of the answer to a read that found something.
    fn valid(self) -> &'static [u8] {
        match self {
            Self::V2_0 => b"10",
            Self::V2_10 => b"11",
        }
    }
}

/// What a node is told when it registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registered {
    pub rank: u32,
    /// Of the whole cluster.
    pub nodes: u32,
}

/// A worker.
#[derive(Debug)]
pub struct Worker {
    id: String,
    dialect: Dialect,
    addresses: Arc<[String]>,
    place: usize,
    /// For its own place in the cluster.
    control: Option<Line>,
    /// For entries.
    metadata: Option<Line>,
    limit: Duration,
}

/// One of the connections.
#[derive(Debug, Clone, Copy)]
enum Way {
    Control,
    Metadata,
}

impl Worker {
    /// One that is not connected yet, and begins at the address of that place. An answer may take `limit`.
    #[must_use]
    pub fn new(
        id: String,
        dialect: Dialect,
        (addresses, place): (Arc<[String]>, usize),
        limit: Duration,
    ) -> Self {
        Self { id, dialect, addresses, place, control: None, metadata: None, limit }
    }

    /// What it is called.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Which of the addresses is used next.
    #[must_use]
    pub fn place(&self) -> usize {
        self.place % self.addresses.len().max(1)
    }

    /// Opens both connections, as a node does at first.
    ///
    /// # Errors
    /// There is nobody.
    pub async fn connect(&mut self) -> Result<(), Failure> {
        self.line(Way::Control).await?;
        self.line(Way::Metadata).await.map(drop)
    }

    /// Asks for a place in the cluster.
    ///
    /// # Errors
    /// As any message. Asked once more, it has the same place.
    pub async fn register(&mut self) -> Result<Registered, Failure> {
        let is_new = self.dialect == Dialect::V2_10;
        let message = pb::RegistrationMessage {
            node_id: self.id.clone(),
            host_name: "played".to_owned(),
            role: "MS_WORKER".to_owned(),
            host_ip: if is_new { "127.0.0.1".to_owned() } else { String::new() },
            device_id: is_new.then_some(u32::MAX),
            ..Default::default()
        };
        let told: pb::RegistrationRespMessage = self.told(b"0", &message).await?;
        if !told.success {
            return Err(Failure::Refused(told.error_reason));
        }
        Ok(Registered { rank: told.rank_id, nodes: told.node_num })
    }

    /// Says that it lives; whether all nodes are there.
    ///
    /// # Errors
    /// As any message.
    pub async fn beat(&mut self) -> Result<bool, Failure> {
        let message = pb::HeartbeatMessage { node_id: self.id.clone() };
        let told: pb::HeartbeatRespMessage = self.told(b"2", &message).await?;
        Ok(told.topo_state == INITIALIZED)
    }

    /// Leaves for good.
    ///
    /// # Errors
    /// As any message. Asked once more, it has left.
    pub async fn unregister(&mut self) -> Result<(), Failure> {
        let message = pb::UnregistrationMessage { node_id: self.id.clone() };
        let answer = self.ask(Way::Control, b"1", &message).await?;
        if answer.name == SUCCESS { Ok(()) } else { Err(refused("unregistration", &answer)) }
    }

    /// Keeps an entry. A write has no answer: what is read behind it on the same connection, which is told here, says that
    /// it was taken.
    ///
    /// # Errors
    /// As any message.
    pub async fn write(&mut self, name: &str, value: Bytes) -> Result<Option<Bytes>, Failure> {
        let message = pb::MetadataMessage { name: name.to_owned(), value };
        let frame = frame(b"6", &message);
        let limit = self.limit;
        let line = self.line(Way::Metadata).await?;
        let sent = within(limit, line.send(&frame)).await;
        if sent.is_err() {
            self.move_on();
        }
        sent?;
        // Whatever becomes of the read, the write was sent.
        self.read(name).await.map_err(|failure| Failure::Unanswered(failure.to_string()))
    }

    /// Reads an entry; `None`: there is none.
    ///
    /// # Errors
    /// As any message.
    pub async fn read(&mut self, name: &str) -> Result<Option<Bytes>, Failure> {
        let message = pb::MetadataMessage { name: name.to_owned(), value: Bytes::new() };
        let answer = self.ask(Way::Metadata, b"7", &message).await?;
        if answer.name != self.dialect.valid() {
            return Ok(None);
        }
        let told = pb::MetadataMessage::decode(answer.body);
        let told = told.map_err(|error| Failure::Unanswered(format!("an entry cannot be read: {error}")))?;
        Ok((!told.value.is_empty()).then_some(told.value))
    }

    /// The rank that it has for good, once all nodes are there.
    ///
    /// # Errors
    /// As any message, and if the entry is no number.
    pub async fn rank(&mut self) -> Result<Option<u32>, Failure> {
        let entry = self.read(&format!("MS_WORKER{}", self.id)).await?;
        entry
            .map(|text| {
                let text = String::from_utf8_lossy(&text).into_owned();
                text.parse().map_err(|_| Failure::Unanswered(format!("`{text}` is no rank")))
            })
            .transpose()
    }

    async fn told<M: Message + Default>(
        &mut self,
        name: &'static [u8],
        message: &impl Message,
    ) -> Result<M, Failure> {
        let answer = self.ask(Way::Control, name, message).await?;
        if answer.name != SUCCESS {
            return Err(refused("a message", &answer));
        }
        M::decode(answer.body).context("an answer").map_err(|error| Failure::Unanswered(format!("{error:#}")))
    }

    async fn ask(&mut self, way: Way, name: &'static [u8], message: &impl Message) -> Result<Rpc0, Failure> {
        let (frame, limit) = (frame(name, message), self.limit);
        let line = self.line(way).await?;
        let answered = within(limit, async {
            line.send(&frame).await?;
            line.hear().await
        });
        let answered = answered.await;
        if answered.is_err() {
            self.move_on();
        }
        answered
    }

    async fn line(&mut self, way: Way) -> Result<&mut Line, Failure> {
        let is_open = match way {
            Way::Control => self.control.is_some(),
            Way::Metadata => self.metadata.is_some(),
        };
        if !is_open {
            let address = &self.addresses[self.place()];
            match Line::open(address).await {
                Ok(line) => match way {
                    Way::Control => self.control = Some(line),
                    Way::Metadata => self.metadata = Some(line),
                },
                Err(failure) => {
                    self.move_on();
                    return Err(failure);
                }
            }
        }
        let line = match way {
            Way::Control => self.control.as_mut(),
            Way::Metadata => self.metadata.as_mut(),
        };
        line.ok_or_else(|| Failure::Unsent("no connection".to_owned()))
    }

    /// To the next address, with both connections.
    pub fn move_on(&mut self) {
        self.place = self.place.wrapping_add(1);
        (self.control, self.metadata) = (None, None);
    }
}

fn frame(name: &'static [u8], message: &impl Message) -> Rpc0 {
    Rpc0 { name: Bytes::from_static(name), body: message.encode_to_vec().into() }
}

fn refused(what: &str, answer: &Rpc0) -> Failure {
    Failure::Refused(format!("{what} is answered by `{}`", String::from_utf8_lossy(&answer.name)))
}
