//! Whether a text is believed, and as whom.

use std::error::Error;
use std::fmt;

use subtle::ConstantTimeEq as _;
use tripod_identity::{Identity, JobName, Kind as Path, PersonName, Realm, TaskNumber};
use tripod_state::ids::{TimeMs, TokenId};
use tripod_state::token::{Bearer, Kind, SecretHash, Token, Tokens};

use crate::TokenText;

/// What a node knows of tokens.
#[derive(Debug, Clone)]
pub struct View {
    /// Within which whoever bears one is somebody.
    pub realm: Realm,
    pub tokens: Tokens,
    /// The time of the log. It counts where it is later than the node's clock.
    pub log_now: TimeMs,
}

/// Whoever bears the text is not believed. It says nothing else, whatever was wrong: who guesses learns nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused;

/// What whoever is refused is told.
pub const REFUSED: &str =
    "T1532 token-refused: the token is not valid here; ask an operator for one: `tripod auth token create`";

/// Why a text is refused: for who looks after a node, and never for who shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// It is no token, or something of it is missing.
    Illegible,
    /// None of this cluster's, or with another secret. Which of both is told to nobody.
    Unknown,
    /// Somebody has ended it.
    Revoked,
    /// Its time is over.
    Expired,
    /// It is one to join, or one that was used.
    Joins,
}

impl Why {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Illegible, Self::Unknown, Self::Revoked, Self::Expired, Self::Joins];

    /// Its word in figures and logs.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Illegible => "illegible",
            Self::Unknown => "unknown",
            Self::Revoked => "revoked",
            Self::Expired => "expired",
            Self::Joins => "joins",
        }
    }
}

/// Why [`verify`] refuses a text.
#[must_use]
pub fn why(text: &str, view: &View, now_ms: u64) -> Why {
    if TokenText::parse(text).is_err() {
        return Why::Illegible;
    }
    let now = TimeMs(view.log_now.0.max(now_ms));
    match view.of_text(text) {
        Err(Refused) => Why::Unknown,
        Ok((_, token)) if token.revoked.is_some() => Why::Revoked,
        Ok((_, token)) if now >= token.expires => Why::Expired,
        Ok((_, token)) if token.bearer.kind == Kind::Join => Why::Joins,
        // Its bearer has a name that is none.
        Ok(_) => Why::Unknown,
    }
}

impl View {
    /// What is known of a token whose text this is, at a node whose clock says `now_ms`.
    pub(crate) fn believed(&self, text: &str, now_ms: u64) -> Result<(TokenId, &Token), Refused> {
        let (id, token) = self.of_text(text)?;
        let now = TimeMs(self.log_now.0.max(now_ms));
        if token.holds_at(now) { Ok((id, token)) } else { Err(Refused) }
    }

    /// The same, whether it has ended or not.
    fn of_text(&self, text: &str) -> Result<(TokenId, &Token), Refused> {
        let text = TokenText::parse(text).map_err(|_| Refused)?;
        let known = self.tokens.get(text.id);
        // An id that is not there is compared, too: which ids there are is not told by the time that it takes.
        let hash = known.map_or(SecretHash([0; 32]), |token| token.hash);
        let is_equal = bool::from(text.secret.hash(text.id).0.ct_eq(&hash.0));
        match known {
            Some(token) if is_equal && token.bearer.kind == text.kind => Ok((text.id, token)),
            _ => Err(Refused),
        }
    }
}

/// Who bears this text, at a node whose clock says `now_ms`, in milliseconds since 1970. A token to join proves nobody: see
/// [`verify_join`].
///
/// # Errors
/// [`Refused`]: it is no token of this cluster, or it was revoked, or has expired.
pub fn verify(text: &str, view: &View, now_ms: u64) -> Result<Identity, Refused> {
    let (_, token) = view.believed(text, now_ms)?;
    identity(&view.realm, &token.bearer)
}

/// Which token this is, if it lets a node join that bears it and was not used yet. Whoever lets a node in proposes
/// [`tripod_state::token::Command::Use`] first, which serves once.
///
/// # Errors
/// [`Refused`].
pub fn verify_join(text: &str, view: &View, now_ms: u64) -> Result<TokenId, Refused> {
    let (id, token) = view.believed(text, now_ms)?;
    if token.bearer.kind == Kind::Join { Ok(id) } else { Err(Refused) }
}

/// Which token this is, whatever became of it; `None`: none of ours, or with another secret. For whoever has seen one where it can
/// be read by others, on a connection in plain text, and has it revoked.
#[must_use]
pub fn whose(text: &str, view: &View) -> Option<TokenId> {
    view.of_text(text).ok().map(|(id, _)| id)
}

/// Names in the state keep the rules that identities have. What does not is nobody.
pub(crate) fn identity(realm: &Realm, bearer: &Bearer) -> Result<Identity, Refused> {
    let person = || bearer.name.parse::<PersonName>().map_err(|_| Refused);
    let job = || {
        let job = bearer.job.as_ref().ok_or(Refused)?;
        job.as_str().parse::<JobName>().map_err(|_| Refused)
    };
    let kind = match bearer.kind {
        Kind::Join => return Err(Refused),
        Kind::Operator => Path::Operator(person()?),
        Kind::Viewer => Path::Viewer(person()?),
        Kind::Agent => Path::Agent(job()?),
        Kind::Task => {
            let number = bearer.task.map(|task| TaskNumber::new(task.0)).transpose().map_err(|_| Refused)?;
            Path::Task { job: job()?, number }
        }
        Kind::Driver => Path::Driver(job()?),
        Kind::Worker => Path::Worker(job()?),
        Kind::Store => Path::Store(job()?),
    };
    Ok(Identity { realm: realm.clone(), kind })
}

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(REFUSED)
    }
}

impl Error for Refused {}
