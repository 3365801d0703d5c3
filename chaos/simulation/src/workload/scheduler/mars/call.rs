//! One call to a node, as it stands in the history.

use tonic::{Code, Response, Status};
use tripod_checkers::history::{
    Call, Epoch, GraphSeen, GraphState, Outcome, Refusal, Reply, TensorSeen, TensorState,
};
use tripod_proto::mars::v1 as pb;

use crate::client::{Answer, Client};

/// Makes it and writes it down. `seen`: what an answer says.
pub(super) async fn record<T>(
    client: &mut Client,
    call: Call,
    sent: impl Future<Output = Result<Response<T>, Status>>,
    seen: impl FnOnce(&T) -> Option<Reply>,
) -> (Outcome, Option<T>) {
    let (witness, id) = (client.witness.clone(), client.id);
    let mut told = None;
    let made = async {
        match client.ask(sent).await {
            Answer::Yes(answer) => {
                let reply = seen(&answer);
                told = Some(answer);
                reply.map_or_else(|| Outcome::Unknown("an answer that says nothing".to_owned()), Outcome::Ok)
            }
            Answer::No(status) => refused(&status),
            Answer::NotExecuted(why) => Outcome::Fail(why),
            Answer::Lost(why) => Outcome::Unknown(why),
        }
    };
    let outcome = witness.record(id, call, made).await;
    (outcome, told)
}

fn refused(status: &Status) -> Outcome {
    let text = format!("{:?}: {}", status.code(), status.message());
    let refusal = match status.code() {
        Code::NotFound => Refusal::Missing,
        Code::AlreadyExists => Refusal::Exists,
        Code::FailedPrecondition => Refusal::Busy,
        // What takes longer goes on.
        Code::DeadlineExceeded => return Outcome::Unknown(text),
        _ => return Outcome::Fail(text),
    };
    Outcome::Ok(Reply::Refused(refusal))
}

/// How a graph was found.
pub(super) fn graph(state: pb::GraphState, progress: Option<f64>) -> Option<Reply> {
    let state = match state {
        pb::GraphState::Unscheduled => GraphState::Unscheduled,
        pb::GraphState::Preparing => GraphState::Preparing,
        pb::GraphState::Running => GraphState::Running,
        pb::GraphState::Succeeded => GraphState::Succeeded,
        pb::GraphState::Failed => GraphState::Failed,
        pb::GraphState::Cancelling => GraphState::Cancelling,
        pb::GraphState::Cancelled => GraphState::Cancelled,
        pb::GraphState::Unspecified => return None,
    };
    let progress_millionths = progress.map(|progress| (progress * 1e6).round() as u32);
    Some(Reply::Graph(GraphSeen { state, progress_millionths }))
}

/// How a tensor was found.
pub(super) fn tensor(info: &pb::MutableInfo) -> Option<Reply> {
    let state = match info.state() {
        pb::MutableState::Open => TensorState::Open,
        pb::MutableState::Sealing => TensorState::Sealing,
        pb::MutableState::Sealed => TensorState::Sealed,
        pb::MutableState::Lost => TensorState::Lost,
        _ => return None,
    };
    let copies = info.chunks.iter().map(|chunk| chunk.workers.len()).min().unwrap_or(0);
    let copies = u32::try_from(copies).unwrap_or(u32::MAX);
    Some(Reply::Tensor(TensorSeen { epoch: Epoch(info.epoch), state, copies }))
}
