//! `tripod.v1.Ray`: what our own workers, drivers and people ask.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;
use tonic::{Request, Response, Status};
use tripod_gate::Admitted;
use tripod_gateway::Consistency;
use tripod_proto::tripod::v1 as pb;
use tripod_proto::tripod::v1::ray_server::Ray;
use tripod_state::ids::JobId;
use tripod_state::ray::Ray as Scheduler;
use tripod_state::ray::ids::{ObjectId, StoreId};
use tripod_state::ray::view::{Availability, TaskState};
use tripod_state::{DomainId, Topic};

use crate::caller::Caller;
use crate::front::Front;
use crate::pulse::Usage;
use crate::{batch, shown, status};

/// Objects of one wait: looking at them holds the state.
const WAITED_MAX: usize = 100_000;
/// The longest wait; a client that wants more asks again.
const WAIT_MAX: Duration = Duration::from_secs(3600);
/// Looks of one wait that follow on every change. Those after them keep a pause, so that a crowd that waits for
/// long does not look at every object after every command of a busy job.
const PROMPT_LOOKS: u32 = 16;
const PAUSE: Duration = Duration::from_millis(2);
/// Tasks that are listed: unless said otherwise, and at most.
const TASKS_SHOWN: u32 = 100;
const TASKS_SHOWN_MAX: u32 = 10_000;

/// Our own calls at one port.
pub(crate) struct Service {
    front: Front,
}

type Outcome<T> = Result<Response<T>, Status>;

/// What of a wait is decided: the places in the request, and why an object cannot be had.
struct Waiting {
    ids: Vec<ObjectId>,
    /// How many are to be decided.
    enough: usize,
    undecided: VecDeque<u32>,
    decided: Vec<pb::RayWaited>,
}

impl Service {
    pub(crate) fn new(front: Front) -> Self {
        Self { front }
    }

    async fn wait_for(&self, job: JobId, wait: &mut Waiting) -> Result<(), Status> {
        let mut changes = self.front.gateway.watch(Topic::Domain(DomainId::Ray, job));
        // Everything that was acknowledged before the call is seen by all looks.
        self.front.read(Consistency::Linearizable, job, |_| ()).await?;
        for look in 0_u32.. {
            self.front.read(Consistency::Local, job, |ray| wait.look(ray)).await??;
            if wait.decided.len() >= wait.enough {
                break;
            }
            changes.changed().await;
            if look > PROMPT_LOOKS {
                tokio::time::sleep(PAUSE).await;
            }
        }
        Ok(())
    }
}

impl Waiting {
    fn new(ids: Vec<u64>, enough: usize) -> Self {
        let undecided = (0..).take(ids.len()).collect();
        Self { ids: ids.into_iter().map(ObjectId).collect(), enough, undecided, decided: Vec::new() }
    }

    /// Notes what was decided since the last look, as long as there may be enough. Those that are not decided are
    /// left in front, so that a wait for all of many looks at few of them again.
    fn look(&mut self, ray: &Scheduler) -> Result<(), Status> {
        let spare = self.ids.len() - self.enough;
        let mut pending = 0;
        while pending <= spare
            && let Some(place) = self.undecided.get(pending).copied()
        {
            if self.decide(ray, place)? {
                self.undecided.swap_remove_front(pending);
            } else {
                pending += 1;
            }
        }
        Ok(())
    }

    /// Notes all that are decided.
    fn look_at_all(&mut self, ray: &Scheduler) -> Result<(), Status> {
        for place in std::mem::take(&mut self.undecided) {
            self.decide(ray, place)?;
        }
        Ok(())
    }

