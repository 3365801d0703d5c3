//! Two nodes over one state in memory. What goes to their ports for MindSpore and comes from there passes through hands that
//! follow a script.

use std::sync::Arc;

use bytes::BytesMut;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tripod_agent::AgentConfig;
use tripod_coordination::Coordination;
use tripod_dial::{Dialler, Rule};
use tripod_gateway::{FrontEnds, Gateway, JobBinding, MemoryBackend, PortKind};
use tripod_mindspore::{Mindspore, PORT};
use tripod_mindspore_wire::{Mark, Word, rpc0};
use tripod_native::{JobPorts, Native, OwnPort};
use tripod_port::Listener;
use tripod_state::ids::{JobId, NodeId, ServiceIncarnation};
use tripod_state::{Command, Scope, job, level};

use super::client::next;
use crate::support::lines;

const NODES: [u16; 2] = [1, 2];

/// What becomes of one frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// It does not reach the node, and the connection breaks.
    RequestLost,
    /// The node has it, and the connection breaks before its answer comes.
    AnswerLost,
    /// The same after a part of the answer.
    AnswerCut,
    /// The node does not have it, and the agent is told this.
    Told(Word),
}

/// What becomes of the frames of a test. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct Script(Arc<Mutex<Frames>>);

#[derive(Default)]
struct Frames {
    /// The frame of this number has this fault.
    fault: Option<(usize, Fault)>,
    /// What agents said with each.
    marks: Vec<Option<Mark>>,
}

impl Script {
    pub(super) fn of(frame: usize, fault: Fault) -> Self {
        let script = Self::default();
        script.0.lock().fault = Some((frame, fault));
        script
    }

    pub(super) fn marks(&self) -> Vec<Option<Mark>> {
        self.0.lock().marks.clone()
    }

    fn note(&self, frame: &rpc0::Frame) -> Option<Fault> {
        let mut frames = self.0.lock();
        let number = frames.marks.len();
        frames.marks.push(frame.mark());
        frames.fault.filter(|(at, _)| *at == number).map(|(_, fault)| fault)
    }
}

pub(super) struct Nodes {
    pub(super) backend: Arc<MemoryBackend>,
    pub(super) scope: Scope,
    script: Script,
    /// What nodes say of their ports.
    ports: Vec<watch::Sender<JobPorts>>,
    tasks: JoinSet<()>,
}

fn client_port(node: u16) -> String {
    format!("node-{node}:7700")
}

/// Where agents find a node's port for MindSpore.
fn found_at(node: u16) -> String {
    format!("node-{node}:8400")
}

/// Where it is.
fn served_at(node: u16) -> String {
    format!("node-{node}:8401")
}

impl Nodes {
    /// With the job `train` of two workers.
    pub(super) async fn start(script: Script) -> Self {
        let (gateway, backend) = Gateway::in_memory();
        let submit = async |command| gateway.submit(command).await.expect("in memory").expect("legal");
        submit(Command::Level(level::Command::Raise { to: level::NEWEST, heard: vec![NodeId(1)] })).await;
        let (spec, service) = (job::Spec::of_tasks(2), ServiceIncarnation(7));
        submit(Command::Job(job::Command::Create { name: "train".into(), spec, service })).await;
        let job = backend.state().job_named("train").expect("created");
        let ports = NODES.map(|node| watch::Sender::new(ports_of(job, node))).into();
        let scope = Scope { job, service: None };
        let mut nodes = Self { backend, scope, script, ports, tasks: JoinSet::new() };
        let mindspore = Mindspore::new(&gateway, &Dialler::new(Rule::any()));
        for (node, ports) in NODES.into_iter().zip(nodes.ports.clone()) {
            nodes.serve(node, &gateway, mindspore.clone(), &ports);
        }
        nodes
    }

