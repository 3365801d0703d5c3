//! Calls about graphs that were submitted.

use std::time::Duration;

use tonic::Status;
use tripod_gateway::Consistency;
use tripod_proto::mars::v1 as pb;
use tripod_state::{Fault, Scope, State};

use crate::domain::{self, Answer, GraphKind, GraphName, Request};
use crate::fields::{self, Fields};
use crate::front::Front;
use crate::{encode, status};

pub(super) async fn info(
    front: &Front,
    scope: Scope,
    kind: GraphKind,
    message: pb::GetGraphInfoRequest,
) -> Result<pb::GetGraphInfoResponse, Status> {
    let fields = Fields::read(&message.filter_fields, fields::GRAPH)?;
    let graph = GraphName { session: message.session_id, kind, key: message.graph_key };
    let wants_nodes = fields.want("node_states");
    let look = move |state: &State| {
        let view = domain::graph(state, scope, &graph)?;
        let nodes = if wants_nodes { domain::node_states(state, scope, &graph)? } else { Vec::new() };
        Ok::<_, Fault>((view, nodes))
    };
    // Of what may be ten thousand of something a fork of the state is looked at.
    let found = if wants_nodes {
        front.read_aside(Consistency::Linearizable, look).await?
    } else {
        front.read(Consistency::Linearizable, look).await?
    };
    let (view, nodes) = found.map_err(|fault| status::of_fault(&fault))?;
    let info = Some(encode::graph(&view, nodes, &fields));
    Ok(pb::GetGraphInfoResponse { header: Some(front.header()), info })
}

pub(super) async fn wait(
    front: &Front,
    scope: Scope,
    kind: GraphKind,
    message: pb::WaitGraphRequest,
    hold: Duration,
) -> Result<pb::WaitGraphResponse, Status> {
    let graph = GraphName { session: message.session_id, kind, key: message.graph_key };
    let view = front.wait_graph(scope, &graph, hold).await?;
    let finished = view.state.is_terminal();
    let info = Some(encode::graph(&view, Vec::new(), &Fields::All));
    Ok(pb::WaitGraphResponse { header: Some(front.header()), finished, info })
}

pub(super) async fn stop(
    front: &Front,
    scope: Scope,
    kind: GraphKind,
    message: pb::StopGraphRequest,
) -> Result<pb::StopGraphResponse, Status> {
    let graph = GraphName { session: message.session_id, kind, key: message.graph_key };
    match front.ask(scope, message.request_id, Request::Stop { graph }).await? {
        Answer::Stopped { state } => {
            let state = encode::graph_state(state).into();
            Ok(pb::StopGraphResponse { header: Some(front.header()), state })
        }
        other => Err(status::unexpected(&other)),
    }
}

pub(super) async fn delete(
    front: &Front,
    scope: Scope,
    kind: GraphKind,
    message: pb::DeleteGraphRequest,
) -> Result<pb::DeleteGraphResponse, Status> {
    let graph = GraphName { session: message.session_id, kind, key: message.graph_key };
    match front.ask(scope, message.request_id, Request::DeleteGraph { graph }).await? {
        Answer::Freed { chunks } => {
            Ok(pb::DeleteGraphResponse { header: Some(front.header()), freed_chunks: chunks })
        }
        other => Err(status::unexpected(&other)),
    }
}
