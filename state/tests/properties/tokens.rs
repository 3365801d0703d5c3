//! What holds of tokens for every sequence of commands.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tripod_state::ids::{DurationMs, TaskId, TokenId};
use tripod_state::limits::{JOIN_TOKEN_LIFETIME_MS_MAX, TOKEN_KEPT_MS, TOKEN_LIFETIME_MS_MAX};
use tripod_state::token::{Bearer, Command as C, Kind, SecretHash};
use tripod_state::{Answer, Command, Reply, State, level};

use crate::Replica;

/// After so many milliseconds, a command.
type Step = (u64, C);

fn bearer() -> impl Strategy<Value = Bearer> {
    let (jobs, names) = (select(vec![None, Some("a"), Some("B")]), select(vec!["", "alice", "Bob"]));
    (select(Kind::ALL.to_vec()), jobs, select(vec![None, Some(0), Some(-1)]), names).prop_map(
        |(kind, job, task, name)| Bearer {
            kind,
            job: job.map(Into::into),
            task: task.map(TaskId),
            name: name.to_owned(),
        },
    )
}

fn command() -> impl Strategy<Value = C> {
    let token = || (0_u64..5).prop_map(TokenId);
    let hash = || select(vec![1, 2]).prop_map(|byte| SecretHash([byte; 32]));
    let life = || {
        let lives =
            vec![0, 1_000, JOIN_TOKEN_LIFETIME_MS_MAX, TOKEN_LIFETIME_MS_MAX, TOKEN_LIFETIME_MS_MAX + 1];
        select(lives).prop_map(DurationMs)
    };
    let by = || select(vec!["ops".to_owned(), "x".repeat(200)]);
    prop_oneof![
        6 => (token(), hash(), bearer(), life(), by()).prop_map(|(token, hash, bearer, lifetime_ms, by)| {
            C::Create { token, hash, bearer, lifetime_ms, by }
        }),
        1 => (token(), hash(), life(), by()).prop_map(|(token, hash, lifetime_ms, by)| {
            C::Bootstrap { token, hash, name: "root".to_owned(), lifetime_ms, by }
        }),
        2 => (token(), by()).prop_map(|(token, by)| C::Revoke { token, by }),
        3 => token().prop_map(|token| C::Use { token }),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    vec((select(vec![0, 0, 1, 999, 1_000, TOKEN_KEPT_MS]), command()), 1..60)
}

fn started() -> Replica {
    let mut replica = Replica::default();
    let raise = level::Command::Raise { to: level::NEWEST, heard: Vec::new() };
    replica.apply(None, Command::Level(raise)).reply.expect("there are no members");
    replica
}

fn step(replica: &mut Replica, (after_ms, command): &Step) -> Reply {
    replica.now += after_ms;
    replica.apply(None, Command::Token(command.clone())).reply
}

/// All but the time, which every command sets.
fn tokens(state: &State) -> String {
    format!("{:?}", state.tokens())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tokens_come_through_a_snapshot_and_are_counted(steps in steps(), cut in 0_usize..60) {
        let (mut whole, mut resumed) = (started(), started());
        for (number, one) in steps.iter().enumerate() {
            if number == cut {
                resumed = resumed.through_a_snapshot();
            }
            prop_assert_eq!(step(&mut whole, one), step(&mut resumed, one));
            prop_assert_eq!(whole.state.bytes(), whole.state.recounted_bytes());
        }
        prop_assert_eq!(whole.state.digest(), resumed.state.digest());
        prop_assert!(whole.state == resumed.state);
        prop_assert!(whole.through_a_snapshot().state == whole.state);
    }

    /// So who compares the revision with each call misses nothing.
    #[test]
    fn the_revision_rises_with_every_change_and_with_nothing_else(steps in steps()) {
        let mut replica = started();
        for one in &steps {
            let (before, said) = (replica.state.tokens().clone(), tokens(&replica.state));
            let reply = step(&mut replica, one);
            let after = replica.state.tokens();
            if tokens(&replica.state) == said {
                prop_assert_eq!(after.revision(), before.revision());
            } else {
                prop_assert!(after.revision() > before.revision());
                prop_assert!(reply.is_ok(), "{:?} has changed something", reply);
            }
        }
    }

    /// What has ended never holds again, and whatever holds was made by a command that was answered so.
    #[test]
    fn a_token_that_has_ended_never_holds_again(steps in steps()) {
        let mut replica = started();
        let mut ended: Vec<(TokenId, SecretHash, u64)> = Vec::new();
        for one in &steps {
            let reply = step(&mut replica, one);
            let now = replica.state.now_ms();
            for (id, token) in replica.state.tokens().iter() {
                let is_ended = |(known, hash, created): &(TokenId, SecretHash, u64)| {
                    *known == id && *hash == token.hash && *created == token.created.0
                };
                if !token.holds_at(now) {
                    ended.push((id, token.hash, token.created.0));
                } else {
                    prop_assert!(!ended.iter().any(is_ended), "{} holds again", id);
                    prop_assert!(token.bearer.check().is_ok());
                    prop_assert!(token.expires.0 - token.created.0 <= token.bearer.kind.lifetime_max().0);
                }
            }
            if let (Ok(Answer::Token { token, .. }), (_, C::Create { hash, bearer, .. })) = (&reply, one) {
                let known = replica.state.tokens().get(*token).expect("it was made");
                prop_assert!(known.hash == *hash && known.bearer == *bearer);
            }
        }
    }

    #[test]
    fn an_id_is_read_as_it_is_shown(id in any::<u64>(), other in "[a-z2-8]{12,14}") {
        let shown = TokenId(id).to_string();
        prop_assert_eq!(shown.len(), 13);
        prop_assert_eq!(TokenId::parse(&shown), Some(TokenId(id)));
        if let Some(read) = TokenId::parse(&other) {
            prop_assert_eq!(read.to_string(), other);
        }
    }
}
