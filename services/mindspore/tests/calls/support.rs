//! One node of Tripod that leads, one job, and the nodes of its cluster.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tripod_dial::{Dialler, Rule};
use tripod_gateway::{FrontEnds, Gateway, MemoryBackend};
use tripod_lines::Lines;
use tripod_mindspore::{Bytestream, Dialling, Mindspore, Patience};
use tripod_state::ids::{NodeId, ServiceIncarnation};
use tripod_state::job::Group;
use tripod_state::mindspore::cluster::{self, NodeView, Request, Scaling, View};
use tripod_state::mindspore::{self, Answer, Decision, Role};
use tripod_state::{Command, Scope, job, level};

use crate::played::Played;

/// Nobody sends heartbeats here, and nobody is missed for that.
pub(crate) const PATIENT: Patience =
    Patience { ttl: Duration::from_secs(1 << 20), failover_min: Duration::from_secs(1 << 20) };

pub(crate) struct Cluster {
    pub(crate) backend: Arc<MemoryBackend>,
    pub(crate) gateway: Gateway,
    pub(crate) mindspore: Mindspore,
    pub(crate) scope: Scope,
    pub(crate) lines: Lines,
    places: u32,
    _tasks: JoinSet<()>,
}

impl Cluster {
    pub(crate) async fn of(workers: u32, servers: u32) -> Self {
        Self::within(workers, servers, PATIENT).await
    }

    pub(crate) async fn within(workers: u32, servers: u32, patience: Patience) -> Self {
        let (gateway, backend) = Gateway::in_memory();
        let submit = async |command| gateway.submit(command).await.unwrap().unwrap();
        submit(Command::Level(level::Command::Raise { to: level::NEWEST, heard: vec![NodeId(1)] })).await;
        let group = |name: &str, tasks| Group { name: name.into(), tasks };
        let mut groups = vec![group("worker", workers), group("server", servers)];
        groups.retain(|group| group.tasks > 0);
        let spec = job::Spec { groups, ..job::Spec::of_tasks(workers + servers) };
        let create = job::Command::Create { name: "ms".into(), spec, service: ServiceIncarnation(7) };
        submit(Command::Job(create)).await;
        let job = backend.state().job_named("ms").unwrap();
        let lines = Lines::new();
        let network = lines.clone();
        let dial = move |place: String| -> Dialling {
            let line = network.dial(&place).map(|line| Box::new(line) as Box<dyn Bytestream>);
            Box::pin(std::future::ready(line))
        };
        let dialler = Dialler::new(Rule::any());
        let mindspore = Mindspore::with_patience(&gateway, &dialler, patience).dialling(Arc::new(dial));
        let mut tasks = JoinSet::new();
        for (_name, background) in FrontEnds::of(vec![Box::new(mindspore.clone())]).background() {
            tasks.spawn(background);
        }
        let scope = Scope { job, service: None };
        Self { backend, gateway, mindspore, scope, lines, places: 0, _tasks: tasks }
    }

    pub(crate) async fn ask(&self, request: Request) -> Answer {
        let command = mindspore::Command::Cluster { scope: self.scope, request };
        match self.gateway.submit(Command::Mindspore(command)).await.unwrap().unwrap() {
            tripod_state::Answer::Mindspore(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn decide(&self, decision: Decision) {
        let command = mindspore::Command::Lead { scope: self.scope, decision };
        self.gateway.submit(Command::Mindspore(command)).await.unwrap().unwrap();
    }

    /// A node that begins at a place of its own.
    pub(crate) async fn start(&mut self, node: &str) -> Played {
        self.places += 1;
        let played = Played::at(&format!("10.0.0.1:{}", self.places), &self.lines);
        self.register(node, self.places).await;
        played
    }

    /// A node says that it listens there: workers begin with a w.
    pub(crate) async fn register(&self, node: &str, port: u32) {
        self.register_at(node, "10.0.0.1", port).await;
    }

    /// The same at another address.
    pub(crate) async fn register_at(&self, node: &str, ip: &str, port: u32) {
        let role = if node.starts_with('w') { Role::Worker } else { Role::Server };
        let (node, ip) = (node.to_owned(), ip.to_owned());
        let register = Request::Register { node, role, ip, port, offered_rank: None, recovering: false };
        assert!(matches!(self.ask(register).await, Answer::Joined { .. }));
    }

    /// All of these, which know of each other then, and what they were told until then is forgotten.
    pub(crate) async fn start_all(&mut self, nodes: &[&str]) -> Vec<Played> {
        let mut played = Vec::new();
        for node in nodes {
            played.push(self.start(node).await);
        }
        self.settled().await;
        for node in &played {
            node.heard();
        }
        played
    }

    pub(crate) async fn event(&self, from: &str, event: u32) {
        let request = Request::Event { node: from.to_owned(), incarnation: None, event };
        assert!(matches!(self.ask(request).await, Answer::Accepted { .. }));
    }

    pub(crate) async fn done(&self, node: &str, scaling: Scaling) {
        let request = Request::Done { node: node.to_owned(), incarnation: None, scaling };
        assert_eq!(self.ask(request).await, Answer::Noted);
    }

    pub(crate) async fn finish(&self, node: &str) {
        let request = Request::Finish { node: node.to_owned(), incarnation: None };
        assert_eq!(self.ask(request).await, Answer::Noted);
    }

    pub(crate) fn view(&self) -> View {
        self.backend.state().cluster(self.scope).unwrap()
    }

    pub(crate) fn node(&self, node: &str) -> NodeView {
        self.backend.state().cluster_node(self.scope, node).unwrap().unwrap()
    }

    /// The nodes that are still to be told something.
    pub(crate) fn untold(&self) -> Vec<cluster::Recipient> {
        self.backend.state().cluster_orders(self.scope.job)
    }

    /// Waits until nobody is to be told anything.
    pub(crate) async fn settled(&self) {
        tripod_wait::until("all are told", || self.untold().is_empty().then_some(())).await;
    }
}

/// What each of these was told.
pub(crate) fn heard(nodes: &[Played]) -> Vec<Vec<String>> {
    nodes.iter().map(Played::heard).collect()
}
