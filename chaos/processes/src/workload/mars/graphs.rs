//! Clients that submit graphs, look at them, hear of them, stop some, read what they make, and delete them.

use std::time::Duration;

use rand::RngExt as _;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use tonic::{Code, Status};
use tripod_checkers::history::{
    Call, ClientId, Content, Found, GraphAct, GraphName, GraphSeen, GraphState, Outcome, Refusal, Reply,
    StreamId, Value,
};
use tripod_proto::mars::v1 as pb;

use super::super::setting::Setting;
use super::super::wire::Attempt;
use super::build::{self, Made, Plan};
use super::caller::{Caller, graph_seen, missing, missing_or_busy, state_of};
use super::{AGAIN_PAUSE, LAST_PATIENCE, Mars, fetch};

const CLIENTS: usize = 3;
const REST_MAX_MS: u64 = 150;
/// Graphs of a client whose end it has not seen.
const OPEN_MAX: usize = 6;
/// Graphs that it keeps for others to read from.
const KEPT_MAX: usize = 3;
/// How long a call may take.
const LIMIT: Duration = Duration::from_secs(5);
/// How long one stream is listened to.
const LISTENS: Duration = Duration::from_secs(3);
/// How long the service waits for a graph's end in one call.
const WAITS_S: i64 = 2;
/// How long results are kept of a graph that is deleted by itself.
const EXPIRES_S: i64 = 4;
/// How often a submission is tried whose outcome is not known.
const SUBMITS_MAX: usize = 5;

pub(super) fn start(setting: &Setting, clients: &mut JoinSet<()>) {
    for _ in 0..CLIENTS {
        clients.spawn(run(setting.clone(), setting.client_id()));
    }
}

async fn run(setting: Setting, id: ClientId) {
    let Some(caller) = Caller::begin(setting, id).await else { return };
    let mut client = Client { caller, open: Vec::new(), kept: Vec::new() };
    while client.caller.setting.goes_on() {
        client.step().await;
        client.caller.rest(REST_MAX_MS).await;
    }
    client.finish().await;
}

/// A graph that was submitted.
struct Graph {
    key: String,
    name: GraphName,
    content: Content,
    plan: Plan,
    expires: bool,
}

/// What a client was told of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    At(GraphState),
    /// It is not there.
    Gone,
    Nothing,
}

struct Client {
    caller: Caller,
    open: Vec<Graph>,
    /// Those that have succeeded and are not deleted yet.
    kept: Vec<Graph>,
}

impl Client {
    async fn step(&mut self) {
        let full = self.open.len() >= OPEN_MAX;
        if full || (!self.open.is_empty() && self.caller.random.random_ratio(2, 3)) {
            let place = self.caller.random.random_range(0..self.open.len());
            let graph = self.open.swap_remove(place);
            match self.follow(&graph).await {
                Told::At(state) if state.is_end() => self.ended(graph, state).await,
                Told::At(_) | Told::Nothing => self.open.push(graph),
                Told::Gone => {}
            }
        } else if self.kept.len() >= KEPT_MAX {
            let graph = self.kept.remove(0);
            self.delete(&graph).await;
        } else {
            self.submit().await;
        }
    }

    /// Until the end of all of them was seen.
    async fn finish(&mut self) {
        let deadline = Instant::now() + LAST_PATIENCE;
        while let Some(graph) = self.open.pop() {
            loop {
                match self.look(&graph).await {
                    Told::At(state) if state.is_end() => {
                        self.ended(graph, state).await;
                        break;
                    }
                    Told::Gone => break,
                    _ if Instant::now() >= deadline => break,
                    _ => tokio::time::sleep(AGAIN_PAUSE).await,
                }
            }
        }
        while let Some(graph) = self.kept.pop() {
            self.delete(&graph).await;
        }
    }

