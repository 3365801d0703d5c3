//! One client of the cluster, over gRPC on the simulated network.

use std::cell::Cell;
use std::error::Error as _;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tonic::transport::Channel;
use tonic::{Request, Response, Status};
use tripod_proto::metadata;
use tripod_proto::tripod::v1::jobs_client::JobsClient;
use tripod_proto::tripod::v1::{CreateJobRequest, GetJobRequest, JobSpec};
use tripod_state::ids::NodeId;

use super::network;
use super::node::{Site, host};
use super::observation::SimTime;
use super::witness::{Witness, now};
use tripod_checkers::history::{Call, ClientId, Outcome};

/// What the clients are to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Faults are injected: any call may fail.
    Faults,
    /// All faults are over since then. From some time on every call must be answered.
    Calm(SimTime),
    /// Look once more, and end.
    Ending,
}

/// After the last fault a leader must be there, and every broken connection be noticed, within so many
/// milliseconds of simulated time.
const SETTLED_AFTER_MS: u64 = 5000;
/// For so long clients go on then.
const ANSWERED_FOR_MS: u64 = 2000;
/// How long a call may take once everything has settled.
const ANSWERED_WITHIN: Duration = Duration::from_secs(5);
/// The metadata key of the reason word of `tripod.v1`.
const REASON: &str = "tripod-reason";

/// What came of a call.
#[derive(Debug)]
pub(crate) enum Answer<T> {
    Yes(T),
    /// The domain refused.
    No(Status),
    /// It was surely not executed.
    NotExecuted(String),
    /// It may have been executed, or may be later.
    Lost(String),
}

impl<T> Answer<T> {
    /// The outcome of a call whose refusals, other than those that the caller knows, tell nothing.
    pub(crate) fn outcome(self, yes: impl FnOnce(T) -> Outcome) -> Outcome {
        match self {
            Self::Yes(answer) => yes(answer),
            Self::No(status) => Outcome::Fail(format!("{:?}: {}", status.code(), status.message())),
            Self::NotExecuted(why) => Outcome::Fail(why),
            Self::Lost(why) => Outcome::Unknown(why),
        }
    }
}

/// Makes one call after the other. A clone is another client of the same host.
pub(crate) struct Client {
    pub(crate) id: ClientId,
    pub(crate) dice: StdRng,
    pub(crate) witness: Witness,
    phase: Rc<Cell<Phase>>,
    channels: Rc<[(NodeId, Channel)]>,
    sites: Rc<[Arc<Site>]>,
    /// Whether they were made after everything had settled. A fault may have broken a connection while nobody
    /// used it; the first call on it finds that out, which says nothing of the cluster.
    renewed: bool,
    /// The place of the node that is asked next.
    place: usize,
}

/// Channels to all machines, which are numbered here as the nodes are that stood on them first.
fn channels(places: usize) -> Rc<[(NodeId, Channel)]> {
    (0..places).map(|place| (NodeId(place as u64 + 1), network::channel(&host(place)))).collect()
}

impl Client {
    /// Must be called within the host.
    pub(crate) fn new(
        seed: u64,
        id: ClientId,
        sites: &Rc<[Arc<Site>]>,
        witness: &Witness,
        phase: &Rc<Cell<Phase>>,
    ) -> Self {
        let mut dice = StdRng::seed_from_u64(seed.wrapping_mul(7919).wrapping_add(u64::from(id.0)));
        Self {
            id,
            witness: witness.clone(),
            phase: Rc::clone(phase),
            channels: channels(sites.len()),
            sites: Rc::clone(sites),
            renewed: false,
            place: dice.random_range(0..sites.len()),
            dice,
        }
    }

    /// Another client with the same connections.
    pub(crate) fn sibling(&mut self, id: ClientId) -> Self {
        Self {
            id,
            dice: StdRng::seed_from_u64(self.dice.random()),
            witness: self.witness.clone(),
            phase: Rc::clone(&self.phase),
            channels: Rc::clone(&self.channels),
            sites: Rc::clone(&self.sites),
            renewed: self.renewed,
            place: self.place,
        }
    }

    /// Another one that is counted as the same.
    pub(crate) fn sibling_here(&mut self) -> Self {
        self.sibling(self.id)
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase.get()
    }

    /// Whether every call must be answered by now.
    pub(crate) fn settled(&self) -> bool {
        match self.phase() {
            Phase::Faults => false,
            Phase::Calm(since) => now().since_ms(since) >= SETTLED_AFTER_MS,
            Phase::Ending => true,
        }
    }

    /// Whether a client has shown long enough that every call is answered.
    pub(crate) fn done(&self) -> bool {
        match self.phase() {
            Phase::Faults => false,
            Phase::Calm(since) => now().since_ms(since) >= SETTLED_AFTER_MS + ANSWERED_FOR_MS,
            Phase::Ending => true,
        }
    }

    /// A channel to the node that is to be asked now: mostly the same as before.
    pub(crate) fn channel(&mut self) -> Channel {
        self.renew_when_settled();
        if self.dice.random_ratio(1, 8) {
            self.place = self.dice.random_range(0..self.channels.len());
        }
        self.skip_vacant();
        self.channels[self.place].1.clone()
    }

