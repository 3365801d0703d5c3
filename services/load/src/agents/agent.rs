//! One agent: its stream, and calls until they are answered.

use std::sync::OnceLock;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use futures::future::join_all;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};
use tonic::transport::Channel;
use tonic::{Code, Status};
use tripod_beats::Beat;
use tripod_calls::{Answer, CallOptions, CallStream, Hello, Reason};
use tripod_proto::metadata::{OUTAGE_SESSION, OUTAGE_STOPPING};
use tripod_proto::tripod::v1::sessions_client::SessionsClient;
use tripod_proto::tripod::v1::{CloseSessionRequest, OpenSessionRequest};
use tripod_proto::wide;

use super::beats::{Answered, Beats};
use super::fleet::{Fleet, host};
use super::life::{self, Call, Life, Step};
use super::numbers::{Numbers, Place};
use super::tally::{GaveUp, Tally};
use crate::connect;

/// How long an agent looks for a node that takes its stream: a cluster without a leader is one that comes back.
const OPEN_PATIENCE: Duration = Duration::from_secs(60);
/// Pause before a call is sent again that the node could not take, and between two looks for a node.
const AGAIN_PAUSE: Duration = Duration::from_millis(100);
const CLOSE_SESSION: &str = "/tripod.v1.Sessions/Close";

/// An agent and the tasks behind it.
#[derive(Debug)]
pub struct PlayedAgent {
    fleet: Fleet,
    number: u32,
    lives: Vec<Life>,
    /// The incarnation of the service that the tasks have registered at.
    service: OnceLock<u64>,
    session: u128,
    numbers: Numbers,
    link: Mutex<Link>,
    beats: Beats,
}

/// The stream that an agent has at the moment.
#[derive(Debug, Clone)]
struct Link {
    /// How many streams it had before.
    life: u64,
    /// The number of its node among the endpoints.
    node: usize,
    stream: CallStream,
    /// The connection of the stream, for calls that are no ops.
    channel: Channel,
}

/// How long each task waited, in seconds, or what it was refused with.
pub type Waits = Vec<Result<f64, Status>>;

impl PlayedAgent {
    /// Agent `number` of its fleet, with as many tasks as it is given, connected to its node.
    ///
    /// # Errors
    /// No node takes it, or it gets no session.
    pub async fn connect(
        fleet: &Fleet,
        number: u32,
        tasks: impl Iterator<Item = i32>,
    ) -> anyhow::Result<Self> {
        let lives = tasks.map(|task| Life { task, incarnation: rand::random() }).collect();
        let first = usize::try_from(number).context("too many agents")?;
        let permit = fleet.opening().acquire().await.context("opening has ended")?;
        let (node, channel) = dial(fleet, number, first).await?;
        let session = open_session(channel.clone()).await?;
        let stream = open(fleet, channel.clone(), session)?;
        drop(permit);
        Ok(Self {
            fleet: fleet.clone(),
            number,
            lives,
            service: OnceLock::new(),
            session,
            numbers: Numbers::default(),
            link: Mutex::new(Link { life: 0, node, stream, channel }),
            beats: Beats::default(),
        })
    }

    /// Its number in the fleet, from 0.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// How many tasks are behind it.
    #[must_use]
    pub fn tasks(&self) -> usize {
        self.lives.len()
    }

    /// All its tasks make a step together, each as soon as the stream takes it.
    pub async fn all(&self, step: Step) -> Waits {
        join_all(self.lives.iter().map(|life| timed(self.step(*life, step)))).await
    }

    /// Task number `task` of its own beats, and waits for no longer than `patience`. Its beats must be told meanwhile.
    pub(super) async fn beat(&self, task: usize, patience: Duration) -> Result<f64, Status> {
        let life = *self.lives.get(task).ok_or_else(|| Status::internal("it has no such task"))?;
        timed(self.beat_of(life, patience)).await
    }

    pub(super) fn beats(&self) -> &Beats {
        &self.beats
    }

    pub(super) fn tally(&self) -> &Tally {
        self.fleet.tally()
    }

