//! A node of ours that serves one job's port, and what it tells nodes of MindSpore.

use std::sync::Arc;

use tokio::io::DuplexStream;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tripod_gateway::{FrontEnds, Gateway, JobBinding, MemoryBackend};
use tripod_lines::Lines;
use tripod_mindspore::{Mindspore, PORT};
use tripod_port::{Listener, serve};
use tripod_state::ids::{NodeId, ServiceIncarnation};
use tripod_state::mindspore::cluster::{Echo, NodeView, Order, Scaling, View};
use tripod_state::mindspore::{self, Decision};
use tripod_state::{Command, Reply, Scope, job, level};

use crate::nodes::Client;

const PLACE: &str = "node:8400";

/// The front end, whose leader does nothing: what it would do is done by the tests.
fn front_end(gateway: &Gateway) -> Mindspore {
    Mindspore::new(gateway)
}

/// One node, and one job of so many workers and servers.
pub(crate) struct Cluster {
    pub(crate) backend: Arc<MemoryBackend>,
    pub(crate) scope: Scope,
    gateway: Gateway,
    lines: Lines,
    stop: oneshot::Sender<()>,
    tasks: JoinSet<()>,
}

impl Cluster {
    pub(crate) async fn of(workers: u32, servers: u32) -> Self {
        let (gateway, backend) = Gateway::in_memory();
        let submit = async |command| gateway.submit(command).await.unwrap().unwrap();
        submit(Command::Level(level::Command::Raise { to: level::NEWEST, heard: vec![NodeId(1)] })).await;
        let group = |name: &str, tasks| job::Group { name: name.into(), tasks };
        let groups = vec![group("worker", workers), group("server", servers)];
        let spec = job::Spec { groups, ..job::Spec::of_tasks(workers + servers) };
        submit(Command::Job(job::Command::Create {
            name: "ms".into(),
            spec,
            service: ServiceIncarnation(7),
        }))
        .await;
        let job = backend.state().job_named("ms").unwrap();
        let front_ends = FrontEnds::of(vec![Box::new(front_end(&gateway))]);
        let served = front_ends.served(PORT, &JobBinding::Fixed(job));
        let lines = Lines::new();
        let listener = Listener::within(lines.listen(PLACE));
        let (stop, stopped) = oneshot::channel::<()>();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { serve(listener, served, async { drop(stopped.await) }).await.unwrap() });
        Self { backend, scope: Scope { job, service: None }, gateway, lines, stop, tasks }
    }

    pub(crate) fn dial(&self) -> DuplexStream {
        self.lines.dial(PLACE).unwrap()
    }

    pub(crate) fn connect(&self) -> Client {
        Client::new(self.dial())
    }

    /// How far the cluster is.
    pub(crate) fn view(&self) -> View {
        self.backend.state().cluster(self.scope).unwrap()
    }

    pub(crate) fn node(&self, node: &str) -> Option<NodeView> {
        self.backend.state().cluster_node(self.scope, node).unwrap()
    }

    pub(crate) async fn decide(&self, decision: Decision) -> Reply {
        let command = mindspore::Command::Lead { scope: self.scope, decision };
        self.gateway.submit(Command::Mindspore(command)).await.unwrap()
    }

    /// The leader finds that a node is silent.
    pub(crate) async fn lose(&self, node: &str) {
        let NodeView { member, incarnation, .. } = self.node(node).unwrap();
        self.decide(Decision::ClusterSilent { nodes: vec![(member, incarnation)] }).await.unwrap();
    }

    /// Tells everybody what is to be told, until nobody is to be told anything that the others can hear now. Who was told
    /// what, in words.
    pub(crate) async fn tell(&self) -> Vec<String> {
        let mut told = Vec::new();
        loop {
            let mut echoes = Vec::new();
            for recipient in self.backend.state().cluster_orders(self.scope.job) {
                let order = recipient.orders[0];
                told.push(format!("{} {}", recipient.node.as_str(), word(order)));
                let (member, incarnation) = (recipient.member, recipient.incarnation);
                echoes.push(Echo { member, incarnation, order });
            }
            if echoes.is_empty() {
                told.sort();
                return told;
            }
            self.decide(Decision::Echoed { echoes }).await.unwrap();
        }
    }

    /// Stops the port; the rest of the node goes with this value.
    pub(crate) fn stop(self) -> JoinSet<()> {
        self.stop.send(()).unwrap();
        self.tasks
    }
}

fn word(order: Order) -> String {
    let direction = |scaling| match scaling {
        Scaling::Out => "out",
        Scaling::In => "in",
    };
    match order {
        Order::Scale { scaling, workers, servers, leaving, .. } => {
            let leaving = if leaving { " and leaves" } else { "" };
            format!("scales {} to {workers}+{servers}{leaving}", direction(scaling))
        }
        Order::Metadata { state, .. } => format!("learns of all, {}", state.word()),
        Order::ScaleDone { scaling } => format!("has scaled {}", direction(scaling)),
        Order::Switch { .. } => "switches".to_owned(),
        Order::Event { sequence, event } => format!("hears event {event} as number {sequence}"),
        Order::Finish => "may go".to_owned(),
    }
}