    /// Whether that one is decided; if so it is noted.
    fn decide(&mut self, ray: &Scheduler, place: u32) -> Result<bool, Status> {
        let object = self.ids[place as usize];
        let failed = match ray.availability(object) {
            None => {
                let refusal = tripod_state::ray::Refusal::ObjectUnknown { object };
                return Err(status::of_refusal(&refusal));
            }
            Some(Availability::Pending) => return Ok(false),
            Some(Availability::Ready) => String::new(),
            Some(Availability::Failed(failure)) => status::reason_word(failure.reason),
            Some(Availability::Deallocated) => "DEALLOCATED".to_owned(),
        };
        self.decided.push(pb::RayWaited { place, failed });
        Ok(true)
    }
}

#[tonic::async_trait]
impl Ray for Service {
    async fn batch(&self, request: Request<pb::RayBatchRequest>) -> Outcome<pb::RayBatchResponse> {
        let (metadata, extensions, message) = request.into_parts();
        let caller = Caller::of(&metadata)?;
        let job = self.front.job(&metadata).await?;
        let answered = self.front.batch(job, caller, Admitted::of(&extensions), message).await?;
        let replayed = answered.replayed;
        self.front.respond(answered, |answer| batch::encode(answer, replayed))
    }

    async fn wait(&self, request: Request<pb::RayWaitRequest>) -> Outcome<pb::RayWaitResponse> {
        let (metadata, _, message) = request.into_parts();
        let asked = message.objectids.len();
        if asked > WAITED_MAX {
            let text = format!("objectids: {asked} of them, and the limit is {WAITED_MAX}");
            return Err(status::with_reason(Status::resource_exhausted(text), "full"));
        }
        let job = self.front.job(&metadata).await?;
        let enough = match message.at_least {
            0 => asked,
            some => asked.min(some as usize),
        };
        let mut wait = Waiting::new(message.objectids, enough);
        let until = Instant::now() + WAIT_MAX.min(Duration::from_millis(message.timeout_ms));
        if message.timeout_ms == 0 {
            self.front.read(Consistency::Linearizable, job, |ray| wait.look_at_all(ray)).await??;
        } else {
            if let Ok(ended) = tokio::time::timeout_at(until, self.wait_for(job, &mut wait)).await {
                ended?;
            }
            self.front.read(Consistency::Local, job, |ray| wait.look_at_all(ray)).await??;
        }
        wait.decided.sort_unstable_by_key(|waited| waited.place);
        Ok(Response::new(pb::RayWaitResponse { objects: wait.decided }))
    }

    async fn status(&self, request: Request<pb::RayStatusRequest>) -> Outcome<pb::RayStatusResponse> {
        let job = self.front.job(request.metadata()).await?;
        // People are told what this node knows even if the leader does not say how full stores are.
        let usage: HashMap<StoreId, Usage> = self.front.pulse.usage(job).await.unwrap_or_default();
        let look = |ray: &tripod_state::ray::Ray| (ray.workers(), ray.stores(), ray.totals());
        let (workers, stores, totals) = self.front.read(Consistency::Linearizable, job, look).await?;
        Ok(Response::new(shown::status(workers, stores, totals, &usage)))
    }

    async fn tasks(&self, request: Request<pb::RayTasksRequest>) -> Outcome<pb::RayTasksResponse> {
        let job = self.front.job(request.metadata()).await?;
        let pb::RayTasksRequest { limit, state } = request.into_inner();
        let state = match state.as_str() {
            "" => None,
            word => Some(task_state(word)?),
        };
        let most = match limit {
            0 => TASKS_SHOWN,
            some => some.min(TASKS_SHOWN_MAX),
        };
        let tasks =
            self.front.read(Consistency::Linearizable, job, |ray| ray.tasks(state, most as usize)).await?;
        Ok(Response::new(pb::RayTasksResponse { tasks: tasks.into_iter().map(shown::task).collect() }))
    }
}

fn task_state(word: &str) -> Result<TaskState, Status> {
    let known = shown::TASK_STATES.iter().find(|(_, name)| *name == word);
    let names = || shown::TASK_STATES.map(|(_, name)| name).join(", ");
    let unknown = || status::invalid(&format!("state: {word:?} is none of {}", names()));
    known.map(|(state, _)| *state).ok_or_else(unknown)
}