    pub(super) fn job(&self) -> &str {
        self.fleet.job()
    }

    /// Its connection at the moment, and how many it had before.
    pub(super) async fn connection(&self) -> (u64, Channel) {
        let link = self.link.lock().await;
        (link.life, link.channel.clone())
    }

    /// Gives its session back, and leaves.
    ///
    /// # Errors
    /// The cluster's status.
    pub async fn close(&self) -> Result<(), Status> {
        use prost::Message as _;
        let (session, session_high) = wide::split(self.session);
        let message = CloseSessionRequest { session, session_high }.encode_to_vec();
        self.until_answered((CLOSE_SESSION, message.into()), &self.numbers.none()).await.map(drop)
    }

    async fn step(&self, life: Life, step: Step) -> Result<(), Status> {
        let call = life.step(step, self.service());
        let answer = self.until_answered(call, &self.numbers.begin()).await?;
        match step {
            Step::Register => {
                let service = life::registered(answer)?;
                if *self.service.get_or_init(|| service) != service {
                    return Err(Status::data_loss("another service incarnation registered it"));
                }
                Ok(())
            }
            Step::Barrier(_) => life::passed(answer),
            Step::Leave => Ok(()),
        }
    }

    async fn beat_of(&self, life: Life, patience: Duration) -> Result<(), Status> {
        let (path, message) = life.beat(self.service());
        let beat = Beat { path: path.to_owned(), message };
        let answer = match self.beats.made(&beat, patience).await {
            Answered::Cluster(verdict) => verdict?,
            Answered::Lease(answer) => {
                self.tally().leased();
                answer
            }
            Answered::Nobody => return Err(Status::deadline_exceeded("no answer in time")),
        };
        life::beaten(answer, self.service())
    }

    fn service(&self) -> u64 {
        self.service.get().copied().unwrap_or_default()
    }

    /// Sends a call until the cluster has an answer to it, to whatever node; always in the same place of the session.
    async fn until_answered(&self, (path, message): Call, place: &Place<'_>) -> Result<Bytes, Status> {
        loop {
            let Link { life, stream, .. } = self.link.lock().await.clone();
            let options = CallOptions {
                sequence: place.sequence(),
                acknowledged_below: place.acknowledged_below(),
                ..CallOptions::default()
            };
            match stream.call(path, message.clone(), &options).await {
                Ok(answer) => match answer.outage() {
                    None => return verdict(answer),
                    Some(OUTAGE_SESSION) => return Err(answer.into_status()),
                    Some(OUTAGE_STOPPING) => self.reopen(life, GaveUp::Stopping).await?,
                    Some(_) => sleep(AGAIN_PAUSE).await,
                },
                Err(lost) if is_of_the_stream(lost.reason()) => self.reopen(life, GaveUp::Stream).await?,
                Err(lost) => return Err(Status::internal(lost.to_string())),
            }
            self.fleet.tally().sent_again();
        }
    }

    /// Opens a stream at another node, unless another call has done that since stream `life`.
    pub(super) async fn reopen(&self, life: u64, heard: GaveUp<'_>) -> Result<(), Status> {
        let mut link = self.link.lock().await;
        if link.life != life {
            return Ok(());
        }
        self.fleet.tally().gave_up(&link.stream, &heard);
        let next = self.fleet.next(self.number, link.node);
        let permit = self.fleet.opening().acquire().await;
        let opened = async {
            let (node, channel) = dial(&self.fleet, self.number, next).await?;
            let stream = open(&self.fleet, channel.clone(), self.session)?;
            anyhow::Ok(Link { life: life + 1, node, stream, channel })
        };
        let opened = opened.await.map_err(|error| Status::unavailable(format!("{error:#}")))?;
        drop(permit);
        *link = opened;
        Ok(())
    }
}

