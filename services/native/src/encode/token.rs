//! What is known of a token, as a message. Its hash is not in it.

use tripod_proto::tripod::v1 as wire;
use tripod_state::ids::{TimeMs, TokenId};
use tripod_state::token::Token;

pub(crate) fn token(id: TokenId, token: &Token, now: TimeMs) -> wire::Token {
    let Token { hash: _, bearer, uses_left, by, created, expires, revoked } = token;
    let standing = if revoked.is_some() {
        "revoked"
    } else if *uses_left == Some(0) {
        "used"
    } else if now >= *expires {
        "expired"
    } else {
        "valid"
    };
    wire::Token {
        id: id.to_string(),
        kind: bearer.kind.word().to_owned(),
        job: bearer.job.as_ref().map(ToString::to_string).unwrap_or_default(),
        task: bearer.task.and_then(|task| u32::try_from(task.0).ok()),
        name: bearer.name.clone(),
        by: by.clone(),
        created_ms: created.0,
        expires_ms: expires.0,
        uses_left: *uses_left,
        revoked_ms: revoked.as_ref().map_or(0, |revoked| revoked.at.0),
        revoked_by: revoked.as_ref().map(|revoked| revoked.by.clone()).unwrap_or_default(),
        standing: standing.to_owned(),
    }
}
