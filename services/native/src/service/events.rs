//! `tripod.v1.Events`.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tonic::{Request, Response, Status};
use tripod_gateway::{Consistency, Gateway};
use tripod_proto::tripod::v1::events_server::Events;
use tripod_proto::tripod::v1::{AsOf, ClusterEventsRequest, EventsResponse, JobEventsRequest};
use tripod_state::State;
use tripod_state::events::{Event, Listed};
use tripod_state::ids::{JobId, LogIndex, NodeId};
use tripod_state::level::Rule;

use crate::decode::events::{self as decode, Filter};
use crate::encode::events as encode;
use crate::{admitted, resolve, status};

/// How long a look waits for somebody to lead before it is content with what this node remembers: longer than an election
/// usually takes.
const LEADER_PATIENCE: Duration = Duration::from_secs(1);
/// How long a member may take to say what it has seen.
const NODE_PATIENCE: Duration = Duration::from_secs(2);
/// How often a call that follows looks whether something has happened: nothing in apply has to wake it.
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub(super) struct Service {
    gateway: Gateway,
}

impl Service {
    pub(super) fn new(gateway: Gateway) -> Self {
        Self { gateway }
    }

    /// Looks at the state of this node, for a moment: apply waits.
    async fn look<T>(&self, look: impl FnOnce(&State) -> T) -> Result<T, Status> {
        self.gateway.read(Consistency::Local, look).await.map_err(|outage| status::of_outage(&outage))
    }

    /// Sees to it that this node knows what the cluster knows now; else why it does not.
    async fn catch_up(&self) -> Option<String> {
        let all = self.gateway.read(Consistency::Linearizable, |_| ());
        match timeout(LEADER_PATIENCE, all).await {
            Ok(Ok(())) => None,
            Ok(Err(outage)) => Some(status::of_outage(&outage).message().to_owned()),
            Err(_) => Some(format!("no leader within {} s", LEADER_PATIENCE.as_secs())),
        }
    }

    /// What `look` finds in a fork of the state: it goes through all events of a job or more, and apply does not wait for that.
    async fn answer(
        &self,
        why: Option<String>,
        look: impl FnOnce(&State) -> Vec<Listed> + Send + 'static,
    ) -> Result<EventsResponse, Status> {
        let node = self.gateway.admin().status().node;
        let seen = move |index: LogIndex, state: &State| {
            let told = Rule::Events.holds_at(state.level());
            (look(state), index.0, state.now_ms().0, told)
        };
        let seen = self.gateway.read_aside(Consistency::Local, seen).await;
        let (rings, index, now_ms, told) = seen.map_err(|outage| status::of_outage(&outage))?;
        let last = rings.iter().map(|listed| listed.kept.last).max().unwrap_or_default();
        let (from_memory, why) = (why.is_some(), why.unwrap_or_default());
        Ok(EventsResponse {
            position: Some(encode::position(last)),
            as_of: Some(AsOf { node_id: node.0, index, now_ms, why }),
            from_memory,
            told,
            ..encode::answer(rings)
        })
    }

    /// What a member has seen itself.
    async fn of_node(&self, node: NodeId, filter: &Filter) -> Result<EventsResponse, Status> {
        let seen = self.gateway.node_events(node, NODE_PATIENCE).await.map_err(|silence| {
            let text = format!("node {} does not tell what it has seen: {silence}", node.0);
            Status::failed_precondition(text)
        })?;
        let now_ms = self.gateway.now().0;
        Ok(EventsResponse {
            as_of: Some(AsOf { node_id: node.0, now_ms, ..AsOf::default() }),
            ..encode::of_node(node, seen, |event| filter.wants_of_node(event))
        })
    }

    /// Waits until there is something behind the position in the filter, or the job is gone.
    async fn wait(&self, job: JobId, filter: &Filter, most: Duration) -> Result<(), Status> {
        let Some(after) = filter.after else { return Ok(()) };
        let deadline = Instant::now() + most;
        loop {
            let at = self.look(|state| state.events_at(job)).await?;
            let is_news = at.is_none_or(|(last, ended)| ended || last > after);
            if is_news || Instant::now() >= deadline {
                return Ok(());
            }
            sleep(LOOK_EVERY).await;
        }
    }
}

#[tonic::async_trait]
impl Events for Service {
    async fn of_job(&self, request: Request<JobEventsRequest>) -> Result<Response<EventsResponse>, Status> {
        admitted::about_job(request.extensions(), &request.get_ref().job)?;
        let JobEventsRequest { job: name, job_id, filter, after, wait_ms } = request.into_inner();
        let after = after.map(decode::position);
        let filter = Filter { after, ..decode::filter(filter)? };
        // Who follows was told where it has got to; everything behind comes to this node sooner or later.
        let why = if after.is_some() { None } else { self.catch_up().await };
        let name = if name.is_empty() { resolve::DEFAULT_JOB } else { &name };
        let found = match job_id {
            0 => self.look(|state| state.job_with_events(name)).await?,
            id => Some(JobId(id)),
        };
        let unknown = || status::of_fault(&resolve::unknown(name));
        let job = found.ok_or_else(unknown)?;
        // By how long it takes, a wait for the events of another job would tell what happens there. Of jobs that had this name
        // before nothing happens any more.
        if self.look(|state| state.job_with_events(name)).await? == Some(job) {
            self.wait(job, &filter, decode::wait(wait_ms)).await?;
        }
        let look =
            move |state: &State| state.events_of(job, |event| filter.wants(event)).into_iter().collect();
        let answer = self.answer(why, look).await?;
        // A caller may ask about the job that it names only, whatever id it sends beside.
        if answer.rings.is_empty() || answer.rings.iter().any(|ring| ring.job != name) {
            return Err(unknown());
        }
        Ok(Response::new(answer))
    }

