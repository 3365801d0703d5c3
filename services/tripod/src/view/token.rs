//! Tokens, as they are printed. No view but that of one that was just made has a text of a token.

use std::path::PathBuf;

use serde::Serialize;
use tripod_client::wire;

use crate::args::lifetime::in_words;
use crate::output::Table;

/// What `auth token create` and `auth bootstrap` print. A contract: fields may be added, never renamed.
#[derive(Serialize)]
pub(crate) struct MadeView {
    pub(crate) id: String,
    pub(crate) kind: String,
    /// Milliseconds since 1970; 0: not known yet.
    pub(crate) expires_ms: u64,
    /// Where its text was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<PathBuf>,
    /// Its text, if it was not written to a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
}

impl MadeView {
    /// All but the text.
    pub(crate) fn render(&self, now_ms: u64) -> String {
        let Self { id, kind, expires_ms, file, .. } = self;
        let place = file.as_ref().map_or_else(String::new, |file| format!(", in {}", file.display()));
        let life = in_words(expires_ms.saturating_sub(now_ms).saturating_add(999));
        format!(
            "token {id} of kind {kind}{place}; it holds for {life} and is not shown again; next: name its file by \
             --token-file or TRIPOD_TOKEN_FILE, or end it with `tripod auth token revoke {id}`"
        )
    }
}

/// What `auth token list` prints. A contract: fields may be added, never renamed.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct TokensView {
    tokens: Vec<TokenView>,
    #[serde(skip)]
    now_ms: u64,
}

/// One token.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct TokenView {
    id: String,
    kind: String,
    /// To which it is confined.
    job: Option<String>,
    task: Option<u32>,
    name: Option<String>,
    /// Who made it.
    by: String,
    created_ms: u64,
    expires_ms: u64,
    uses_left: Option<u32>,
    revoked_ms: Option<u64>,
    revoked_by: Option<String>,
    /// `valid`, `revoked`, `expired` or `used`.
    standing: String,
}

impl TokensView {
    pub(crate) fn of(tokens: &[wire::Token], now_ms: u64) -> Self {
        Self { tokens: tokens.iter().map(TokenView::of).collect(), now_ms }
    }

    pub(crate) fn render(&self) -> String {
        if self.tokens.is_empty() {
            return "no tokens; make one with `tripod auth token create`".to_owned();
        }
        let mut table = Table::new(&["ID", "KIND", "FOR", "MADE BY", "STANDING"]);
        for token in &self.tokens {
            let standing = match (token.standing.as_str(), &token.revoked_by) {
                ("valid", _) => {
                    format!("valid for {}", in_words(token.expires_ms.saturating_sub(self.now_ms)))
                }
                ("revoked", Some(by)) => format!("revoked by {by}"),
                (other, _) => other.to_owned(),
            };
            table.row(vec![token.id.clone(), token.kind.clone(), token.whose(), token.by.clone(), standing]);
        }
        table.render()
    }
}

impl TokenView {
    fn of(token: &wire::Token) -> Self {
        let some = |text: &String| (!text.is_empty()).then(|| text.clone());
        Self {
            id: token.id.clone(),
            kind: token.kind.clone(),
            job: some(&token.job),
            task: token.task,
            name: some(&token.name),
            by: token.by.clone(),
            created_ms: token.created_ms,
            expires_ms: token.expires_ms,
            uses_left: token.uses_left,
            revoked_ms: (token.revoked_ms > 0).then_some(token.revoked_ms),
            revoked_by: some(&token.revoked_by),
            standing: token.standing.clone(),
        }
    }

    fn whose(&self) -> String {
        let job = self.job.as_ref().map(|job| format!("job {job}"));
        let task = self.task.map(|task| format!("task {task}"));
        let parts: Vec<String> = job.into_iter().chain(task).chain(self.name.clone()).collect();
        if parts.is_empty() { "-".to_owned() } else { parts.join(", ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_says_what_a_token_proves_and_until_when() {
        let agent = wire::Token {
            id: "aaaaaaaaaaaab".to_owned(),
            kind: "task".to_owned(),
            job: "train".to_owned(),
            task: Some(3),
            by: "ops@host".to_owned(),
            created_ms: 1_000,
            expires_ms: 43_201_000,
            standing: "valid".to_owned(),
            ..wire::Token::default()
        };
        let revoked = wire::Token {
            kind: "operator".to_owned(),
            job: String::new(),
            task: None,
            name: "alice".to_owned(),
            revoked_ms: 2_000,
            revoked_by: "bob@host".to_owned(),
            standing: "revoked".to_owned(),
            ..agent.clone()
        };
        let text = TokensView::of(&[agent, revoked], 1_000).render();
        assert!(text.contains("job train, task 3") && text.contains("valid for 12 h"), "{text}");
        assert!(text.contains("alice") && text.contains("revoked by bob@host"), "{text}");
        assert!(TokensView::of(&[], 0).render().contains("`tripod auth token create`"));
    }
}
