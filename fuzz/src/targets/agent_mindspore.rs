//! A node-local agent between nodes of MindSpore and nodes that answer anything.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tripod_agent::{Agent, AgentConfig, ConnectionLimits, Listen, MemoryLimits, Poll, Timing};
use tripod_coordination::Coordination;
use tripod_gateway::{FrontEnds, JobBinding, PortKind};
use tripod_lines::Lines;
use tripod_mindspore::wire::{Word, ps, rpc0};
use tripod_native::{JobPorts, Native, OwnPort};
use tripod_port::Listener;
use tripod_state::level;

use super::mindspore::{ps_frame, rpc0_frame};
use crate::node::Node;
use crate::source::Source;
use crate::target::Target;
use crate::{mutate, pieces, runtime};

/// Pieces by turns: what a client says, and what its node answers. An empty piece of a client goes to the next connection, and
/// an empty one of the node ends the agent's.
pub(crate) const FRAMES: Target = Target {
    name: "agent-mindspore",
    what: "frames of nodes of MindSpore at an agent, and what its nodes answer",
    generate,
    run,
};

const AGENT: &str = "agent:1";
const AGENT_OF_MINDSPORE: &str = "agent:8400";
const NODE: &str = "node:1";
const NODE_OF_MINDSPORE: &str = "node:8400";
/// Longer than a message is held, and a frame unfinished.
const LONG: Duration = Duration::from_secs(60);

const WORDS: &[Word] = &[Word::Silent, Word::SessionGone, Word::Unknown, Word::Refused];

fn generate(source: &mut Source) -> Vec<u8> {
    let mut parts = Vec::new();
    for _ in 0..1 + source.below(8) {
        for is_word in [false, source.one_in(2)] {
            let mut bytes = match (is_word, source.one_in(2)) {
                (false, false) => rpc0_frame(source),
                (false, true) => ps_frame(source),
                (true, false) => rpc0::Frame::of_word(*source.pick(WORDS)).encode().into(),
                (true, true) => ps::Parts::of_word(*source.pick(WORDS)).encode().into(),
            };
            if source.one_in(6) {
                mutate::mutate(source, &mut bytes);
            }
            if source.one_in(8) {
                bytes.clear();
            }
            parts.push(bytes);
        }
    }
    pieces::join(0, &parts)
}

type Answers = Arc<Mutex<VecDeque<Vec<u8>>>>;

fn run(input: &[u8]) {
    let (_, parts) = pieces::split(input);
    runtime::run(async {
        let lines = Lines::new();
        let node = Node::start(level::NEWEST).await;
        let mut tasks = JoinSet::new();
        serve(&node, &lines, &mut tasks);
        let answers = Answers::default();
        tasks.spawn(answer(lines.clone(), Arc::clone(&answers)));
        let dial = lines.clone();
        let arrivals = Listener::within(lines.listen(AGENT));
        let agent = Agent::within(config(), arrivals, Arc::new(move |place: &str| dial.dial(place)));
        let of_mindspore = Listener::within(lines.listen(AGENT_OF_MINDSPORE));
        let agent = agent.expect("a configuration").with_mindspore(of_mindspore);
        let status = agent.status_handle();
        let running = tokio::spawn(agent.run(std::future::pending()));
        let mut clients = Vec::new();
        for part in parts.chunks(2) {
            let &[said, answered] = part else { break };
            answers.lock().expect("nobody panics with it").push_back(answered.to_vec());
            if said.is_empty() || clients.is_empty() {
                let (mut reader, writer) =
                    tokio::io::split(lines.dial(AGENT_OF_MINDSPORE).expect("it listens"));
                tasks.spawn(async move {
                    drop(tokio::io::copy(&mut reader, &mut tokio::io::sink()).await);
                });
                clients.push(writer);
            }
            if let Some(client) = clients.last_mut() {
                // A connection that the agent has ended takes nothing.
                drop(client.write_all(said).await);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        tokio::time::sleep(LONG).await;
        assert!(!running.is_finished(), "the agent ended");
        for mut client in clients {
            drop(client.shutdown().await);
        }
        tokio::time::sleep(LONG).await;
        assert_eq!(status.status().held_bytes, 0, "bytes of nobody are counted");
        running.abort();
        node.check();
        tasks.shutdown().await;
    });
}

fn config() -> AgentConfig {
    AgentConfig {
        listen: vec![Listen::Tcp(AGENT.into())],
        mindspore: Some(AGENT_OF_MINDSPORE.into()),
        allow_remote: true,
        socket_uids: Vec::new(),
        cluster: vec![NODE.into()],
        job: "default".into(),
        spec: None,
        poll: Poll::Hold,
        // Little, so that what is refused for want of room is tried, too.
        memory: MemoryLimits::of(1 << 20),
        connections: ConnectionLimits::none(),
        timing: Timing { max_outage: Duration::from_secs(10), ..Timing::default() },
    }
}

/// The client port of a node that says where it serves the job to MindSpore.
fn serve(node: &Node, lines: &Lines, tasks: &mut JoinSet<()>) {
    let job = node.backend.state().job_named("default").expect("it is there from the beginning");
    let own = OwnPort { job, protocol: "mindspore", address: NODE_OF_MINDSPORE.into(), reason: None };
    let ports = watch::channel(JobPorts { own: vec![own], ..JobPorts::default() }).1;
    let front_ends = FrontEnds::of(vec![
        Box::new(Coordination::new(node.gateway.clone())),
        Box::new(Native::new(node.gateway.clone(), ports, watch::channel(None).1)),
    ]);
    let served = front_ends.served(PortKind::Client, &JobBinding::Named("default".into()));
    let arrivals = Listener::within(lines.listen(NODE));
    tasks.spawn(async move {
        drop(tripod_port::serve(arrivals, served, std::future::pending()).await);
    });
}

/// A port for MindSpore that answers whatever comes with the next answer.
async fn answer(lines: Lines, answers: Answers) {
    let mut arrivals = lines.listen(NODE_OF_MINDSPORE);
    let mut connections = JoinSet::new();
    while let Some(mut agent) = arrivals.next().await {
        let answers = Arc::clone(&answers);
        connections.spawn(async move {
            let mut bytes = vec![0; 64 << 10];
            while agent.read(&mut bytes).await.is_ok_and(|read| read > 0) {
                let next = answers.lock().expect("nobody panics with it").pop_front();
                match next {
                    Some(next) if !next.is_empty() => drop(agent.write_all(&next).await),
                    _ => return,
                }
            }
        });
    }
}
