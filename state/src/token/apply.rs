//! The commands about tokens.

use crate::command::{Answer, Effect, Reply};
use crate::context::ApplyContext;
use crate::fault::Fault;
use crate::ids::{DurationMs, TokenId};
use crate::limits::{self, within};
use crate::state::State;
use crate::token::bearer::invalid;
use crate::token::{Bearer, Command, Kind, Refusal, Revoked, SecretHash, Token, Tokens};

impl State {
    /// Which tokens there are. Cloning that is O(1).
    #[must_use]
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    pub(crate) fn apply_token(
        &mut self,
        context: &ApplyContext,
        command: Command,
        effects: &mut Vec<Effect>,
    ) -> Reply {
        let before = self.tokens.revision();
        let reply = match command {
            Command::Create { token, hash, bearer, lifetime_ms, by } => {
                self.tokens.create(context, token, New { hash, bearer, lifetime_ms, by })
            }
            Command::Bootstrap { token, hash, name, lifetime_ms, by } => {
                let bearer = Bearer { kind: Kind::Operator, job: None, task: None, name };
                self.tokens.bootstrap(context, token, New { hash, bearer, lifetime_ms, by })
            }
            Command::Revoke { token, by } => self.tokens.revoke(context, token, by),
            Command::Use { token } => self.tokens.take_use(context, token),
        };
        if self.tokens.revision() != before {
            effects.push(Effect::TokensChanged);
        }
        reply
    }
}

/// A token that is to be made.
struct New {
    hash: SecretHash,
    bearer: Bearer,
    lifetime_ms: DurationMs,
    by: String,
}

impl Tokens {
    fn create(&mut self, context: &ApplyContext, id: TokenId, new: New) -> Reply {
        if let Some(reply) = self.made_before(id, &new) {
            return reply;
        }
        let New { hash, bearer, lifetime_ms, by } = new;
        bearer.check()?;
        check_by(&by)?;
        let most = bearer.kind.lifetime_max();
        if lifetime_ms.0 == 0 {
            return Err(invalid("lifetime", "must be above 0".to_owned()));
        }
        within("milliseconds of a token's life", lifetime_ms.0, most.0)?;
        let mut kept = self.clone();
        kept.forget_old(context.now_ms);
        within("tokens", kept.len() as u64 + 1, limits::TOKENS_MAX as u64)?;
        let expires = context.now_ms.plus(lifetime_ms);
        let uses_left = bearer.kind.uses();
        let token = Token { hash, bearer, uses_left, by, created: context.now_ms, expires, revoked: None };
        kept.all.insert(id, token);
        kept.revision = context.index;
        *self = kept;
        Ok(Answer::Token { token: id, expires })
    }

    fn bootstrap(&mut self, context: &ApplyContext, id: TokenId, new: New) -> Reply {
        if let Some(reply) = self.made_before(id, &new) {
            return reply;
        }
        if let Some(token) = self.of_an_operator(context.now_ms) {
            return Err(Refusal::Bootstrapped { name: token.bearer.name.clone() }.into());
        }
        self.create(context, id, new)
    }

    /// What is said of an id that is there.
    fn made_before(&self, id: TokenId, new: &New) -> Option<Reply> {
        let known = self.get(id)?;
        let same = known.hash == new.hash && known.bearer == new.bearer;
        Some(if same {
            Ok(Answer::Token { token: id, expires: known.expires })
        } else {
            Err(Refusal::Taken { token: id }.into())
        })
    }

    fn revoke(&mut self, context: &ApplyContext, id: TokenId, by: String) -> Reply {
        check_by(&by)?;
        let token = self.all.get_mut(&id).ok_or(Refusal::Unknown { token: id })?;
        if token.revoked.is_none() {
            token.revoked = Some(Revoked { at: context.now_ms, by });
            self.revision = context.index;
        }
        Ok(Answer::Done)
    }

    fn take_use(&mut self, context: &ApplyContext, id: TokenId) -> Reply {
        let token = self.all.get_mut(&id).ok_or(Refusal::Unknown { token: id })?;
        if !token.holds_at(context.now_ms) {
            return Err(Refusal::Ended { token: id }.into());
        }
        if let Some(left) = &mut token.uses_left {
            *left = left.saturating_sub(1);
            self.revision = context.index;
        }
        Ok(Answer::Done)
    }
}

fn check_by(by: &str) -> Result<(), Fault> {
    within("bytes of who wants it", by.len() as u64, limits::TOKEN_BY_BYTES_MAX as u64)
}