    /// A channel to the machine at that place, whatever was asked before.
    pub(crate) fn channel_at(&self, place: usize) -> Channel {
        self.channels[place].1.clone()
    }

    /// A channel to the next node in turn.
    pub(crate) fn next_channel(&mut self) -> (NodeId, Channel) {
        self.renew_when_settled();
        self.elsewhere();
        self.channels[self.place].clone()
    }

    /// The node on the machine that is numbered so here, if it is a member.
    pub(crate) fn member_at(&self, machine: NodeId) -> Option<NodeId> {
        let place = usize::try_from(machine.0.checked_sub(1)?).ok()?;
        let node = self.sites.get(place)?.node()?;
        (!self.witness.is_gone(node)).then_some(node)
    }

    fn renew_when_settled(&mut self) {
        if self.settled() && !self.renewed {
            self.channels = channels(self.channels.len());
            self.renewed = true;
        }
    }

    fn elsewhere(&mut self) {
        self.place = (self.place + 1) % self.channels.len();
        self.skip_vacant();
    }

    /// Passes over machines that have no node: clients learn of those that come and go.
    fn skip_vacant(&mut self) {
        for _ in 0..self.sites.len() {
            if self.sites[self.place].node().is_some() {
                return;
            }
            self.place = (self.place + 1) % self.channels.len();
        }
    }

    /// How long a call may take now.
    pub(crate) fn patience(&mut self) -> Duration {
        if self.settled() {
            ANSWERED_WITHIN
        } else {
            Duration::from_millis(self.dice.random_range(300..4000))
        }
    }

    /// Waits for an answer, for as long as a call may take now.
    pub(crate) async fn ask<T>(
        &mut self,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Answer<T> {
        let patience = self.patience();
        self.ask_within(patience, call).await
    }

    pub(crate) async fn ask_within<T>(
        &mut self,
        patience: Duration,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Answer<T> {
        let answer = match tokio::time::timeout(patience, call).await {
            Ok(Ok(response)) => Answer::Yes(response.into_inner()),
            Ok(Err(status)) => of_status(status),
            Err(_) => Answer::Lost(format!("no answer within {} ms", patience.as_millis())),
        };
        if matches!(answer, Answer::NotExecuted(_) | Answer::Lost(_)) {
            self.elsewhere();
        }
        answer
    }

    /// Makes a call and writes it down. Once everything has settled, it must be answered.
    pub(crate) async fn record(
        &mut self,
        call: Call,
        made: impl AsyncFnOnce(&mut Self) -> Outcome,
    ) -> Outcome {
        let settled = self.settled();
        let witness = self.witness.clone();
        let outcome = witness.record(self.id, call.clone(), made(self)).await;
        if settled && !matches!(outcome, Outcome::Ok(_)) {
            witness.broken(
                now(),
                "liveness",
                format!("client {} in a settled cluster: {call}: {outcome}", self.id),
            );
        }
        outcome
    }

    /// Waits a little, as clients do between calls.
    pub(crate) async fn pause(&mut self, most_ms: u64) {
        tokio::time::sleep(Duration::from_millis(self.dice.random_range(1..=most_ms))).await;
    }

    /// Creates a job, or finds it; gives the life of its service. Tries until the simulation ends.
    pub(crate) async fn job(&mut self, name: &str, spec: JobSpec) -> u64 {
        loop {
            let mut jobs = JobsClient::new(self.channel());
            let create = CreateJobRequest { name: name.to_owned(), spec: Some(spec.clone()) };
            let mut answer = self.ask(async move { jobs.create(create).await }).await;
            if matches!(&answer, Answer::No(status) if status.code() == tonic::Code::AlreadyExists) {
                let mut jobs = JobsClient::new(self.channel());
                let get = GetJobRequest { name: name.to_owned(), ..Default::default() };
                answer = self.ask(async move { jobs.get(get).await }).await;
            }
            match answer {
                Answer::Yes(job) => return job.service_incarnation,
                _ => self.pause(200).await,
            }
        }
    }
}

fn of_status<T>(status: Status) -> Answer<T> {
    if let Some(cause) = status.source() {
        // The connection broke, before or after the node received the call.
        return Answer::Lost(format!("{}: {cause}", status.message()));
    }
    let word = |key: &str| status.metadata().get(key).and_then(|value| value.to_str().ok());
    match word(REASON).or_else(|| word(metadata::OUTAGE)) {
        Some("outcome-unknown" | metadata::OUTAGE_UNKNOWN) => Answer::Lost(status.message().to_owned()),
        Some(
            metadata::OUTAGE_NO_LEADER
            | metadata::OUTAGE_STOPPING
            | metadata::OUTAGE_OVERLOADED
            | metadata::OUTAGE_SESSION,
        ) => Answer::NotExecuted(status.message().to_owned()),
        _ => Answer::No(status),
    }
}

/// A request of a coordination protocol to a job.
pub(crate) fn to_job<M>(job: &str, message: M) -> Request<M> {
    let mut request = Request::new(message);
    let name = job.parse().expect("a job's name is ASCII");
    request.metadata_mut().insert(metadata::JOB, name);
    request
}