/// A connection to a node: number `first`, or the next one that takes it.
async fn dial(fleet: &Fleet, number: u32, first: usize) -> anyhow::Result<(usize, Channel)> {
    let deadline = Instant::now() + OPEN_PATIENCE;
    for (node, address) in fleet.endpoints_from(first) {
        let endpoint = connect::endpoint(address)?.local_address(Some(host(number)));
        match endpoint.connect().await {
            Ok(channel) => return Ok((node, channel)),
            Err(error) if Instant::now() >= deadline => {
                return Err(error).with_context(|| {
                    format!("agent {number}: no node took a connection within {OPEN_PATIENCE:?}")
                });
            }
            Err(_) => sleep(AGAIN_PAUSE).await,
        }
    }
    anyhow::bail!("agent {number} knows no node")
}

async fn open_session(channel: Channel) -> anyhow::Result<u128> {
    let mut sessions = SessionsClient::new(channel);
    let opened = sessions.open(OpenSessionRequest { wide: true });
    let opened = tokio::time::timeout(OPEN_PATIENCE, opened).await.context("no session in time")?;
    let opened = opened.context("cannot open a session")?.into_inner();
    Ok(wide::join(opened.session, opened.session_high))
}

fn open(fleet: &Fleet, channel: Channel, session: u128) -> anyhow::Result<CallStream> {
    let hello = Hello { metadata: fleet.metadata().clone().into_headers(), session: Some(session) };
    CallStream::open(channel, &hello).context("a stream of calls")
}

/// Whether it is the stream that is lost, and not this call that is none for a stream.
fn is_of_the_stream(reason: &Reason) -> bool {
    matches!(reason, Reason::Refused(_) | Reason::Broken(_) | Reason::Over | Reason::Leaving | Reason::Closed)
}

fn verdict(answer: Answer) -> Result<Bytes, Status> {
    if answer.code == Code::Ok { Ok(answer.message) } else { Err(answer.into_status()) }
}

/// How long it took, in seconds.
async fn timed(call: impl Future<Output = Result<(), Status>>) -> Result<f64, Status> {
    let begin = Instant::now();
    call.await.map(|()| begin.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::net::TcpListener;

    use super::*;
    use crate::agents::{Told, beats};

    #[test]
    fn only_a_lost_stream_is_opened_anew() {
        assert!(is_of_the_stream(&Reason::Broken("reset".into())));
        assert!(is_of_the_stream(&Reason::Leaving));
        // An older node has none, wherever that is tried again.
        assert!(!is_of_the_stream(&Reason::NotServed));
        assert!(!is_of_the_stream(&Reason::TooLong));
    }

    #[tokio::test]
    async fn a_node_whose_death_a_heartbeat_hears_of_before_the_stream_has_sent_nobody_away() {
        let listen = async || TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (dead, living, silent) = (listen().await, listen().await, listen().await);
        let address = |listener: &TcpListener| listener.local_addr().unwrap().to_string();
        let fleet = Fleet::new(vec![address(&dead), address(&living)], "train").unwrap();
        // The stream's task has not heard of it.
        let stream = open(&fleet, connect::lazy(&address(&silent)).unwrap(), 1).unwrap();
        let channel = connect::lazy(&address(&dead)).unwrap();
        tokio::spawn(async move { while dead.accept().await.is_ok() {} });
        let agent = Arc::new(PlayedAgent {
            fleet: fleet.clone(),
            number: 0,
            lives: vec![Life { task: 0, incarnation: 1 }],
            service: OnceLock::new(),
            session: 1,
            numbers: Numbers::default(),
            link: Mutex::new(Link { life: 0, node: 0, stream, channel }),
            beats: Beats::default(),
        });
        let every = Duration::from_secs(600);
        let beating = tokio::spawn(beats::tell(Arc::clone(&agent), every));
        let beat = tokio::spawn({
            let agent = Arc::clone(&agent);
            async move { agent.beat(0, every).await }
        });
        tripod_wait::until_async("a stream at the other node", || async {
            (agent.connection().await.0 == 1).then_some(())
        })
        .await;
        assert_eq!(fleet.told(), Told { broken: 1, ..Told::default() });
        beating.abort();
        beat.abort();
    }
}
