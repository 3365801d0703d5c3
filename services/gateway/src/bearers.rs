//! Who calls by a token: read from the head of a call, looked up among the tokens that this node knows, and believed no longer than
//! the token holds.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{HeaderMap, HeaderValue, header};
use parking_lot::Mutex;
use tokio::sync::watch;
use tonic::Status;
use tripod_gate::{Caller, Role};
use tripod_identity::Realm;
use tripod_port::{ConnectionCalls, Head, Lapse, Speaker};
use tripod_proto::code::Code;
use tripod_state::ids::{TimeMs, TokenId};
use tripod_state::token::{Command as Token, Tokens};
use tripod_state::{Command, Topic};
use tripod_token::{Maker, REFUSED, Refused, Remembered, TokenText, View, verify, whose, why};

use crate::clock;
use crate::gateway::Gateway;
use crate::proposers::speaker;
use crate::token_tally::{PLAIN, TokenTally};

/// How often it is looked whether the tokens hold by which calls are under way: a revocation is heard of at once, and time goes on
/// without a word.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How a token is shown: this, and its text.
const SCHEME: &[u8] = b"bearer ";
/// Who revokes a token that others on the network can have read, as tokens say it.
const SEEN: &str = "a node, to which it was shown in plain text";

/// Judges the tokens that calls of a node show. Cheap to clone; one for all ports of a node.
#[derive(Clone)]
pub struct Bearers(Arc<Shared>);

struct Shared {
    gateway: Gateway,
    /// Within which whoever bears a token is somebody.
    realm: Realm,
    /// Whether a token is believed that came in plain text over a network.
    takes_plain: bool,
    tally: TokenTally,
    /// By which of them calls were admitted, and who is to hear that one holds no longer: no more than there are tokens.
    relied_on: Mutex<BTreeMap<TokenId, watch::Sender<bool>>>,
    is_revoking: AtomicBool,
}

/// What one connection has shown.
#[derive(Clone, Default)]
struct Shown(Arc<ShownBefore>);

#[derive(Default)]
struct ShownBefore {
    remembered: Remembered,
    bearer: Mutex<Option<Bearer>>,
}

/// Who calls by a token that is believed.
#[derive(Clone)]
struct Bearer {
    token: TokenId,
    caller: Arc<Caller>,
    /// Has what its calls propose say who it is.
    speaker: Option<Speaker>,
    lapse: Lapse,
}

/// Who makes a call by a token, and what has that said where it is refused in apply.
pub(crate) type CallBearer = (Arc<Caller>, Option<Speaker>);

impl Bearers {
    /// Those of a node of this realm. `takes_plain`: also of calls in plain text from other machines.
    #[must_use]
    pub fn new(gateway: &Gateway, realm: Realm, takes_plain: bool) -> Self {
        Self(Arc::new(Shared {
            gateway: gateway.clone(),
            realm,
            takes_plain,
            tally: TokenTally::default(),
            relied_on: Mutex::default(),
            is_revoking: AtomicBool::new(false),
        }))
    }

    /// What was refused.
    #[must_use]
    pub fn tally(&self) -> &TokenTally {
        &self.0.tally
    }

    /// Ends the calls whose tokens hold no longer, for as long as this is polled.
    pub async fn keep(self) {
        let mut changes = self.0.gateway.watch(Topic::Tokens);
        loop {
            tokio::select! {
                () = changes.changed() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            self.look();
        }
    }

    fn look(&self) {
        // Before the tokens are looked at: a call may rely on one that was made since, which would be missing there.
        let mut relied_on = self.0.relied_on.lock();
        let (tokens, log_now) = self.0.gateway.tokens_here();
        let now = TimeMs(log_now.0.max(clock::wall().0));
        relied_on.retain(|token, over| {
            let holds = tokens.get(*token).is_some_and(|known| known.holds_at(now));
            if !holds {
                over.send_replace(true);
            }
            holds && over.receiver_count() > 0
        });
    }

    /// Whose call this is, if it shows a token; a service finds for what that one may make tokens.
    ///
    /// # Errors
    /// The token is not believed. It is told the same whatever is wrong with it.
    pub(crate) fn admit(
        &self,
        head: &mut Head,
        connection: &ConnectionCalls,
        is_enforced: bool,
    ) -> Result<Option<CallBearer>, Status> {
        let Some(text) = shown(&head.headers) else { return Ok(None) };
        let is_private = connection.is_encrypted() || connection.address().is_of_this_machine();
        let Shown(before) = connection.kept::<Shown>();
        let bearer = self.bearer(text, is_private, &before).map_err(|reason| {
            self.0.tally.note(reason, connection.address().0);
            Status::unauthenticated(REFUSED)
        })?;
        let token = bearer.token;
        connection.belong_to(|| format!("token:{token}"));
        let is_operator = bearer.caller.role() == Some(Role::Operator);
        let maker = Maker::who_proved(bearer.caller.to_string(), is_operator, is_enforced);
        head.extensions.insert(Arc::new(maker));
        head.extensions.insert(bearer.lapse);
        Ok(Some((bearer.caller, bearer.speaker)))
    }

    fn bearer(&self, text: &str, is_private: bool, before: &ShownBefore) -> Result<Bearer, &'static str> {
        let view = self.view();
        self.check_way(text, is_private, &view)?;
        let now = clock::wall().0;
        let believed = before.remembered.verify(text, &view, now);
        let believed = believed.map_err(|Refused| why(text, &view, now).word())?;
        let mut known = before.bearer.lock();
        let is_same = |bearer: &&Bearer| bearer.token == believed.token && !bearer.lapse.is_over();
        if let Some(bearer) = known.as_ref().filter(is_same) {
            return Ok(bearer.clone());
        }
        let caller = Caller::by_path(believed.identity).by_token();
        let bearer = Bearer {
            token: believed.token,
            speaker: speaker(&caller),
            caller: Arc::new(caller),
            lapse: self.lapse(believed.token),
        };
        *known = Some(bearer.clone());
        Ok(bearer)
    }

