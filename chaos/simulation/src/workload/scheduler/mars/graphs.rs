//! Graphs that make known numbers: submitted, looked at, heard of, stopped, read and deleted.

use std::time::Duration;

use rand::RngExt as _;
use tokio::time::{Instant, timeout_at};
use tripod_checkers::history::{
    Call, Content, Found, GraphAct, GraphName, GraphState, Outcome, Refusal, Reply, StreamId, Value as Made,
};
use tripod_proto::mars::v1 as pb;
use tripod_proto::mars::v1::scheduler_client::SchedulerClient;

use super::super::value::Value;
use super::call::{graph, record};
use super::{JOB, Machine, create, delete};
use crate::client::{Answer, Client, to_job};
use crate::witness::{micros, now};

const SESSION: &str = "graphs";
/// Graphs whose end was not seen yet.
const OPEN_MAX: usize = 4;
const NODES_MAX: u64 = 4;
/// How long one stream is listened to.
const LISTENS: Duration = Duration::from_secs(2);
/// When everything has settled every graph comes to its end within so long.
const ENDS_WITHIN: Duration = Duration::from_secs(30);

/// A graph that was submitted.
struct Graph {
    key: String,
    nodes: Vec<pb::ChunkNode>,
    target: String,
    makes: Option<u64>,
    content: Content,
}

/// What was told of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    At(GraphState),
    Gone,
    Nothing,
}

struct Graphs<'a> {
    machine: &'a Machine,
    client: Client,
    open: Vec<Graph>,
    /// Numbers that this client has not used yet.
    fresh: u64,
}

pub(super) async fn run(machine: &Machine, mut client: Client) {
    create(&mut client, SESSION).await;
    let mut graphs = Graphs { machine, client, open: Vec::new(), fresh: 0 };
    while !graphs.client.done() {
        graphs.step().await;
        graphs.client.pause(150).await;
    }
    let until = Instant::now() + ENDS_WITHIN;
    while let Some(open) = graphs.open.pop() {
        while Instant::now() < until && !graphs.is_over(&open).await {
            graphs.client.pause(200).await;
        }
    }
    delete(&mut graphs.client, SESSION).await;
}