    fn serve(&mut self, node: u16, gateway: &Gateway, mindspore: Mindspore, ports: &watch::Sender<JobPorts>) {
        let native = Native::new(gateway.clone(), ports.subscribe(), watch::channel(None).1);
        let front_ends = FrontEnds::of(vec![
            Box::new(Coordination::new(gateway.clone())),
            Box::new(native),
            Box::new(mindspore),
        ]);
        let binding = JobBinding::Named("default".into());
        self.open(&client_port(node), front_ends.served(PortKind::Client, &binding));
        self.open(&served_at(node), front_ends.served(PORT, &JobBinding::Fixed(self.scope.job)));
        self.hands(node);
    }

    fn open(&mut self, place: &str, served: tripod_port::Served) {
        let listener = Listener::within(lines().listen(place));
        self.tasks.spawn(async move {
            drop(tripod_port::serve(listener, served, std::future::pending()).await);
        });
    }

    /// Whoever comes to a node's port for MindSpore is passed on to it, by the script.
    fn hands(&mut self, node: u16) {
        let (mut arrivals, script) = (lines().listen(&found_at(node)), self.script.clone());
        self.tasks.spawn(async move {
            let mut carried = JoinSet::new();
            while let Some(agent) = arrivals.next().await {
                carried.spawn(carry(agent, node, script.clone()));
            }
        });
    }

    /// The agent is to use these, the first one first.
    pub(super) fn config(&self, config: AgentConfig) -> AgentConfig {
        AgentConfig { cluster: NODES.map(client_port).into(), mindspore: Some("agent:8400".into()), ..config }
    }

    /// Ends a node as `kill -9` does.
    pub(super) fn kill(&self, node: u16) {
        lines().close(&client_port(node));
        self.close_port(node);
    }

    /// Its connections to MindSpore's nodes break, and nobody takes new ones.
    pub(super) fn close_port(&self, node: u16) {
        lines().close(&found_at(node));
        lines().close(&served_at(node));
    }

    /// A node says that it has no port for the job, or that it has it again.
    pub(super) fn tell_port(&self, node: u16, is_open: bool) {
        let job = self.scope.job;
        self.ports[usize::from(node) - 1].send_replace(if is_open {
            ports_of(job, node)
        } else {
            JobPorts::default()
        });
    }

    pub(super) fn entry(&self, name: &str) -> Option<bytes::Bytes> {
        self.backend.state().topology_metadata(self.scope, name).expect("the job is there")
    }

    pub(super) fn close(self) {
        for node in NODES {
            self.kill(node);
        }
    }
}

fn ports_of(job: JobId, node: u16) -> JobPorts {
    let own = OwnPort { job, protocol: "mindspore", address: found_at(node), reason: None };
    JobPorts { own: vec![own], ..JobPorts::default() }
}

/// One connection of an agent, frame by frame.
async fn carry(mut agent: DuplexStream, node: u16, script: Script) {
    let Ok(mut port) = lines().dial(&served_at(node)) else { return };
    let (mut asked, mut answered) = (BytesMut::new(), BytesMut::new());
    while let Some(frame) = next::<rpc0::Frame>(&mut agent, &mut asked).await {
        let fault = script.note(&frame);
        let answer = match fault {
            Some(Fault::RequestLost) => return,
            Some(Fault::Told(word)) => rpc0::Frame::of_word(word),
            None | Some(Fault::AnswerLost | Fault::AnswerCut) => {
                port.write_all(&frame.encode()).await.expect("the node listens");
                let answer = tokio::select! {
                    biased;
                    answer = next::<rpc0::Frame>(&mut port, &mut answered) => answer,
                    () = left(&mut agent, &mut asked) => return,
                };
                let Some(answer) = answer else { return };
                answer
            }
        };
        let mut bytes = answer.encode();
        match fault {
            Some(Fault::AnswerLost) => return,
            Some(Fault::AnswerCut) => {
                let half = bytes.split_to(bytes.len() / 2);
                agent.write_all(&half).await.expect("the agent listens");
                return;
            }
            _ => agent.write_all(&bytes).await.expect("the agent listens"),
        }
    }
}

/// Resolves when an agent ends a connection. It says nothing there before it has its answer.
async fn left(agent: &mut DuplexStream, asked: &mut BytesMut) {
    while agent.read_buf(asked).await.unwrap_or(0) > 0 {}
}