    /// Judges the token of a request of HTTP, if it shows one. Scrapers, and proxies in front of a page, show those of others, which
    /// are passed over: a path is shown to everybody or to nobody.
    ///
    /// # Errors
    /// With what whoever asks is told, whatever is wrong with it.
    pub fn check(&self, headers: &HeaderMap, is_private: bool, from: IpAddr) -> Result<(), &'static str> {
        let Some(text) = shown(headers) else { return Ok(()) };
        if !text.is_empty() && !TokenText::is_meant(text) {
            return Ok(());
        }
        let view = self.view();
        let now = clock::wall().0;
        let judged = self.check_way(text, is_private, &view).and_then(|()| {
            verify(text, &view, now).map(drop).map_err(|Refused| why(text, &view, now).word())
        });
        judged.map_err(|reason| {
            self.0.tally.note(reason, Some(from));
            REFUSED
        })
    }

    fn view(&self) -> View {
        let (tokens, log_now) = self.0.gateway.tokens_here();
        View { realm: self.0.realm.clone(), tokens, log_now }
    }

    /// Whether a token may have come so. One that others can have read is nobody's secret any more.
    fn check_way(&self, text: &str, is_private: bool, view: &View) -> Result<(), &'static str> {
        if is_private || self.0.takes_plain {
            return Ok(());
        }
        if let Some(token) = whose(text, view) {
            self.revoke(token, &view.tokens);
        }
        Err(PLAIN)
    }

    /// One at a time: whoever shows tokens without end has one proposed after the other.
    fn revoke(&self, token: TokenId, known: &Tokens) {
        let is_revoked = known.get(token).is_none_or(|known| known.revoked.is_some());
        if is_revoked || self.0.is_revoking.swap(true, Ordering::AcqRel) {
            return;
        }
        let Self(shared) = self.clone();
        tokio::spawn(async move {
            let revoke = Command::Token(Token::Revoke { token, by: SEEN.to_owned() });
            let code = Code::TokenPlain.number();
            match shared.gateway.submit(revoke).await {
                Ok(Ok(_)) => {
                    tracing::warn!(code = %format_args!("T{code}"), %token, "a token was shown in plain text: it is revoked");
                }
                Ok(Err(fault)) => tracing::debug!(?fault, "a token that was shown in plain text is gone"),
                Err(outage) => {
                    tracing::warn!(code = %format_args!("T{code}"), %token, %outage, "a token was shown in plain text, and is not revoked yet");
                }
            }
            shared.is_revoking.store(false, Ordering::Release);
        });
    }

    fn lapse(&self, token: TokenId) -> Lapse {
        let mut relied_on = self.0.relied_on.lock();
        let over = relied_on.entry(token).or_insert_with(|| watch::Sender::new(false));
        Lapse::new(over.subscribe(), REFUSED)
    }
}

impl fmt::Debug for Bearers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Bearers")
    }
}

/// What is shown as a token. Whoever shows several shows none that could be one; what is said by another scheme is for somebody else.
fn shown(headers: &HeaderMap) -> Option<&str> {
    let mut tokens = headers.get_all(header::AUTHORIZATION).iter().filter_map(bearer_text);
    let first = tokens.next()?;
    Some(if tokens.next().is_some() { "" } else { first })
}

fn bearer_text(value: &HeaderValue) -> Option<&str> {
    let (scheme, text) = value.as_bytes().split_at_checked(SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then(|| std::str::from_utf8(text).unwrap_or_default())
}

#[cfg(test)]
#[path = "bearers_test.rs"]
mod tests;