    async fn submit(&mut self) {
        let key = format!("g{}", self.caller.setting.fresh());
        let made = (self.caller.random.random_ratio(1, 3)).then(|| self.made()).flatten();
        let plan = build::plan(&mut self.caller.random, &key, made.as_ref());
        let name = GraphName::from(format!("{}/{key}", self.caller.session));
        let expires = self.caller.random.random_ratio(1, 8);
        let content = Content(self.caller.setting.fresh());
        let graph = Graph { key, name, content, plan, expires };
        for _ in 0..SUBMITS_MAX {
            match self.hand_over(&graph, graph.content, &graph.plan).await {
                Outcome::Ok(Reply::Graph(_)) => {
                    self.open.push(graph);
                    return;
                }
                Outcome::Unknown(_) => {}
                // A chunk that it was to read is not there any more, or no worker lives.
                Outcome::Ok(_) | Outcome::Fail(_) => return,
            }
            tokio::time::sleep(AGAIN_PAUSE).await;
        }
    }

    /// A chunk that another graph may read.
    fn made(&mut self) -> Option<Made> {
        let place = self.caller.random.random_range(0..self.kept.len().max(1));
        let graph = self.kept.get(place)?;
        Some(Made { key: graph.plan.target.clone(), number: graph.plan.makes? })
    }

    async fn hand_over(&mut self, graph: &Graph, content: Content, plan: &Plan) -> Outcome {
        let act = GraphAct::Submit { content, makes: plan.makes.map(Value), expires: graph.expires };
        let ttl = prost_types::Duration { seconds: EXPIRES_S, nanos: 0 };
        let request = pb::SubmitChunkGraphRequest {
            session_id: self.caller.session.clone(),
            graph_key: graph.key.clone(),
            graph: Some(pb::ChunkGraph { nodes: plan.nodes.clone() }),
            target_keys: vec![plan.target.clone()],
            options: Some(pb::GraphOptions {
                result_ttl: graph.expires.then_some(ttl),
                ..Default::default()
            }),
            ..Default::default()
        };
        let call = Call::Graph { graph: graph.name.clone(), act };
        let exists = |status: &Status| (status.code() == Code::AlreadyExists).then_some(Refusal::Exists);
        let seen = |answer: &pb::SubmitGraphResponse| {
            let state = state_of(answer.state())?;
            Ok(Reply::Graph(GraphSeen { state, progress_millionths: None }))
        };
        let send = |mut mars: Mars| async move { mars.submit_chunk_graph(request).await };
        self.caller.record(call, LIMIT, send, seen, exists).await.0
    }

    /// Does something with a graph, and tells how it is.
    async fn follow(&mut self, graph: &Graph) -> Told {
        match self.caller.random.random_range(0..20) {
            8..12 => self.wait(graph).await,
            12..16 => self.listen(graph).await,
            16 => self.stop(graph).await,
            // What expires could be made anew.
            17 if !graph.expires => {
                self.hand_over(graph, graph.content, &graph.plan).await;
                Told::Nothing
            }
            18 if !graph.expires => {
                // The same name with other bytes.
                let mut other = graph.plan.clone();
                if let Some(node) = other.nodes.first_mut() {
                    node.payload = b"100000".to_vec().into();
                }
                let content = Content(self.caller.setting.fresh());
                self.hand_over(graph, content, &other).await;
                Told::Nothing
            }
            // It may run, and then that is refused.
            19 => {
                self.delete(graph).await;
                self.look(graph).await
            }
            _ => self.look(graph).await,
        }
    }

    async fn look(&mut self, graph: &Graph) -> Told {
        let request = pb::GetGraphInfoRequest {
            session_id: self.caller.session.clone(),
            graph_key: graph.key.clone(),
            filter_fields: vec!["state".to_owned(), "progress".to_owned()],
        };
        let call = Call::Graph { graph: graph.name.clone(), act: GraphAct::Look };
        let send = |mut mars: Mars| async move { mars.get_chunk_graph_info(request).await };
        let seen = |answer: &pb::GetGraphInfoResponse| told(answer.info.as_ref());
        Told::of(&self.caller.record(call, LIMIT, send, seen, missing).await.0)
    }

    async fn wait(&mut self, graph: &Graph) -> Told {
        let request = pb::WaitGraphRequest {
            session_id: self.caller.session.clone(),
            graph_key: graph.key.clone(),
            timeout: Some(prost_types::Duration { seconds: WAITS_S, nanos: 0 }),
        };
        // What is told is how it was when the time was over, or it had ended, on the node that was asked.
        let call = Call::Graph { graph: graph.name.clone(), act: self.hearing() };
        let send = |mut mars: Mars| async move { mars.wait_chunk_graph(request).await };
        let seen = |answer: &pb::WaitGraphResponse| told(answer.info.as_ref());
        Told::of(&self.caller.record(call, LIMIT, send, seen, |_| None).await.0)
    }

