//! Calls about what is known of tileables and chunks.

use tonic::Status;
use tripod_gateway::Consistency;
use tripod_proto::mars::v1 as pb;
use tripod_state::{Scope, State};

use crate::domain::{self, Answer, Request, limits};
use crate::fields::{self, Fields};
use crate::front::Front;
use crate::{encode, status};

/// Chunks that are looked at where commands wait: a result of a few, which is asked about after each small graph. For more, a
/// fork of the state is looked at on a thread.
const CHUNKS_LOOKED_AT: usize = 64;

/// A request within its bound, and how fresh its answer must be.
fn checked(message: &pb::GetMetasRequest) -> Result<Consistency, Status> {
    let most = usize::try_from(limits::KEYS_ASKED_MAX).unwrap_or(usize::MAX);
    if message.keys.len() > most {
        return Err(status::too_many("keys", message.keys.len(), most));
    }
    Ok(if message.stale_ok { Consistency::Local } else { Consistency::Linearizable })
}

pub(super) async fn tileables(
    front: &Front,
    scope: Scope,
    message: pb::GetMetasRequest,
) -> Result<pb::GetTileableMetasResponse, Status> {
    let fields = Fields::read(&message.filter_fields, fields::TILEABLE)?;
    let freshness = checked(&message)?;
    let pb::GetMetasRequest { session_id, keys, .. } = message;
    let asked = keys.clone();
    let look = move |state: &State| domain::tileables(state, scope, &session_id, &asked);
    let found = front.read_aside(freshness, look).await?.map_err(|fault| status::of_fault(&fault))?;
    let metas = keys.into_iter().zip(found).map(|(key, found)| encode::tileable(key, found, &fields));
    let metas = metas.collect();
    Ok(pb::GetTileableMetasResponse { header: Some(front.header()), metas })
}

pub(super) async fn chunks(
    front: &Front,
    scope: Scope,
    message: pb::GetMetasRequest,
) -> Result<pb::GetChunkMetasResponse, Status> {
    let fields = Fields::read(&message.filter_fields, fields::CHUNK)?;
    let freshness = checked(&message)?;
    let pb::GetMetasRequest { session_id, keys, .. } = message;
    let asked = keys.clone();
    let look = move |state: &State| domain::chunks(state, scope, &session_id, &asked);
    let found = if keys.len() <= CHUNKS_LOOKED_AT {
        front.read(freshness, look).await?
    } else {
        front.read_aside(freshness, look).await?
    };
    let found = found.map_err(|fault| status::of_fault(&fault))?;
    let metas = keys.into_iter().zip(found).map(|(key, found)| encode::chunk(key, found, &fields)).collect();
    Ok(pb::GetChunkMetasResponse { header: Some(front.header()), metas })
}

pub(super) async fn decref(
    front: &Front,
    scope: Scope,
    message: pb::DecrefTileablesRequest,
) -> Result<pb::DecrefTileablesResponse, Status> {
    let pb::DecrefTileablesRequest { request_id, session_id, keys, counts } = message;
    if keys.len() != counts.len() {
        let (keys, counts) = (keys.len(), counts.len());
        return Err(status::invalid(&format!("counts: {counts} of them, and there are {keys} keys")));
    }
    let request = Request::Decref { session: session_id, keys, counts };
    match front.ask(scope, request_id, request).await? {
        Answer::Done => Ok(pb::DecrefTileablesResponse { header: Some(front.header()) }),
        other => Err(status::unexpected(&other)),
    }
}
