//! Tokens: how many there are at most, and what a restored cluster knows of them.

use tripod_state::ids::{DurationMs, FeatureLevel, Sequence, SessionId, TokenId};
use tripod_state::limits::TOKENS_MAX;
use tripod_state::session::{self, Owner};
use tripod_state::token::{Bearer, Command as Token, Kind, SecretHash, Tokens};
use tripod_state::{Answer, Command, Fault, Reply, Stamp, level, restore};

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

#[test]
fn below_level_11_no_session_remembers_what_was_answered_about_tokens() {
    let mut machine = at_newest();
    let session = SessionId::of_client(9);
    let open = session::Command::OpenFor { id: session, owner: Owner::Client(None) };
    machine.apply(Command::Session(open)).expect("there is room");
    let bootstrap = Token::Bootstrap {
        token: TokenId(1),
        hash: SecretHash([1; 32]),
        name: "ann".to_owned(),
        lifetime_ms: DurationMs(1_000),
        by: "ops".to_owned(),
    };
    let revoke = Token::Revoke { token: TokenId(2), by: "ops".to_owned() };
    let stamp =
        |sequence| Some(Stamp { session, sequence: Sequence(sequence), acknowledged_below: Sequence(1) });
    for (sequence, command) in [(1, bootstrap.clone()), (2, revoke.clone())] {
        let reply = machine.apply_stamped(stamp(sequence), Command::Token(command));
        assert!(matches!(reply, Ok(Answer::Token { .. }) | Err(Fault::Token(_))), "{reply:?}");
    }
    let remembered = |machine: &Machine| {
        let says = |text: &str| text.contains("Token(") || text.contains("Token {");
        machine.state.records().any(|record| says(&format!("{record:?}")))
    };
    assert!(remembered(&machine));
    let pin = level::Command::Pin { level: FeatureLevel(10), by: String::new() };
    machine.apply(Command::Level(pin)).expect("nothing needs more");
    // Builds of that level could not read a snapshot with one.
    assert!(!remembered(&machine));
    assert_eq!(machine.state.bytes(), machine.state.recounted_bytes());
    // The session goes on, and nothing of it is done again.
    let raise = level::Command::Raise { to: level::NEWEST, heard: Vec::new() };
    machine.apply(Command::Level(raise)).expect("nobody has an id");
    for (sequence, command) in [(1, bootstrap), (2, revoke)] {
        let reply = machine.apply_stamped(stamp(sequence), Command::Token(command));
        assert_eq!(reply, Err(Fault::ReplyForgotten));
    }
    assert_eq!(machine.state.tokens(), &Tokens::default());
}
