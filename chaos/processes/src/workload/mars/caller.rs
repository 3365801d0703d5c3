//! A client's calls to nodes.

use std::future::Future;
use std::time::Duration;

use rand::rngs::StdRng;
use tokio::time::Instant;
use tonic::{Code, Response, Status};
use tripod_checkers::history::{
    Call, ClientId, Epoch, GraphSeen, GraphState, Outcome, Refusal, Reply, TensorSeen, TensorState,
};
use tripod_proto::mars::v1 as pb;

use super::super::setting::Setting;
use super::super::wire::{Attempt, Wire};
use super::{AGAIN_PAUSE, Mars};

/// How long one attempt may take.
const LIMIT: Duration = Duration::from_secs(5);
/// How long there may be no session while faults are about.
const SESSION_PATIENCE: Duration = Duration::from_secs(90);

/// One client, in a session of its own.
pub(super) struct Caller {
    pub(super) setting: Setting,
    pub(super) id: ClientId,
    pub(super) random: StdRng,
    pub(super) session: String,
    wire: Wire,
}

impl Caller {
    /// With a session; none if there is none for so long, which voids the run.
    pub(super) async fn begin(setting: Setting, id: ClientId) -> Option<Self> {
        let mut random = setting.random(id);
        let wire = Wire::new(&setting, &mut random);
        let session = format!("chaos-{id}");
        let mut caller = Self { setting, id, random, session, wire };
        let deadline = Instant::now() + SESSION_PATIENCE;
        loop {
            let request = pb::CreateSessionRequest {
                session_id: caller.session.clone(),
                if_not_exist: true,
                ..Default::default()
            };
            match caller.attempt(|mut mars| async move { mars.create_session(request).await }).await {
                Attempt::Answer(_) => return Some(caller),
                other if Instant::now() >= deadline => {
                    caller.setting.recorder.void(format!("there is no session: {other:?}"));
                    return None;
                }
                _ => tokio::time::sleep(AGAIN_PAUSE).await,
            }
        }
    }

    /// Another client in the same session.
    pub(super) fn beside(&self) -> Self {
        let id = self.setting.client_id();
        let mut random = self.setting.random(id);
        let wire = Wire::new(&self.setting, &mut random);
        let (setting, session) = (self.setting.clone(), self.session.clone());
        Self { setting, id, random, session, wire }
    }

    /// One attempt at one node.
    pub(super) async fn attempt<T, F>(&mut self, call: impl FnOnce(Mars) -> F) -> Attempt<T>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        self.attempt_within(LIMIT, call).await
    }

    pub(super) async fn attempt_within<T, F>(
        &mut self,
        limit: Duration,
        call: impl FnOnce(Mars) -> F,
    ) -> Attempt<T>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        self.wire.attempt(limit, |way| call(Mars::new(way.channel()))).await
    }

    /// The same, as an operation of the history. `answer`: what an answer says.
    pub(super) async fn record<T, F>(
        &mut self,
        call: Call,
        limit: Duration,
        send: impl FnOnce(Mars) -> F,
        answer: impl FnOnce(&T) -> Result<Reply, String>,
        refused: impl FnOnce(&Status) -> Option<Refusal>,
    ) -> (Outcome, Option<T>)
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let node = self.wire.node();
        let pending = self.setting.invoke(self.id, call).by_node(node);
        let mut told = None;
        let attempt = self.attempt_within(limit, send).await;
        let outcome = attempt.outcome(
            |message| {
                let reply = answer(&message);
                told = Some(message);
                reply
            },
            refused,
        );
        self.setting.complete(pending, outcome.clone());
        (outcome, told)
    }

    pub(super) async fn rest(&mut self, most_ms: u64) {
        self.setting.rest(&mut self.random, most_ms).await;
    }
}

/// What a refusal says of something that may not be there.
pub(super) fn missing(status: &Status) -> Option<Refusal> {
    (status.code() == Code::NotFound).then_some(Refusal::Missing)
}

/// The same, where the state of something that is there may stand in the way.
pub(super) fn missing_or_busy(status: &Status) -> Option<Refusal> {
    match status.code() {
        Code::NotFound => Some(Refusal::Missing),
        Code::FailedPrecondition => Some(Refusal::Busy),
        _ => None,
    }
}

/// How a graph was found.
pub(super) fn graph_seen(info: &pb::GraphInfo) -> Result<GraphSeen, String> {
    let progress_millionths = Some((info.progress * 1e6).round() as u32);
    Ok(GraphSeen { state: state_of(info.state())?, progress_millionths })
}

pub(super) fn state_of(state: pb::GraphState) -> Result<GraphState, String> {
    Ok(match state {
        pb::GraphState::Unscheduled => GraphState::Unscheduled,
        pb::GraphState::Preparing => GraphState::Preparing,
        pb::GraphState::Running => GraphState::Running,
        pb::GraphState::Succeeded => GraphState::Succeeded,
        pb::GraphState::Failed => GraphState::Failed,
        pb::GraphState::Cancelling => GraphState::Cancelling,
        pb::GraphState::Cancelled => GraphState::Cancelled,
        pb::GraphState::Unspecified => return Err("a graph without a state".to_owned()),
    })
}

/// How a mutable tensor was found.
pub(super) fn tensor_seen(info: &pb::MutableInfo) -> Result<TensorSeen, String> {
    let state = match info.state() {
        pb::MutableState::Open => TensorState::Open,
        pb::MutableState::Sealing => TensorState::Sealing,
        pb::MutableState::Sealed => TensorState::Sealed,
        pb::MutableState::Lost => TensorState::Lost,
        other => return Err(format!("a tensor that is {}", other.as_str_name())),
    };
    let copies = info.chunks.iter().map(|chunk| chunk.workers.len()).min().unwrap_or(0);
    Ok(TensorSeen { epoch: Epoch(info.epoch), state, copies: u32::try_from(copies).unwrap_or(u32::MAX) })
}
