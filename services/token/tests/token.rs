//! What is read, what is believed, and what never is: rows S30 to S32 of the threat model, as far as a node decides them
//! without a connection.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tripod_identity::{Identity, Realm};
use tripod_state::ids::{DurationMs, LogIndex, TaskId, Term, TimeMs, TokenId};
use tripod_state::token::{Bearer, Command as Token, Kind};
use tripod_state::{ApplyContext, Command, Envelope, State, level};
use tripod_token::{
    Beyond, Illegible, Maker, REFUSED, Refused, Remembered, TOKEN_BYTES_MAX, TokenText, View, Why, verify,
    verify_join, whose, why,
};

const BORN: u64 = 1_000;
const LIFE: u64 = 60_000;

struct Cluster {
    state: State,
    index: u64,
}

impl Cluster {
    fn new() -> Self {
        let mut cluster = Self { state: State::default(), index: 0 };
        cluster.apply(Command::Level(level::Command::Raise { to: level::NEWEST, heard: Vec::new() }));
        cluster
    }

    fn apply(&mut self, command: Command) {
        self.index += 1;
        let context = ApplyContext { index: LogIndex(self.index), term: Term(1), now_ms: TimeMs(BORN) };
        self.state.apply(&context, Envelope { stamp: None, command }).reply.expect("it is legal");
    }

    fn make(&mut self, bearer: Bearer) -> (TokenId, String) {
        let text = TokenText::draw(bearer.kind).expect("the system has random bits");
        let (token, hash, lifetime_ms) = (text.id, text.secret.hash(text.id), DurationMs(LIFE));
        self.apply(Command::Token(Token::Create { token, hash, bearer, lifetime_ms, by: "ops".to_owned() }));
        (token, text.write().to_string())
    }

    fn revoke(&mut self, token: TokenId) {
        self.apply(Command::Token(Token::Revoke { token, by: "ops".to_owned() }));
    }

    fn view(&self) -> View {
        let identity: Identity = "spiffe://example.org/tripod/main/node/a".parse().expect("it is one");
        let Identity { realm, .. } = identity;
        View { realm, tokens: self.state.tokens().clone(), log_now: self.state.now_ms() }
    }
}

fn bearer(kind: Kind) -> Bearer {
    let job = kind.is_of_a_job().then(|| "train".into());
    let name = if matches!(kind, Kind::Operator | Kind::Viewer) { "alice" } else { "" };
    Bearer { kind, job, task: None, name: name.to_owned() }
}

#[test]
fn whoever_bears_a_token_is_whom_it_says() {
    let mut cluster = Cluster::new();
    let cases = [
        (bearer(Kind::Operator), "operator/alice"),
        (bearer(Kind::Viewer), "viewer/alice"),
        (bearer(Kind::Agent), "job/train/agent"),
        (bearer(Kind::Task), "job/train/task"),
        (Bearer { task: Some(TaskId(3)), ..bearer(Kind::Task) }, "job/train/task/3"),
        (bearer(Kind::Driver), "job/train/driver"),
        (bearer(Kind::Worker), "job/train/worker"),
        (bearer(Kind::Store), "job/train/store"),
    ];
    for (bearer, path) in cases {
        let (_, text) = cluster.make(bearer);
        let identity = verify(&text, &cluster.view(), BORN).expect("it holds");
        assert_eq!(identity.to_string(), format!("spiffe://example.org/tripod/main/{path}"));
    }
}

#[test]
fn s30_whatever_is_wrong_with_a_token_is_refused_in_the_same_words() {
    let mut cluster = Cluster::new();
    let (token, text) = cluster.make(bearer(Kind::Operator));
    let (_, other) = cluster.make(bearer(Kind::Operator));
    let view = cluster.view();
    assert!(verify(&text, &view, BORN).is_ok());

    let parts: Vec<&str> = text.split('_').collect();
    let others: Vec<&str> = other.split('_').collect();
    let mixed = resummed(&[parts[0], parts[1], parts[2], others[3]]);
    assert!(TokenText::parse(&mixed).is_ok(), "its form is right");
    let as_agent = resummed(&[parts[0], "agent", parts[2], parts[3]]);
    let unknown = resummed(&[parts[0], parts[1], "aaaaaaaaaaaaa", parts[3]]);
    let mut wrong_sum = text.clone();
    let last = if wrong_sum.pop() == Some('a') { 'b' } else { 'a' };
    wrong_sum.push(last);
    let long = "a".repeat(1 << 20);
    let wrong = ["", "trp", "Bearer x", &mixed, &as_agent, &unknown, &wrong_sum, &text[..60], &long];
    for text in wrong {
        assert_eq!(verify(text, &view, BORN), Err(Refused), "{}", &text[..text.len().min(90)]);
        assert_eq!(whose(text, &view), None);
    }
    // It has expired by the node's clock, or by the log's.
    assert_eq!(verify(&text, &view, BORN + LIFE), Err(Refused));
    let later = View { log_now: TimeMs(BORN + LIFE), ..view.clone() };
    assert_eq!(verify(&text, &later, BORN), Err(Refused));
    // Another cluster does not know it.
    assert_eq!(verify(&text, &Cluster::new().view(), BORN), Err(Refused));
    cluster.revoke(token);
    assert_eq!(verify(&text, &cluster.view(), BORN), Err(Refused));
    assert_eq!(whose(&text, &cluster.view()), Some(token), "who has seen it in plain text can still tell");
}