    async fn of_cluster(
        &self,
        request: Request<ClusterEventsRequest>,
    ) -> Result<Response<EventsResponse>, Status> {
        let ClusterEventsRequest { filter, node_id } = request.into_inner();
        if node_id != 0 {
            let filter = decode::node_filter(filter)?;
            return Ok(Response::new(self.of_node(NodeId(node_id), &filter).await?));
        }
        let filter = Filter { milestones_only: true, ..decode::filter(filter)? };
        let why = self.catch_up().await;
        let look = move |state: &State| {
            let wanted = |event: &Event| filter.wants(event);
            let of_cluster = std::iter::once(state.cluster_rings(wanted));
            let jobs = state.jobs_with_events().into_iter();
            of_cluster.chain(jobs.filter_map(|job| state.events_of(job, wanted))).collect()
        };
        Ok(Response::new(self.answer(why, look).await?))
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code;
    use tripod_proto::tripod::v1::{CreateJobRequest, EventFilter, EventPosition, JobSpec};
    use tripod_state::{Answer, Command, member};

    use super::*;

    /// The id of a new job.
    async fn created(gateway: &Gateway, name: &str) -> JobId {
        let spec = Some(JobSpec { tasks: 1, ..Default::default() });
        let create = crate::decode::create_job(CreateJobRequest { name: name.to_owned(), spec });
        let created = gateway.submit(Command::Job(create.expect("legal"))).await.expect("no outage");
        let Ok(Answer::Job(job)) = created else { panic!("it is made: {created:?}") };
        job.id
    }

    #[tokio::test(start_paused = true)]
    async fn a_member_tells_what_it_has_seen_also_without_a_leader() {
        let (gateway, backend) = Gateway::in_memory();
        let service = Service::new(gateway);
        let ask = async |node_id: u64, kinds: &[&str]| {
            let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
            let filter = Some(EventFilter { kinds, ..Default::default() });
            let answer = service.of_cluster(Request::new(ClusterEventsRequest { filter, node_id })).await;
            answer.map(Response::into_inner).map_err(|status| status.code())
        };
        sleep(Duration::from_secs(1)).await;
        backend.depose();
        sleep(Duration::from_secs(1)).await;
        let told = ask(1, &[]).await.expect("it is a member");
        let kinds: Vec<&str> = told.events.iter().map(|event| event.kind.as_str()).collect();
        assert_eq!((kinds, told.of_node, told.told), (vec!["leader-known", "leader-gone"], 1, true));
        let gone = ask(1, &["leader-gone"]).await.expect("a kind of nodes").events;
        assert_eq!((gone.len(), gone[0].name.as_str()), (1, "node 1"));
        assert_eq!(ask(1, &["given-up"]).await, Err(Code::InvalidArgument), "a kind of jobs");
        assert_eq!(ask(9, &[]).await, Err(Code::FailedPrecondition));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_the_events_of_a_job_by_another_jobs_name() {
        let (gateway, _backend) = Gateway::in_memory();
        let addresses = member::Addresses {
            client: "127.0.0.1:1".into(),
            http: "127.0.0.1:2".into(),
            job_host: "127.0.0.1".into(),
            job_port_first: 8000,
            job_port_count: 100,
        };
        let announce = member::Command::Announce { node: NodeId(1), addresses };
        gateway.submit(Command::Member(announce)).await.expect("no outage").expect("not refused");
        let (own, other) = (created(&gateway, "own").await, created(&gateway, "other").await);
        let service = Service::new(gateway);
        let wait = Duration::from_secs(1);
        let follow = async |id: JobId| {
            let request = JobEventsRequest {
                job: "own".to_owned(),
                job_id: id.0,
                filter: None,
                after: Some(EventPosition { index: u64::MAX, sequence: 0 }),
                wait_ms: 1_000,
            };
            let began = Instant::now();
            let answer = service.of_job(Request::new(request)).await;
            (answer.map(drop).map_err(|status| status.code()), began.elapsed())
        };
        let (answer, took) = follow(own).await;
        assert_eq!(answer, Ok(()));
        assert!(took >= wait, "nothing has happened: {took:?}");
        for id in [other, JobId(u64::MAX)] {
            let (answer, took) = follow(id).await;
            assert_eq!(answer, Err(Code::NotFound));
            assert!(took < LOOK_EVERY, "{id}: {took:?}");
        }
    }
}
