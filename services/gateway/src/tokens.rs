//! Which tokens this node's state knows: asked with every call that brings one, while they change seldom.

use parking_lot::RwLock;
use tripod_state::ids::TimeMs;
use tripod_state::token::Tokens;

use crate::backend::{Replica, look};
use crate::hub::Watch;

/// Remembers them until one changes. Apply holds the state's lock for hundreds of commands at a time, and whoever looked there
/// with each call would wait for that.
pub(crate) struct KnownTokens {
    changes: Watch,
    known: RwLock<Option<Known>>,
}

struct Known {
    /// How often tokens had changed when these were read.
    changes: u64,
    tokens: Tokens,
}

impl KnownTokens {
    /// None yet. `changes` is told when tokens change.
    pub(crate) fn new(changes: Watch) -> Self {
        Self { changes, known: RwLock::default() }
    }

    /// The tokens as this node has applied them, and the time of the log now, by which they expire also if none changes. What was just
    /// applied may be told a moment later than the state has it.
    pub(crate) fn now(&self, replica: &dyn Replica) -> (Tokens, TimeMs) {
        // Before the state is looked at: what changes later makes what is found there old.
        let changes = self.changes.rings();
        if let Some(known) = &*self.known.read()
            && known.changes == changes
        {
            return (known.tokens.clone(), replica.log_now());
        }
        let (tokens, log_now) = look(replica, |state| (state.tokens().clone(), state.now_ms()));
        let mut known = self.known.write();
        if known.as_ref().is_none_or(|known| known.changes < changes) {
            *known = Some(Known { changes, tokens: tokens.clone() });
        }
        (tokens, log_now)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tripod_state::ids::{DurationMs, FeatureLevel, TokenId};
    use tripod_state::token::{Bearer, Command as Token, Kind, SecretHash};
    use tripod_state::{Command, Effect, Envelope, Topic, level};

    use super::*;
    use crate::hub::Hub;
    use crate::memory::MemoryBackend;

    async fn apply(backend: &MemoryBackend, command: Command) {
        backend.propose(Envelope { stamp: None, command }).await.unwrap().reply.unwrap();
    }

    #[tokio::test]
    async fn tokens_are_looked_up_once_until_one_changes() {
        let (hub, backend) = (Arc::new(Hub::default()), MemoryBackend::new());
        let known = KnownTokens::new(hub.watch(Topic::Tokens));
        assert!(known.now(backend.as_ref()).0.is_empty());
        apply(&backend, Command::Level(level::Command::Raise { to: level::NEWEST, heard: Vec::new() })).await;
        let bearer = Bearer { kind: Kind::Viewer, job: None, task: None, name: "bob".to_owned() };
        let (token, hash, lifetime_ms) = (TokenId(1), SecretHash([1; 32]), DurationMs(1_000));
        apply(
            &backend,
            Command::Token(Token::Create { token, hash, bearer, lifetime_ms, by: String::new() }),
        )
        .await;
        assert!(known.now(backend.as_ref()).0.is_empty(), "nobody has told of it");
        hub.effects(&[Effect::TokensChanged]);
        assert_eq!(known.now(backend.as_ref()).0.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_of_the_log_goes_on_while_no_token_changes() {
        let (hub, backend) = (Arc::new(Hub::default()), MemoryBackend::beginning(TimeMs(1_000_000)));
        let known = KnownTokens::new(hub.watch(Topic::Tokens));
        let raise = |to| level::Command::Raise { to: FeatureLevel(to), heard: Vec::new() };
        apply(&backend, Command::Level(raise(2))).await;
        assert_eq!(known.now(backend.as_ref()).1, TimeMs(1_000_000));
        let hour = Duration::from_secs(3_600);
        tokio::time::advance(hour).await;
        apply(&backend, Command::Level(raise(3))).await;
        assert_eq!(known.now(backend.as_ref()).1, TimeMs(1_000_000 + 3_600_000), "no token has changed");
    }
}
