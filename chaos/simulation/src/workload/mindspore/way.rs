//! How a node of MindSpore reaches its scheduler: one node of ours after the other.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tripod_checkers::history::{Outcome, Reply};
use tripod_mindspore::wire::Frame;
use turmoil::net::TcpStream;

use crate::network;
use crate::node::{Site, host};

/// A connection with frames of one protocol.
pub(super) struct Line {
    stream: TcpStream,
    buffer: BytesMut,
}

/// Why nothing came of a message.
#[derive(Debug)]
pub(super) enum Failure {
    /// There was no connection: nothing was sent.
    Unsent(String),
    /// It may have been done, or may be yet.
    Unanswered(String),
    /// The answer was no.
    Refused(String),
}

/// One connection at a time, to a machine that has a node.
pub(super) struct Way {
    sites: Rc<[Arc<Site>]>,
    port: u16,
    /// The place of the machine.
    place: usize,
    line: Option<Line>,
}

impl Line {
    pub(super) fn over(stream: TcpStream) -> Self {
        Self { stream, buffer: BytesMut::new() }
    }

    pub(super) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// The next frame.
    ///
    /// # Errors
    /// The other side ended the connection, or sent no frame.
    pub(super) async fn hear<F: Frame>(&mut self) -> io::Result<F> {
        loop {
            if let Some(frame) = F::take(&mut self.buffer).map_err(io::Error::other)? {
                return Ok(frame);
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

impl Way {
    pub(super) fn new(sites: &Rc<[Arc<Site>]>, port: u16, place: usize) -> Self {
        Self { sites: Rc::clone(sites), port, place: place % sites.len(), line: None }
    }

    /// Says something that has an answer, and waits for it. After a failure the next message goes elsewhere.
    pub(super) async fn ask<F: Frame>(
        &mut self,
        patience: Duration,
        bytes: &[u8],
        is_it: impl Fn(&F) -> bool,
    ) -> Result<F, Failure> {
        let asked = async {
            let line = self.line().await?;
            line.send(bytes).await.map_err(Failure::from)?;
            loop {
                let frame = line.hear::<F>().await.map_err(Failure::from)?;
                if is_it(&frame) {
                    return Ok::<F, Failure>(frame);
                }
            }
        };
        let answered = within(patience, asked).await;
        if answered.is_err() {
            self.move_on();
        }
        answered
    }

    /// Says something that has no answer.
    pub(super) async fn say(&mut self, patience: Duration, bytes: &[u8]) -> Result<(), Failure> {
        let said = async {
            let line = self.line().await?;
            line.send(bytes).await.map_err(Failure::from)
        };
        let said = within(patience, said).await;
        if said.is_err() {
            self.move_on();
        }
        said
    }

    async fn line(&mut self) -> Result<&mut Line, Failure> {
        if self.line.is_none() {
            let connected = network::connect(&host(self.place), self.port).await;
            let stream = connected.map_err(|error| Failure::Unsent(error.to_string()))?;
            self.line = Some(Line::over(stream));
        }
        self.line.as_mut().ok_or_else(|| Failure::Unsent("no connection".to_owned()))
    }

    /// To the next machine that has a node.
    pub(super) fn move_on(&mut self) {
        self.line = None;
        for _ in 0..self.sites.len() {
            self.place = (self.place + 1) % self.sites.len();
            if self.sites[self.place].node().is_some() {
                return;
            }
        }
    }
}

impl Failure {
    /// Whether what was sent may be done later.
    pub(super) fn is_open(&self) -> bool {
        matches!(self, Self::Unanswered(_))
    }
}

/// A connection that has broken: what was sent on it may have come.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Unanswered(error.to_string())
    }
}

/// What became of a message, as it stands in the history.
pub(super) fn outcome(told: Result<Reply, Failure>) -> Outcome {
    match told {
        Ok(reply) => Outcome::Ok(reply),
        Err(Failure::Unanswered(why)) => Outcome::Unknown(why),
        Err(Failure::Unsent(why) | Failure::Refused(why)) => Outcome::Fail(why),
    }
}

async fn within<T>(patience: Duration, part: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let ended = tokio::time::timeout(patience, part).await;
    ended.unwrap_or_else(|_| Err(Failure::Unanswered(format!("no answer within {patience:?}"))))
}