    fn hearing(&self) -> GraphAct {
        GraphAct::Hear { stream: StreamId(self.caller.setting.fresh()) }
    }

    /// Hears of it for a while.
    async fn listen(&mut self, graph: &Graph) -> Told {
        let request =
            pb::WatchGraphRequest { session_id: self.caller.session.clone(), graph_key: graph.key.clone() };
        let until = Instant::now() + LISTENS;
        let opened = self.caller.attempt(|mut mars| async move { mars.watch_graph(request).await }).await;
        let Attempt::Answer(mut stream) = opened else { return Told::Nothing };
        let (hearing, mut last) = (self.hearing(), Told::Nothing);
        while let Ok(Ok(Some(message))) = timeout_at(until, stream.message()).await {
            let call = Call::Graph { graph: graph.name.clone(), act: hearing.clone() };
            let pending = self.caller.setting.invoke(self.caller.id, call);
            let outcome = told(message.info.as_ref()).map_or_else(Outcome::Unknown, Outcome::Ok);
            last = Told::of(&outcome);
            self.caller.setting.complete(pending, outcome);
        }
        last
    }

    async fn stop(&mut self, graph: &Graph) -> Told {
        let request = pb::StopGraphRequest {
            session_id: self.caller.session.clone(),
            graph_key: graph.key.clone(),
            ..Default::default()
        };
        let call = Call::Graph { graph: graph.name.clone(), act: GraphAct::Stop };
        let send = |mut mars: Mars| async move { mars.stop_chunk_graph(request).await };
        let seen = |answer: &pb::StopGraphResponse| {
            let state = state_of(answer.state())?;
            Ok(Reply::Graph(GraphSeen { state, progress_millionths: None }))
        };
        Told::of(&self.caller.record(call, LIMIT, send, seen, missing).await.0)
    }

    /// Reads what has succeeded. Some are kept for others, and the others deleted.
    async fn ended(&mut self, graph: Graph, state: GraphState) {
        if self.caller.random.random_ratio(1, 4) {
            // What has ended stays as it is.
            self.stop(&graph).await;
        }
        if state == GraphState::Succeeded && !graph.expires {
            let call = Call::Graph { graph: graph.name.clone(), act: GraphAct::Fetch };
            let pending = self.caller.setting.invoke(self.caller.id, call);
            let outcome = match fetch::number(&mut self.caller, &graph.plan.target).await {
                Ok(number) => {
                    let found = Found { value: Value(number), version: None, index: None };
                    Outcome::Ok(Reply::Value(Some(found)))
                }
                Err(why) => Outcome::Unknown(why),
            };
            self.caller.setting.complete(pending, outcome);
            if self.kept.len() < KEPT_MAX && self.caller.setting.goes_on() {
                self.kept.push(graph);
                return;
            }
        }
        if !graph.expires {
            self.delete(&graph).await;
        }
    }

    /// Deletes it, and looks whether it is gone.
    async fn delete(&mut self, graph: &Graph) {
        let request = pb::DeleteGraphRequest {
            session_id: self.caller.session.clone(),
            graph_key: graph.key.clone(),
            ..Default::default()
        };
        let call = Call::Graph { graph: graph.name.clone(), act: GraphAct::Delete };
        let send = |mut mars: Mars| async move { mars.delete_chunk_graph(request).await };
        let done = |_: &pb::DeleteGraphResponse| Ok(Reply::Done);
        let outcome = self.caller.record(call, LIMIT, send, done, missing_or_busy).await.0;
        if outcome.acknowledged() {
            self.look(graph).await;
        }
    }
}

fn told(info: Option<&pb::GraphInfo>) -> Result<Reply, String> {
    let info = info.ok_or("an answer that says nothing of the graph")?;
    graph_seen(info).map(Reply::Graph)
}

impl Told {
    fn of(outcome: &Outcome) -> Self {
        match outcome.reply() {
            Some(Reply::Graph(seen)) => Self::At(seen.state),
            Some(Reply::Refused(Refusal::Missing)) => Self::Gone,
            _ => Self::Nothing,
        }
    }
}
