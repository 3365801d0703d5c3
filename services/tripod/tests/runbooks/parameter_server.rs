//! A job `fl` with the cluster of a parameter server, on one node in memory, and the command line beside it. MindSpore's
//! nodes are played: what they say is put into the log as their front end would put it, and they answer what they are told
//! when the test says so.

use std::process::{Command as Process, Output, Stdio};

use tokio::runtime::{Builder, Runtime};
use tonic::service::Routes;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tripod_gateway::{Consistency, FrontEnd as _, Gateway, JobBinding};
use tripod_native::Native;
use tripod_state::ids::ServiceIncarnation;
use tripod_state::mindspore::cluster::{Echo, Recipient, Request, Scaling};
use tripod_state::mindspore::{self, Decision, Role};
use tripod_state::{Command, Scope, State, job, level};

/// As the pages call it.
pub(crate) const JOB: &str = "fl";

pub(crate) struct ParameterServer {
    /// Ends with it.
    runtime: Runtime,
    gateway: Gateway,
    scope: Scope,
    endpoint: String,
}

impl ParameterServer {
    /// With a worker and three servers, which know of each other.
    pub(crate) fn start() -> Self {
        let server = Self::without_nodes();
        for node in ["server-0", "server-1", "server-2"] {
            server.register(node);
        }
        server.register("worker-0");
        server.all_answer();
        server
    }

    pub(crate) fn without_nodes() -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
        let (gateway, scope, endpoint) = runtime.block_on(async {
            let (gateway, _) = Gateway::in_memory();
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            let endpoint = listener.local_addr().expect("bound").to_string();
            let binding = JobBinding::Named("default".to_owned());
            let routes = Native::alone(gateway.clone()).add_to(Routes::default(), &binding);
            tokio::spawn(
                Server::builder().add_routes(routes).serve_with_incoming(TcpIncoming::from(listener)),
            );
            let group = |name: &str, tasks| job::Group { name: name.to_owned(), tasks };
            let groups = vec![group("worker", 1), group("server", 3)];
            let spec = job::Spec { groups, ..job::Spec::of_tasks(4) };
            let create = job::Command::Create { name: JOB.to_owned(), spec, service: ServiceIncarnation(7) };
            let raise = level::Command::Raise { to: level::NEWEST, heard: Vec::new() };
            for command in [Command::Job(create), Command::Level(raise)] {
                gateway.submit(command).await.expect("no outage").expect("not refused");
            }
            let job = gateway.read(Consistency::Local, |state| state.job_named(JOB)).await;
            let job = job.expect("no outage").expect("created");
            (gateway, Scope { job, service: None }, endpoint)
        });
        Self { runtime, gateway, scope, endpoint }
    }

    /// A process of that id registers: a worker or a server, by its name.
    pub(crate) fn register(&self, node: &str) {
        let (role, number) = node.split_once('-').expect("ROLE-NUMBER");
        let role = if role == "worker" { Role::Worker } else { Role::Server };
        let port = 7_000 + number.parse::<u32>().expect("a number");
        self.say(Request::Register {
            node: node.to_owned(),
            role,
            ip: "10.0.0.9".to_owned(),
            port,
            offered_rank: None,
            recovering: false,
        });
    }

    pub(crate) fn event(&self, node: &str, event: u32) {
        self.say(Request::Event { node: node.to_owned(), incarnation: None, event });
    }

    /// These are told that the cluster scales, register again, and do what their programs do then; others leave.
    pub(crate) fn scale(&self, scaling: Scaling, nodes: &[&str], leaving: &[&str]) {
        self.all_answer();
        for node in nodes {
            self.register(node);
        }
        self.all_answer();
        for node in nodes.iter().chain(leaving) {
            self.say(Request::Done { node: (*node).to_owned(), incarnation: None, scaling });
        }
        for node in leaving {
            self.say(Request::Finish { node: (*node).to_owned(), incarnation: None });
        }
        self.all_answer();
    }

    /// A node is found silent.
    pub(crate) fn falls_silent(&self, node: &str) {
        let found =
            self.look(|state| state.cluster_node(self.scope, node).expect("the job").expect("the node"));
        self.decide(Decision::ClusterSilent { nodes: vec![(found.member, found.incarnation)] });
    }

    /// Until nothing is left to be told.
    pub(crate) fn all_answer(&self) {
        loop {
            let orders = self.look(|state| state.cluster_orders(self.scope.job));
            if orders.is_empty() {
                return;
            }
            let echo = |told: Recipient| Echo {
                member: told.member,
                incarnation: told.incarnation,
                order: told.orders[0],
            };
            self.decide(Decision::Echoed { echoes: orders.into_iter().map(echo).collect() });
        }
    }

    /// `tripod` with these words, for this node.
    pub(crate) fn process(&self, words: &[&str]) -> Process {
        let mut process = Process::new(env!("CARGO_BIN_EXE_tripod"));
        process.args(words).env("TRIPOD_ENDPOINTS", &self.endpoint).stdin(Stdio::null());
        process
    }

    pub(crate) fn run(&self, words: &[&str]) -> Output {
        self.process(words).output().expect("the command runs")
    }

    fn say(&self, request: Request) {
        self.submit(mindspore::Command::Cluster { scope: self.scope, request });
    }

    fn decide(&self, decision: Decision) {
        self.submit(mindspore::Command::Lead { scope: self.scope, decision });
    }

    fn submit(&self, command: mindspore::Command) {
        let submitted = self.runtime.block_on(self.gateway.submit(Command::Mindspore(command)));
        submitted.expect("no outage").expect("not refused");
    }

    fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        self.runtime.block_on(self.gateway.read(Consistency::Local, look)).expect("no outage")
    }
}
