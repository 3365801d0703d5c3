//! `tripod.v1.Tokens`.

use std::sync::Arc;

use http::Extensions;
use tonic::{Request, Response, Status};
use tripod_audit::{Auditor, Record};
use tripod_gate::{Caller, Mode, Role};
use tripod_gateway::{Consistency, Gateway};
use tripod_port::CallContext;
use tripod_proto::tripod::v1::tokens_server::Tokens;
use tripod_proto::tripod::v1::{
    CreateTokenRequest, CreatedToken, ListTokensRequest, ListTokensResponse, RevokeTokenRequest,
    RevokeTokenResponse, SetFloorRequest, SetFloorResponse,
};
use tripod_state::identity::{IdentityCommand, Mode as Protection};
use tripod_state::limits::TOKEN_BY_BYTES_MAX;
use tripod_state::token::{Command as Token, Refusal};
use tripod_state::{Answer, Command, Fault};
use tripod_token::{Maker, TokenText};

use crate::audited::{audited, call};
use crate::{decode, encode, status};

/// Tokens of one answer.
const LISTED_MAX: usize = 1_000;

pub(super) struct Service {
    gateway: Gateway,
    auditor: Auditor,
    authorise: Mode,
    protection: Protection,
}

impl Service {
    pub(super) fn new(gateway: Gateway, auditor: Auditor, authorise: Mode) -> Self {
        Self { gateway, auditor, authorise, protection: Protection::Off }
    }

    /// The same of a node that is protected so.
    pub(super) fn protected(self, protection: Protection) -> Self {
        Self { protection, ..self }
    }

    /// Who calls: whom somebody before this service has said, else whom a certificate names. In plain text that is nobody, who may
    /// what everybody could before there were identities.
    fn maker(&self, extensions: &Extensions) -> Option<Arc<Maker>> {
        let said = extensions.get::<Arc<Maker>>().cloned();
        said.or_else(|| {
            let identity = CallContext::proved(extensions)?.identity();
            let name = identity.kind.to_string();
            let role = Caller::by_path(identity.clone()).role();
            Some(Arc::new(by_certificate(name, role, self.authorise)))
        })
    }

    async fn submit(&self, command: Token) -> Result<Answer, Status> {
        status::answer(self.gateway.submit(Command::Token(command)).await)
    }

    async fn make(&self, request: Request<CreateTokenRequest>) -> Result<Response<CreatedToken>, Status> {
        if !CallContext::is_private(request.extensions()) {
            return Err(status::token::in_plain_text());
        }
        let maker = self.maker(request.extensions());
        let wanted = decode::token::wanted(request.into_inner())?;
        wanted.bearer.check().map_err(|fault| status::of_fault(&fault))?;
        check(maker.as_deref(), &wanted.bearer)?;
        let text = TokenText::draw(wanted.bearer.kind).map_err(|error| {
            tracing::error!(%error, "the system has no random bits");
            Status::internal(format!("this node has no random bits: {error}; ask another node"))
        })?;
        let (token, hash) = (text.id, text.secret.hash(text.id));
        let by = said_by(maker.as_deref(), wanted.by);
        let (bearer, lifetime_ms) = (wanted.bearer, wanted.lifetime_ms);
        match self.submit(Token::Create { token, hash, bearer, lifetime_ms, by }).await? {
            Answer::Token { token, expires } => Ok(Response::new(CreatedToken {
                token: text.write().to_string(),
                id: token.to_string(),
                expires_ms: expires.0,
            })),
            other => Err(status::unexpected(&other)),
        }
    }

    async fn floor(&self, request: Request<SetFloorRequest>) -> Result<Response<SetFloorResponse>, Status> {
        let maker = self.maker(request.extensions());
        let SetFloorRequest { mode, by } = request.into_inner();
        let mode: Protection = mode.parse().map_err(status::token::no_mode)?;
        // Whoever raises it by a node that is below would not get an answer of that node again.
        if mode > self.protection {
            return Err(status::token::below_floor(self.protection, mode));
        }
        let by = said_by(maker.as_deref(), by);
        let set = Command::Identity(IdentityCommand::SetFloor { mode, by });
        status::answer(self.gateway.submit(set).await)?;
        Ok(Response::new(SetFloorResponse {}))
    }

