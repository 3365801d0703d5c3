//! Tokens: how many there are at most, and what a restored cluster knows of them.

use tripod_state::ids::{DurationMs, TokenId};
use tripod_state::limits::TOKENS_MAX;
use tripod_state::token::{Bearer, Command as Token, Kind, SecretHash, Tokens};
use tripod_state::{Command, Fault, Reply, level, restore};

use crate::support::Machine;

fn at_newest() -> Machine {
    let mut machine = Machine::default();
    let raise = level::Command::Raise { to: level::NEWEST, heard: Vec::new() };
    machine.apply(Command::Level(raise)).expect("there are no members");
    machine
}

fn create(machine: &mut Machine, id: u64) -> Reply {
    let bearer = Bearer { kind: Kind::Viewer, job: None, task: None, name: "bob".to_owned() };
    let (token, hash, lifetime_ms) = (TokenId(id), SecretHash([1; 32]), DurationMs(1_000));
    machine.apply(Command::Token(Token::Create { token, hash, bearer, lifetime_ms, by: "ops".to_owned() }))
}

#[test]
fn there_are_only_so_many_tokens_and_more_change_nothing() {
    let mut machine = at_newest();
    for id in 0..TOKENS_MAX as u64 {
        create(&mut machine, id).expect("there is room");
    }
    let before = machine.state.clone();
    let limit = TOKENS_MAX as u64;
    let full = Fault::LimitExceeded { what: "tokens".to_owned(), limit, actual: limit + 1 };
    assert_eq!(create(&mut machine, limit), Err(full));
    assert_eq!(machine.state, before);
    create(&mut machine, 3).expect("it is there");
}

#[test]
fn a_restored_cluster_believes_no_token_of_the_old_one() {
    for jobs in [restore::Jobs::Kept, restore::Jobs::Ended] {
        let mut machine = at_newest();
        create(&mut machine, 1).expect("there is room");
        assert_eq!(machine.state.restored("other", jobs).tokens(), &Tokens::default());
    }
}