/// The parts with the checksum that belongs to them, as somebody would write it who knows the form.
fn resummed(parts: &[&str]) -> String {
    let text = parts.join("_");
    let sum = crc32fast::hash(text.as_bytes()).to_be_bytes();
    format!("{text}_{}", data_encoding::BASE32_NOPAD.encode(&sum).to_ascii_lowercase())
}

#[test]
fn s30_a_token_to_join_proves_nobody_and_serves_once() {
    let mut cluster = Cluster::new();
    let (token, text) = cluster.make(bearer(Kind::Join));
    let (_, operator) = cluster.make(bearer(Kind::Operator));
    assert_eq!(verify(&text, &cluster.view(), BORN), Err(Refused));
    assert_eq!(verify_join(&operator, &cluster.view(), BORN), Err(Refused));
    assert_eq!(verify_join(&text, &cluster.view(), BORN), Ok(token));
    cluster.apply(Command::Token(Token::Use { token }));
    assert_eq!(verify_join(&text, &cluster.view(), BORN), Err(Refused));
}

#[test]
fn s30_why_a_token_is_refused_is_known_to_the_node_and_not_whether_id_or_secret_is_wrong() {
    let mut cluster = Cluster::new();
    let (token, text) = cluster.make(bearer(Kind::Operator));
    let (_, other) = cluster.make(bearer(Kind::Operator));
    let (_, join) = cluster.make(bearer(Kind::Join));
    let view = cluster.view();
    let parts: Vec<&str> = text.split('_').collect();
    let others: Vec<&str> = other.split('_').collect();
    let mixed = resummed(&[parts[0], parts[1], parts[2], others[3]]);
    let nobodys = resummed(&[parts[0], parts[1], "aaaaaaaaaaaaa", parts[3]]);
    assert_eq!(why(&mixed, &view, BORN), Why::Unknown);
    assert_eq!(why(&nobodys, &view, BORN), Why::Unknown);
    assert_eq!(why(&text[..60], &view, BORN), Why::Illegible);
    assert_eq!(why(&join, &view, BORN), Why::Joins);
    assert_eq!(why(&text, &view, BORN + LIFE), Why::Expired);
    cluster.revoke(token);
    assert_eq!(why(&text, &cluster.view(), BORN + LIFE), Why::Revoked);
    let words: BTreeSet<_> = Why::ALL.map(Why::word).into_iter().collect();
    assert_eq!(words.len(), Why::ALL.len());
    assert_eq!(Refused.to_string(), REFUSED);
}

#[test]
fn s31_what_a_connection_has_proved_holds_until_the_tokens_change() {
    let mut cluster = Cluster::new();
    let (token, text) = cluster.make(bearer(Kind::Operator));
    let (_, other) = cluster.make(bearer(Kind::Viewer));
    let remembered = Remembered::default();
    let whose_call =
        |text: &str, view: &View, now| remembered.verify(text, view, now).map(|believed| believed.identity);
    let view = cluster.view();
    let alice = verify(&text, &view, BORN);
    assert!(alice.is_ok());
    for _ in 0..3 {
        assert_eq!(whose_call(&text, &view, BORN), alice);
    }
    assert_ne!(whose_call(&other, &view, BORN), alice, "another token is another bearer");
    assert_eq!(whose_call(&text, &view, BORN), alice);
    assert_eq!(whose_call(&text, &view, BORN + LIFE), Err(Refused), "time goes on without a change");
    assert_eq!(whose_call(&text, &view, BORN), alice);
    assert_eq!(remembered.verify(&text, &view, BORN).map(|believed| believed.token), Ok(token));
    cluster.revoke(token);
    assert_eq!(whose_call(&text, &cluster.view(), BORN), Err(Refused));
}

