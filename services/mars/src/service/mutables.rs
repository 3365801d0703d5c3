//! Calls about tileables that are written in place.

use std::time::Duration;

use tonic::{Code, Status};
use tripod_gateway::Consistency;
use tripod_proto::mars::v1 as pb;
use tripod_state::{Scope, State};

use super::sessions::drawn_id;
use crate::domain::{self, Answer, Definition, MutableNo, MutableState, MutableView, Request};
use crate::fields::Fields;
use crate::front::Front;
use crate::limits::MUTABLES_ASKED_MAX;
use crate::{encode, mutable, status};

/// What is to be created, whichever kind it is.
struct Created {
    request_id: String,
    session: String,
    /// Empty: one is chosen.
    name: String,
    definition: Definition,
    if_not_exist: bool,
}

pub(super) async fn create_tensor(
    front: &Front,
    scope: Scope,
    message: pb::CreateMutableTensorRequest,
) -> Result<pb::MutableResponse, Status> {
    let definition = mutable::tensor(&message)?;
    let pb::CreateMutableTensorRequest { request_id, session_id: session, name, if_not_exist, .. } = message;
    create(front, scope, Created { request_id, session, name, definition, if_not_exist }).await
}

pub(super) async fn create_frame(
    front: &Front,
    scope: Scope,
    message: pb::CreateMutableDataFrameRequest,
) -> Result<pb::MutableResponse, Status> {
    let definition = mutable::frame(&message)?;
    let pb::CreateMutableDataFrameRequest { request_id, session_id: session, name, if_not_exist, .. } =
        message;
    create(front, scope, Created { request_id, session, name, definition, if_not_exist }).await
}

async fn create(front: &Front, scope: Scope, created: Created) -> Result<pb::MutableResponse, Status> {
    let Created { request_id, session, name, definition, if_not_exist } = created;
    let is_proposed = name.is_empty();
    let name = if is_proposed { drawn_id() } else { name };
    let request =
        Request::CreateMutable { session: session.clone(), name, is_proposed, definition, if_not_exist };
    match front.ask(scope, request_id, request).await? {
        Answer::Mutable { name, created, .. } => {
            let view = look(front, Consistency::Linearizable, scope, &session, name.as_str()).await?;
            let info = Some(encode::mutable(view));
            Ok(pb::MutableResponse { header: Some(front.header()), info, created })
        }
        other => Err(status::unexpected(&other)),
    }
}

pub(super) async fn get(
    front: &Front,
    scope: Scope,
    message: pb::GetMutableTileableRequest,
) -> Result<pb::MutableResponse, Status> {
    let pb::GetMutableTileableRequest { session_id: session, name, chunk_key } = message;
    let view = match (name.is_empty(), chunk_key.is_empty()) {
        (_, true) => look(front, Consistency::Linearizable, scope, &session, &name).await?,
        (true, false) => {
            let keys = front.shared.chunk_keys.clone();
            let look =
                move |state: &State| domain::mutable_of_chunk(state, scope, &session, &chunk_key, &keys);
            let found = front.read_aside(Consistency::Linearizable, look).await?;
            found.map_err(|fault| status::of_fault(&fault))?
        }
        (false, false) => return Err(status::invalid("chunk_key: the name says which one already")),
    };
    let info = Some(encode::mutable(view));
    Ok(pb::MutableResponse { header: Some(front.header()), info, created: false })
}

/// How far mutables are, for stores, which have records of those that they are told are needed.
pub(super) async fn states(
    front: &Front,
    scope: Scope,
    message: pb::GetMutableStatesRequest,
) -> Result<pb::GetMutableStatesResponse, Status> {
    if message.ids.len() > MUTABLES_ASKED_MAX {
        return Err(status::too_many("ids", message.ids.len(), MUTABLES_ASKED_MAX));
    }
    let mutables: Vec<MutableNo> = message.ids.into_iter().map(MutableNo).collect();
    // A store removes what is not there: a node that is behind must not say so.
    let look = |state: &State| domain::mutable_states(state, scope, &mutables);
    let found = front.read(Consistency::Linearizable, look).await?;
    let found = found.map_err(|fault| status::of_fault(&fault))?;
    let states =
        found.into_iter().map(|state| state.map_or(pb::MutableState::Deleted, encode::mutable_state).into());
    Ok(pb::GetMutableStatesResponse { states: states.collect(), header: Some(front.header()) })
}

/// Begins to seal, and waits until that is over. Who asks again waits for the same.
pub(super) async fn seal(
    front: &Front,
    scope: Scope,
    message: pb::SealMutableTileableRequest,
    hold: Duration,
) -> Result<pb::SealMutableTileableResponse, Status> {
    let pb::SealMutableTileableRequest { request_id, session_id: session, name, timestamp_ns } = message;
    let changes = front.changes(scope);
    let request = Request::SealMutable { session: session.clone(), name: name.clone(), timestamp_ns };
    let (epoch, tileable) = match front.ask(scope, request_id, request).await? {
        Answer::Sealing { epoch, tileable, .. } => (epoch, tileable.as_str().to_owned()),
        other => return Err(status::unexpected(&other)),
    };
    let view = front.wait_sealed(changes, scope, &session, &name, hold).await?;
    match view.state {
        MutableState::Sealed => {}
        MutableState::Sealing => {
            let text = format!(
                "mutable tileable `{name}` is still being sealed; ask again, which goes on with the same"
            );
            return Err(status::with_reason(Status::deadline_exceeded(text), "deadline"));
        }
        MutableState::Open => {
            let text = format!(
                "sealing mutable tileable `{name}` failed in epoch {epoch}, and nothing of it is lost; write what was refused, and seal it again"
            );
            return Err(status::with_reason(Status::new(Code::Aborted, text), "aborted"));
        }
        MutableState::Lost => {
            let text = format!(
                "mutable tileable `{name}` is lost: no object store has some of its chunks; delete it, and create it anew"
            );
            return Err(status::with_reason(Status::failed_precondition(text), "failed-precondition"));
        }
    }
    let keys = [tileable.clone()];
    let look = move |state: &State| domain::tileables(state, scope, &session, &keys);
    let found = front.read(Consistency::Local, look).await?.map_err(|fault| status::of_fault(&fault))?;
    let meta = encode::tileable(tileable.clone(), found.into_iter().next().flatten(), &Fields::All);
    Ok(pb::SealMutableTileableResponse {
        header: Some(front.header()),
        tileable_key: tileable,
        meta: Some(meta),
    })
}

pub(super) async fn delete(
    front: &Front,
    scope: Scope,
    message: pb::DeleteMutableTileableRequest,
) -> Result<pb::DeleteMutableTileableResponse, Status> {
    let pb::DeleteMutableTileableRequest { request_id, session_id: session, name, if_exist } = message;
    let request = Request::DeleteMutable { session, name, if_exist };
    match front.ask(scope, request_id, request).await? {
        Answer::Deleted { deleted } => {
            Ok(pb::DeleteMutableTileableResponse { header: Some(front.header()), deleted })
        }
        other => Err(status::unexpected(&other)),
    }
}

async fn look(
    front: &Front,
    freshness: Consistency,
    scope: Scope,
    session: &str,
    name: &str,
) -> Result<MutableView, Status> {
    let found = front.read(freshness, |state| domain::mutable(state, scope, session, name)).await?;
    found.map_err(|fault| status::of_fault(&fault))
}