impl Graphs<'_> {
    fn fresh(&mut self) -> u64 {
        self.fresh += 1;
        self.fresh
    }

    async fn step(&mut self) {
        let full = self.open.len() >= OPEN_MAX;
        if !full && (self.open.is_empty() || self.client.dice.random_ratio(1, 3)) {
            let graph = self.graph();
            if matches!(self.submit(&graph).await, Outcome::Ok(Reply::Graph(_)) | Outcome::Unknown(_)) {
                self.open.push(graph);
            }
            return;
        }
        let place = self.client.dice.random_range(0..self.open.len());
        let open = self.open.swap_remove(place);
        let is_over = match self.client.dice.random_range(0..12) {
            0 => {
                self.stop(&open).await;
                false
            }
            1 => {
                self.submit(&open).await;
                false
            }
            2 => {
                let mut other = self.graph();
                other.key.clone_from(&open.key);
                self.submit(&other).await;
                false
            }
            3..5 => {
                self.listen(&open).await;
                false
            }
            _ => self.is_over(&open).await,
        };
        if !is_over {
            self.open.push(open);
        }
    }

    /// Each node adds a number to what the one before it made, and perhaps to what others did.
    fn graph(&mut self) -> Graph {
        let key = format!("g{}", self.fresh());
        let count = self.client.dice.random_range(1..=NODES_MAX);
        let fails = self.client.dice.random_ratio(1, 8);
        let (mut nodes, mut numbers): (Vec<pb::ChunkNode>, Vec<u64>) = (Vec::new(), Vec::new());
        for place in 0..count {
            let number = self.client.dice.random_range(1..1000_u64);
            let before = nodes.len().checked_sub(1);
            let other = before.map(|before| self.client.dice.random_range(0..=before));
            let read: Vec<usize> = before.into_iter().chain(other).collect();
            let fails = fails && place == 0;
            numbers.push(number + read.iter().map(|input| numbers[*input]).sum::<u64>());
            nodes.push(pb::ChunkNode {
                key: format!("{key}.{place}"),
                op_type: if fails { "fail" } else { "sum" }.to_owned(),
                payload: number.to_string().into_bytes().into(),
                inputs: read.iter().map(|input| nodes[*input].key.clone()).collect(),
                retryable: true,
                ..Default::default()
            });
        }
        let target = format!("{key}.{}", count - 1);
        let makes = numbers.last().copied().filter(|_| !fails);
        let content = Content(self.fresh());
        Graph { key, nodes, target, makes, content }
    }

    fn call(open: &Graph, act: GraphAct) -> Call {
        Call::Graph { graph: GraphName::from(format!("{SESSION}/{}", open.key)), act }
    }

    async fn submit(&mut self, open: &Graph) -> Outcome {
        let request = pb::SubmitChunkGraphRequest {
            session_id: SESSION.to_owned(),
            graph_key: open.key.clone(),
            graph: Some(pb::ChunkGraph { nodes: open.nodes.clone() }),
            target_keys: vec![open.target.clone()],
            ..Default::default()
        };
        let act = GraphAct::Submit { content: open.content, makes: open.makes.map(Made), expires: false };
        let mut mars = SchedulerClient::new(self.client.channel());
        let sent = async move { mars.submit_chunk_graph(to_job(JOB, request)).await };
        let seen = |answer: &pb::SubmitGraphResponse| graph(answer.state(), None);
        record(&mut self.client, Self::call(open, act), sent, seen).await.0
    }

    async fn look(&mut self, open: &Graph) -> Told {
        let request = pb::GetGraphInfoRequest {
            session_id: SESSION.to_owned(),
            graph_key: open.key.clone(),
            filter_fields: vec!["state".to_owned(), "progress".to_owned()],
        };
        let mut mars = SchedulerClient::new(self.client.channel());
        let sent = async move { mars.get_chunk_graph_info(to_job(JOB, request)).await };
        let outcome = record(&mut self.client, Self::call(open, GraphAct::Look), sent, info_of).await.0;
        match outcome.reply() {
            Some(Reply::Graph(seen)) => Told::At(seen.state),
            Some(Reply::Refused(Refusal::Missing)) => Told::Gone,
            _ => Told::Nothing,
        }
    }

    async fn stop(&mut self, open: &Graph) {
        let (session_id, graph_key) = (SESSION.to_owned(), open.key.clone());
        let request = pb::StopGraphRequest { session_id, graph_key, ..Default::default() };
        let mut mars = SchedulerClient::new(self.client.channel());
        let sent = async move { mars.stop_chunk_graph(to_job(JOB, request)).await };
        let seen = |answer: &pb::StopGraphResponse| graph(answer.state(), None);
        record(&mut self.client, Self::call(open, GraphAct::Stop), sent, seen).await;
    }

    /// Hears of it for a while.
    async fn listen(&mut self, open: &Graph) {
        let request = pb::WatchGraphRequest { session_id: SESSION.to_owned(), graph_key: open.key.clone() };
        let until = Instant::now() + LISTENS;
        let stream = StreamId(self.fresh());
        let mut mars = SchedulerClient::new(self.client.channel());
        let sent = async move { mars.watch_graph(to_job(JOB, request)).await };
        let Answer::Yes(mut messages) = self.client.ask(sent).await else { return };
        while let Ok(Ok(Some(message))) = timeout_at(until, messages.message()).await {
            let Some(reply) = info_of(&message) else { continue };
            let call = Self::call(open, GraphAct::Hear { stream });
            let (witness, id) = (self.client.witness.clone(), self.client.id);
            witness.record(id, call, async { Outcome::Ok(reply) }).await;
        }
    }

    /// Looks whether it has ended; then it is read and deleted.
    async fn is_over(&mut self, open: &Graph) -> bool {
        match self.look(open).await {
            Told::Gone => true,
            Told::At(state) if state.is_end() => {
                if self.client.dice.random_ratio(1, 4) {
                    // What has ended stays as it is.
                    self.stop(open).await;
                }
                if state == GraphState::Succeeded {
                    self.fetch(open).await;
                }
                self.delete(open).await
            }
            Told::At(_) | Told::Nothing => false,
        }
    }

    /// Reads what it made, if a store of this machine has it still.
    async fn fetch(&mut self, open: &Graph) {
        let (session_id, keys) = (SESSION.to_owned(), vec![open.target.clone()]);
        let request = pb::GetMetasRequest { session_id, keys, ..Default::default() };
        let mut mars = SchedulerClient::new(self.client.channel());
        let sent = async move { mars.get_chunk_metas(to_job(JOB, request)).await };
        let pending = self.client.witness.recorder().invoke(
            micros(now()),
            self.client.id,
            Self::call(open, GraphAct::Fetch),
        );
        let Answer::Yes(metas) = self.client.ask(sent).await else { return };
        let object = metas.metas.first().and_then(|meta| meta.object_id);
        let shelves: Vec<_> = self.machine.stores.borrow().values().cloned().collect();
        let look = |object: u64| shelves.iter().find_map(|shelf| shelf.look(object).ok().flatten());
        if let Some(Value::Number(number)) = object.and_then(look) {
            let found = Found { value: Made(number), version: None, index: None };
            pending.complete(micros(now()), Outcome::Ok(Reply::Value(Some(found))));
            self.client.witness.count("results of graphs that were read");
        }
    }

    /// Whether it is gone.
    async fn delete(&mut self, open: &Graph) -> bool {
        let (session_id, graph_key) = (SESSION.to_owned(), open.key.clone());
        let request = pb::DeleteGraphRequest { session_id, graph_key, ..Default::default() };
        let mut mars = SchedulerClient::new(self.client.channel());
        let sent = async move { mars.delete_chunk_graph(to_job(JOB, request)).await };
        let done = |_: &pb::DeleteGraphResponse| Some(Reply::Done);
        let outcome = record(&mut self.client, Self::call(open, GraphAct::Delete), sent, done).await.0;
        if outcome.acknowledged() {
            self.look(open).await;
        }
        outcome.acknowledged()
    }
}

fn info_of(answer: &pb::GetGraphInfoResponse) -> Option<Reply> {
    let info = answer.info.as_ref()?;
    graph(info.state(), Some(info.progress))
}
