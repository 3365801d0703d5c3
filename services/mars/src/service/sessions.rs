//! Calls about sessions.

use rand::RngExt as _;
use tonic::Status;
use tripod_gateway::{Chance, Consistency};
use tripod_proto::mars::v1 as pb;
use tripod_state::Scope;

use crate::domain::{self, Answer, Request, limits};
use crate::encode;
use crate::front::Front;
use crate::status;

/// An id that nobody can guess, for whoever names none.
pub(super) fn drawn_id() -> String {
    format!("{:032x}", Chance.random::<u128>())
}

pub(super) async fn create(
    front: &Front,
    scope: Scope,
    message: pb::CreateSessionRequest,
) -> Result<pb::CreateSessionResponse, Status> {
    if message.labels.len() > limits::LABELS_MAX {
        return Err(status::too_many("labels", message.labels.len(), limits::LABELS_MAX));
    }
    let mut labels: Vec<(String, String)> = message.labels.into_iter().collect();
    labels.sort_unstable();
    let is_proposed = message.session_id.is_empty();
    let session = if is_proposed { drawn_id() } else { message.session_id };
    let request = Request::CreateSession { session, is_proposed, if_not_exist: message.if_not_exist, labels };
    match front.ask(scope, message.request_id, request).await? {
        Answer::Session { session, created } => Ok(pb::CreateSessionResponse {
            header: Some(front.header()),
            session_id: session.as_str().to_owned(),
            created,
        }),
        other => Err(status::unexpected(&other)),
    }
}

pub(super) async fn has(
    front: &Front,
    scope: Scope,
    message: pb::HasSessionRequest,
) -> Result<pb::HasSessionResponse, Status> {
    let look = move |state: &tripod_state::State| domain::has_session(state, scope, &message.session_id);
    let exists =
        front.read(Consistency::Linearizable, look).await?.map_err(|fault| status::of_fault(&fault))?;
    Ok(pb::HasSessionResponse { header: Some(front.header()), exists })
}

pub(super) async fn delete(
    front: &Front,
    scope: Scope,
    message: pb::DeleteSessionRequest,
) -> Result<pb::DeleteSessionResponse, Status> {
    let request = Request::DeleteSession { session: message.session_id, if_exist: message.if_exist };
    match front.ask(scope, message.request_id, request).await? {
        Answer::Deleted { deleted } => {
            Ok(pb::DeleteSessionResponse { header: Some(front.header()), deleted })
        }
        other => Err(status::unexpected(&other)),
    }
}

pub(super) async fn list(front: &Front, scope: Scope) -> Result<pb::ListSessionsResponse, Status> {
    let look = move |state: &tripod_state::State| domain::sessions(state, scope);
    let sessions = front.read_aside(Consistency::Linearizable, look).await?;
    let sessions = sessions.map_err(|fault| status::of_fault(&fault))?;
    let sessions = sessions.into_iter().map(encode::session).collect();
    Ok(pb::ListSessionsResponse { header: Some(front.header()), sessions })
}
