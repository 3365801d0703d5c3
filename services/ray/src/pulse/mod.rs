//! Signs of life, and what cannot come to stores: every node tells the leader's front end what it has heard. They never
//! touch the log.

mod conversation;
mod peer_memory;
mod unfit;
mod wire;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prost::Message as _;
use tripod_gateway::{Batches, BeatAnswer, Channel, Gateway, Outage};
use tripod_proto::tripod::v1::HeartbeatRequest;
use tripod_state::ids::JobId;
use tripod_state::ray::ids::{ObjectId, StoreId};
use tripod_state::ray::{FetchFailure, Origin, Peer, Request};

use self::conversation::Beats;
use self::wire::{Report, Verdicts};

pub(crate) use peer_memory::PeerMemory;

/// How long a heartbeat is held while nobody leads. Its sender sends the next one anyway.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between attempts while nobody answers.
const PAUSE: Duration = Duration::from_millis(50);
/// How often the leader is told of peers that were named in calls: often enough for the shortest time to live.
const NAMED_EVERY: Duration = Duration::from_millis(500);
/// Peers that are remembered between two of these reports. Those beyond are named again soon.
const NAMED_MAX: usize = 16 << 10;

/// One sign of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Beat {
    pub(crate) job: JobId,
    pub(crate) peer: Peer,
    pub(crate) usage: Option<Usage>,
}

/// An object that cannot come to a store, as that says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unfit {
    pub(crate) job: JobId,
    pub(crate) object: ObjectId,
    pub(crate) store: StoreId,
}

/// How full an object store is, as it says itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    pub used_bytes: u64,
    pub capacity_bytes: u64,
    pub spilled_bytes: u64,
}

impl Usage {
    pub(crate) fn of(beat: &HeartbeatRequest) -> Self {
        let HeartbeatRequest { used_bytes, capacity_bytes, spilled_bytes, .. } = *beat;
        Self { used_bytes, capacity_bytes, spilled_bytes }
    }
}

/// The telling side, on every node.
#[derive(Clone)]
pub(crate) struct Pulse {
    gateway: Gateway,
    asking: Batches<Beats>,
    named: Arc<Mutex<HashSet<(JobId, Peer)>>>,
}

impl Pulse {
    /// Tells the leader of peers that were named, until the last clone is dropped. Must be called within a
    /// tokio runtime.
    pub(crate) fn start(gateway: Gateway) -> Self {
        let named = Arc::new(Mutex::new(HashSet::new()));
        let (telling, weak) = (gateway.clone(), Arc::downgrade(&named));
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(NAMED_EVERY).await;
                let Some(named) = weak.upgrade() else { return };
                let peers: Vec<_> = std::mem::take(&mut *named.lock()).into_iter().collect();
                if peers.is_empty() {
                    continue;
                }
                let beats = peers.into_iter().map(|(job, peer)| Beat { job, peer, usage: None });
                if let Err(outage) = telling.ask_leader(Channel::RAY, &Report::of(beats).encode()).await {
                    tracing::debug!(%outage, "the leader is not told who called");
                }
            }
        });
        Self { asking: Batches::start(Beats::new(gateway.clone())), gateway, named }
    }

    /// Notes that a peer has made a call: whoever does that lives.
    pub(crate) fn named(&self, job: JobId, origin: &Origin, request: &Request) {
        let mut named = self.named.lock();
        let peers = origin.process.map(Peer::Worker).into_iter().chain(caller(request));
        for peer in peers {
            if named.len() < NAMED_MAX {
                named.insert((job, peer));
            }
        }
    }

    /// Tells the leader of one sign of life; holds it for a while if nobody leads.
    pub(crate) async fn beat(&self, beat: Beat) -> Result<BeatAnswer, Outage> {
        tokio::time::timeout(PATIENCE, self.asking.ask(beat)).await.map_err(|_| late())?
    }

    /// Tells the leader what a store says to be unable to fetch, so that tasks which need it go to others. Comes before
    /// the request itself: when that is in the log, the planner knows. If nobody is told, a task may be begun in vain
    /// once more.
    pub(crate) async fn unfit(&self, job: JobId, request: &Request) {
        let requests = match request {
            Request::Batch(requests) => requests.as_slice(),
            one => std::slice::from_ref(one),
        };
        let unfit = requests.iter().filter_map(|request| match request {
            Request::FetchFailed { object, store, why: FetchFailure::Told } => {
                Some(Unfit { job, object: *object, store: *store })
            }
            _ => None,
        });
        let report = Report::of_unfit(unfit);
        if report.unfit.is_empty() {
            return;
        }
        if let Err(outage) = self.ask(&report).await {
            tracing::debug!(%outage, "the leader is not told what cannot come to a store");
        }
    }

    /// How full the stores of a job are, as they told the leader.
    pub(crate) async fn usage(&self, job: JobId) -> Result<HashMap<StoreId, Usage>, Outage> {
        let report = Report { usage_of: Some(job.0), ..Report::default() };
        let verdicts = self.ask(&report).await?;
        let told = verdicts.usage.into_iter().map(|told| (StoreId(told.store), told.usage.into()));
        Ok(told.collect())
    }

    async fn ask(&self, report: &Report) -> Result<Verdicts, Outage> {
        let question = report.encode();
        let answered = async {
            loop {
                match self.gateway.ask_leader(Channel::RAY, &question).await {
                    Ok(answer) => return Ok(answer),
                    Err(Outage::Stopping) => return Err(Outage::Stopping),
                    Err(outage) => tracing::debug!(%outage, "a sign of life is held"),
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        let answer = tokio::time::timeout(PATIENCE, answered).await.map_err(|_| late())??;
        Verdicts::decode(answer).map_err(|error| no_leader(format!("the leader's verdicts: {error}")))
    }
}

fn late() -> Outage {
    no_leader("the leader was not told in time".to_owned())
}

fn no_leader(last: String) -> Outage {
    Outage::NoLeader { waited_ms: PATIENCE.as_millis().try_into().unwrap_or(u64::MAX), last }
}

/// The process that makes a call, where the message names it.
fn caller(request: &Request) -> Option<Peer> {
    match request {
        Request::RegisterFunction { worker, .. }
        | Request::Submit { worker, .. }
        | Request::SubmitWith { worker, .. }
        | Request::Cancel { worker, .. }
        | Request::Put { worker, .. }
        | Request::Get { worker, .. }
        | Request::Idle { worker, .. }
        | Request::GiveBack { worker, .. } => Some(Peer::Worker(*worker)),
        Request::Ready { store, .. } | Request::FetchFailed { store, .. } => Some(Peer::Store(*store)),
        Request::Batch(requests) => requests.first().and_then(caller),
        Request::RegisterStore { .. }
        | Request::RegisterWorker(_)
        | Request::RegisterWorkerWith { .. }
        | Request::Describe { .. }
        | Request::Alias { .. }
        | Request::AddReferences { .. }
        | Request::DropReferences { .. }
        | Request::Contain { .. }
        | Request::KillWorkers
        | Request::ExportFunction { .. }
        | Request::ExportVariable { .. }
        | Request::Leave { .. } => None,
    }
}
