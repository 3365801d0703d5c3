//! Commands about tokens in transcripts, and what there is of them.

use tripod_state::ids::{DurationMs, TaskId, TimeMs, TokenId};
use tripod_state::{State, token};

use crate::script::Line;

/// What there is of tokens, but for hashes.
pub(crate) fn look(state: &State, now: TimeMs) -> String {
    let mut said = format!("revision {}", state.tokens().revision());
    for (id, token) in state.tokens().iter() {
        let token::Token { bearer, uses_left, by, created, expires, revoked, .. } = token;
        let holds = if token.holds_at(now) { "holds" } else { "ended" };
        let token::Bearer { kind, job, task, name } = bearer;
        let of = (kind.word(), job, task, name);
        let line =
            format!("\n  {} {holds} {of:?} {uses_left:?} by {by} {created}..{expires} {revoked:?}", id.0);
        said += &line;
    }
    said
}

/// `token-create ID KIND`, `token-bootstrap ID NAME`, `token-revoke ID`, `token-use ID`. The secret's hash is a number.
pub(crate) fn command(line: &Line<'_>) -> token::Command {
    let id = TokenId(line.number(line.word(1)));
    let hash = token::SecretHash([line.or("hash", 1); 32]);
    let lifetime_ms = DurationMs(line.or("life", 60_000));
    let by = line.option("by").unwrap_or("ops").to_owned();
    match line.word(0) {
        "token-create" => {
            let bearer = token::Bearer {
                kind: token::Kind::of_word(line.word(2)).unwrap_or_else(|| line.unknown()),
                job: line.option("for").map(Into::into),
                task: line.get("task").map(TaskId),
                name: line.option("name").unwrap_or("").to_owned(),
            };
            token::Command::Create { token: id, hash, bearer, lifetime_ms, by }
        }
        "token-bootstrap" => {
            token::Command::Bootstrap { token: id, hash, name: line.text(2), lifetime_ms, by }
        }
        "token-revoke" => token::Command::Revoke { token: id, by },
        "token-use" => token::Command::Use { token: id },
        _ => line.unknown(),
    }
}