#[test]
fn s31_a_table_that_was_forgotten_and_made_anew_is_another_one() {
    let mut cluster = Cluster::new();
    let (_, text) = cluster.make(bearer(Kind::Operator));
    let remembered = Remembered::default();
    assert!(remembered.verify(&text, &cluster.view(), BORN).is_ok());
    let ten = tripod_state::ids::FeatureLevel(10);
    cluster.apply(Command::Level(level::Command::Pin { level: ten, by: "ops".to_owned() }));
    cluster.apply(Command::Level(level::Command::Raise { to: level::NEWEST, heard: Vec::new() }));
    cluster.make(bearer(Kind::Viewer));
    assert_eq!(remembered.verify(&text, &cluster.view(), BORN), Err(Refused));
}

#[test]
fn s32_nobody_makes_a_token_that_may_do_more() {
    let operator = Maker::Operator { name: "alice".to_owned() };
    let proved = |is_operator, is_enforced| Maker::who_proved("x".to_owned(), is_operator, is_enforced);
    for (is_operator, is_enforced) in [(true, true), (true, false), (false, false)] {
        assert_eq!(proved(is_operator, is_enforced).check(&bearer(Kind::Operator)), Ok(()));
    }
    assert_eq!(proved(false, true).check(&bearer(Kind::Agent)), Err(Beyond), "nobody was granted a job");
    let owner = Maker::Owner { name: "bob".to_owned(), jobs: BTreeSet::from(["train".to_owned()]) };
    for kind in Kind::ALL {
        assert_eq!(operator.check(&bearer(kind)), Ok(()));
        assert_eq!(owner.check(&bearer(kind)).is_ok(), kind.is_of_a_job(), "{kind:?}");
        let of_another = Bearer { job: Some("eval".into()), ..bearer(kind) };
        assert_eq!(owner.check(&of_another), Err(Beyond), "{kind:?}");
    }
}

#[test]
fn nothing_of_a_realm_is_in_a_token() {
    let mut cluster = Cluster::new();
    let (_, text) = cluster.make(bearer(Kind::Viewer));
    let mut view = cluster.view();
    let elsewhere: Identity = "spiffe://example.com/tripod/other/node/a".parse().expect("it is one");
    let Realm { trust, cluster } = elsewhere.realm;
    view.realm = Realm { trust, cluster };
    let identity = verify(&text, &view, BORN).expect("it holds");
    assert_eq!(identity.to_string(), "spiffe://example.com/tripod/other/viewer/alice");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_and_what_is_read_is_written_so(kind in 0..Kind::ALL.len()) {
        let made = TokenText::draw(Kind::ALL[kind]).expect("the system has random bits");
        let text = made.write();
        prop_assert!(text.len() <= 87 && text.len() <= TOKEN_BYTES_MAX);
        let read = TokenText::parse(&text).expect("it was written");
        prop_assert_eq!((read.kind, read.id), (made.kind, made.id));
        prop_assert_eq!(read.secret.hash(read.id), made.secret.hash(made.id));
        prop_assert_eq!(&*read.write(), &*text);
    }

    /// One bit, one byte more or less, or two that changed places: nothing of it is a token.
    #[test]
    fn a_slip_is_noticed(place in 0_usize..87, how in 0..4, bit in 0_u32..7) {
        let text = TokenText::draw(Kind::Task).expect("the system has random bits").write();
        let mut bytes = text.as_bytes().to_vec();
        let place = place % bytes.len();
        match how {
            0 => bytes[place] ^= 1 << bit,
            1 => drop(bytes.remove(place)),
            2 => bytes.insert(place, b'a'),
            _ => bytes.swap(place, (place + 1) % text.len()),
        }
        if bytes != text.as_bytes() && let Ok(slipped) = std::str::from_utf8(&bytes) {
            prop_assert!(TokenText::parse(slipped).is_err(), "{}", slipped);
        }
    }

    /// No bytes of others do harm, and whatever is read has one text.
    #[test]
    fn any_text_is_read_as_one_token_or_none(text in "(trp)?(_?[a-z2-7_]{0,60}){0,5}|\\PC{0,200}") {
        match TokenText::parse(&text) {
            Ok(token) => prop_assert_eq!(&*token.write(), &text),
            Err(Illegible::TooLong) => prop_assert!(text.len() > TOKEN_BYTES_MAX),
            Err(_) => {}
        }
    }

    /// With the right checksum whatever else it is: the parts behind it are looked at.
    #[test]
    fn a_text_with_the_right_sum_is_read_as_one_token_or_none(
        kind in "(operator|join|task|viewer|[a-z]{0,9})", id in "[a-z2-7]{12,14}", secret in "[a-zA-Z2-7]{51,53}",
    ) {
        let text = resummed(&["trp", &kind, &id, &secret]);
        if let Ok(token) = TokenText::parse(&text) {
            prop_assert_eq!(&*token.write(), &text);
        }
    }
}
