//! A node in memory, with everything that is looked at when something was committed there.
//!
//! A call goes the whole way: decoded to a command, encoded for the log, read by the log's decoder, applied, and answered. What
//! was committed is read back as it was written, to apply it never panics, and the state keeps its invariants and can be
//! written as a snapshot and read again.

use std::sync::Arc;

use tonic::service::Routes;
use tripod_coordination::Coordination;
use tripod_dial::{Dialler, Rule};
use tripod_gateway::{FrontEnds, Gateway, JobBinding, MemoryBackend, Mishap, PortKind, Replica as _};
use tripod_lines::Lines;
use tripod_native::Native;
use tripod_port::{Manners, Served};
use tripod_raft::fuzzing;
use tripod_state::ids::{DurationMs, FeatureLevel, JobId, NodeId, ServiceIncarnation, SessionId, TimeMs};
use tripod_state::mindspore::cluster::{self, Recipient};
use tripod_state::mindspore::{self, Role};
use tripod_state::session::Owner;
use tripod_state::{Command, Envelope, Scope, State, job, level, member, session};
use tripod_xds::Xds;

use crate::words;

/// When the node's clock begins. Any time would do that is not 0.
pub(crate) const BEGINS: TimeMs = TimeMs(1_700_000_000_000);

/// The job that [`beginning`] makes third.
const PARAMETER_SERVER: JobId = JobId(3);

/// What commands put there before anything is sent: two jobs, and a third with the cluster of a parameter server, a member, a
/// client's session, at a level.
#[must_use]
pub(crate) fn beginning(level: FeatureLevel) -> Vec<Command> {
    let spec = |tasks| job::Spec {
        heartbeat_timeout_ms: DurationMs(5_000),
        shutdown_timeout_ms: DurationMs(4_000),
        register_timeout_ms: DurationMs(6_000),
        ..job::Spec::of_tasks(tasks)
    };
    let create = |name: &str, spec| {
        let service = ServiceIncarnation(words::SERVICE);
        Command::Job(job::Command::Create { name: name.to_owned(), spec, service })
    };
    let addresses = member::Addresses {
        client: "10.0.0.1:7700".into(),
        http: "10.0.0.1:7701".into(),
        job_host: "10.0.0.1".into(),
        job_port_first: 7_800,
        job_port_count: 10,
    };
    let group = |name: &str, tasks| job::Group { name: name.to_owned(), tasks };
    let grouped = job::Spec { groups: vec![group("worker", 1), group("server", 2)], ..spec(3) };
    let node = |node: &str, role| {
        let scope = Scope { job: PARAMETER_SERVER, service: None };
        let request = cluster::Request::Register {
            node: node.to_owned(),
            role,
            ip: "127.0.0.1".to_owned(),
            port: 1,
            offered_rank: None,
            recovering: false,
        };
        Command::Mindspore(mindspore::Command::Cluster { scope, request })
    };
    let held = job::Spec { poll: job::Poll::Hold, recoverable: true, reconnect: true, ..spec(2) };
    vec![
        create("default", spec(4)),
        create("other", held),
        create("ps", grouped),
        Command::Level(level::Command::Raise { to: level, heard: vec![NodeId(1)] }),
        Command::Member(member::Command::Announce { node: NodeId(1), addresses }),
        Command::Session(session::Command::OpenFor {
            id: SessionId::of_client(u128::from(words::SESSION)),
            owner: Owner::Client(None),
        }),
        node("0", Role::Server),
        node("1", Role::Server),
        node("2", Role::Worker),
    ]
}

/// One node that leads.
pub(crate) struct Node {
    pub(crate) gateway: Gateway,
    pub(crate) backend: Arc<MemoryBackend>,
}

impl Node {
    /// Must be called within a runtime.
    ///
    /// # Panics
    /// The beginning is refused, or the newest level has no cluster of a parameter server.
    pub(crate) async fn start(level: FeatureLevel) -> Self {
        let (gateway, backend) = Gateway::in_memory_at(BEGINS);
        for command in beginning(level) {
            backend.propose(Envelope { stamp: None, command }).await.expect("it leads");
        }
        // The nodes know of each other.
        let orders = backend.state().cluster_orders(PARAMETER_SERVER).into_iter();
        let echoes = orders.filter_map(|Recipient { member, incarnation, orders, .. }| {
            Some(cluster::Echo { member, incarnation, order: *orders.first()? })
        });
        let scope = Scope { job: PARAMETER_SERVER, service: None };
        let are_there = backend.state().cluster(scope).is_ok_and(|cluster| cluster.present == 3);
        assert!(are_there || level < level::NEWEST, "the third job has a cluster");
        let decision = mindspore::Decision::Echoed { echoes: echoes.collect() };
        let command = Command::Mindspore(mindspore::Command::Lead { scope, decision });
        backend.propose(Envelope { stamp: None, command }).await.expect("it leads");
        backend.set_mishaps(|envelope| {
            fuzzing::check_committed(envelope);
            Mishap::Success
        });
        Self { gateway, backend }
    }

    /// All services of a client port, for the job `default`, with what its scheduler does while it leads. Nobody is reached
    /// to whom it would give orders. Must be called within a runtime.
    #[must_use]
    pub(crate) fn routes(&self) -> Routes {
        self.front_ends().routes(PortKind::Client, &client_binding())
    }

    /// The same as a port serves it, with what is called past the router.
    pub(crate) fn served(&self) -> Served {
        self.front_ends().served(PortKind::Client, &client_binding())
    }

    pub(crate) fn front_ends(&self) -> FrontEnds {
        let scheduler = tripod_ray::Scheduler::new(&self.gateway, Dialler::new(Rule::any()));
        let scheduler = scheduler.connecting(Lines::new().to_connect());
        let mars = tripod_mars::Mars::new(&self.gateway, &Dialler::new(Rule::any()));
        let front_ends = FrontEnds::of(vec![
            Box::new(Coordination::new(self.gateway.clone())),
            Box::new(Native::alone(self.gateway.clone())),
            Box::new(scheduler),
            Box::new(Xds::new(self.gateway.clone())),
            Box::new(mars.connecting(Lines::new().to_connect())),
        ]);
        for (_name, background) in front_ends.background() {
            tokio::spawn(background);
        }
        front_ends
    }

    /// # Panics
    /// The state breaks an invariant.
    pub(crate) fn check(&self) {
        check(&self.backend.state());
    }
}

/// The job of a client port's callers who name none.
fn client_binding() -> JobBinding {
    JobBinding::Named("default".into())
}

/// What a client port knows of the calls of [`Node::routes`].
#[must_use]
pub(crate) fn manners() -> Manners {
    Manners::of(&[
        tripod_coordination::MANNERS,
        tripod_mars::MANNERS,
        tripod_native::MANNERS,
        tripod_ray::MANNERS,
        tripod_xds::MANNERS,
    ])
}

/// What holds of every state.
///
/// # Panics
/// It does not.
pub(crate) fn check(state: &State) {
    for job in state.ray_jobs() {
        if let Some(Err(broken)) = state.ray(job).map(tripod_state::ray::Ray::check) {
            panic!("INV-32 of job {job}: {broken}");
        }
    }
    fuzzing::check_snapshot(state);
}