    async fn end(
        &self,
        request: Request<RevokeTokenRequest>,
    ) -> Result<Response<RevokeTokenResponse>, Status> {
        let maker = self.maker(request.extensions());
        let RevokeTokenRequest { id, by } = request.into_inner();
        let token = decode::token::id(&id)?;
        if let Some(Maker::Owner { .. }) = maker.as_deref() {
            let look = |state: &tripod_state::State| state.tokens().get(token).cloned();
            let read = self.gateway.read(Consistency::Linearizable, look).await;
            let known = read.map_err(|outage| status::of_outage(&outage))?;
            // Of what is not theirs owners do not learn whether it is there.
            let theirs = known.is_some_and(|known| check(maker.as_deref(), &known.bearer).is_ok());
            if !theirs {
                return Err(status::of_fault(&Fault::Token(Refusal::Unknown { token })));
            }
        }
        let by = said_by(maker.as_deref(), by);
        self.submit(Token::Revoke { token, by }).await?;
        Ok(Response::new(RevokeTokenResponse {}))
    }
}

#[tonic::async_trait]
impl Tokens for Service {
    async fn create(&self, request: Request<CreateTokenRequest>) -> Result<Response<CreatedToken>, Status> {
        let wanted = request.get_ref();
        let resource = format!("{} {}, says {}", wanted.kind, wanted.name, wanted.by);
        let record = call(request.extensions(), "Tokens/Create");
        let record = Record { job: wanted.job.as_str().into(), resource: resource.as_str().into(), ..record };
        audited(&self.auditor, record, self.make(request)).await
    }

    async fn list(
        &self,
        request: Request<ListTokensRequest>,
    ) -> Result<Response<ListTokensResponse>, Status> {
        let maker = self.maker(request.extensions());
        let after = match request.get_ref().after.as_str() {
            "" => None,
            id => Some(decode::token::id(id)?),
        };
        let look = |state: &tripod_state::State| (state.tokens().clone(), state.now_ms());
        let read = self.gateway.read(Consistency::Linearizable, look).await;
        let (tokens, now) = read.map_err(|outage| status::of_outage(&outage))?;
        let theirs = tokens.iter().filter(|(id, token)| {
            after.is_none_or(|after| *id > after) && check(maker.as_deref(), &token.bearer).is_ok()
        });
        let mut listed: Vec<_> = theirs.take(LISTED_MAX + 1).collect();
        let more = listed.len() > LISTED_MAX;
        listed.truncate(LISTED_MAX);
        let tokens = listed.into_iter().map(|(id, token)| encode::token::token(id, token, now)).collect();
        Ok(Response::new(ListTokensResponse { tokens, more }))
    }

    async fn revoke(
        &self,
        request: Request<RevokeTokenRequest>,
    ) -> Result<Response<RevokeTokenResponse>, Status> {
        let told = request.get_ref();
        let resource = format!("token {}, says {}", told.id, told.by);
        let record = call(request.extensions(), "Tokens/Revoke");
        let record = Record { resource: resource.as_str().into(), ..record };
        audited(&self.auditor, record, self.end(request)).await
    }

    async fn set_floor(
        &self,
        request: Request<SetFloorRequest>,
    ) -> Result<Response<SetFloorResponse>, Status> {
        let told = request.get_ref();
        let resource = format!("floor {}, says {}", told.mode, told.by);
        let record = call(request.extensions(), "Tokens/SetFloor");
        let record = Record { resource: resource.as_str().into(), ..record };
        audited(&self.auditor, record, self.floor(request)).await
    }
}

/// Whoever has a certificate of this role. Where roles are not enforced it may what it always could, by its own name.
fn by_certificate(name: String, role: Option<Role>, authorise: Mode) -> Maker {
    Maker::who_proved(name, role == Some(Role::Operator), authorise == Mode::Enforce)
}

fn check(maker: Option<&Maker>, bearer: &tripod_state::token::Bearer) -> Result<(), Status> {
    maker.map_or(Ok(()), |maker| maker.check(bearer)).map_err(status::token::beyond)
}

/// Whose word it is: what was proved, and else what the caller says, as much of it as is kept.
fn said_by(maker: Option<&Maker>, mut said: String) -> String {
    said.truncate(said.floor_char_boundary(TOKEN_BY_BYTES_MAX));
    maker.map_or(said, |maker| maker.name().to_owned())
}

#[cfg(test)]
mod tests {
    use tripod_state::token::{Bearer, Kind};

    use super::*;

    #[test]
    fn a_certificate_names_its_maker_and_confines_it_where_roles_are_enforced() {
        let viewer = Bearer { kind: Kind::Viewer, job: None, task: None, name: "bob".to_owned() };
        let of = |role, authorise| by_certificate("x".to_owned(), Some(role), authorise);
        for role in Role::ALL {
            for authorise in [Mode::Off, Mode::Rehearse, Mode::Enforce] {
                let maker = of(role, authorise);
                assert_eq!(maker.name(), "x");
                let is_free = role == Role::Operator || authorise != Mode::Enforce;
                assert_eq!(maker.check(&viewer).is_ok(), is_free, "{role:?} {authorise}");
            }
        }
    }
}
