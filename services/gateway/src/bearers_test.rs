use http::Request;
use tripod_gate::{Gate, Mode, Port};
use tripod_port::Guard as _;
use tripod_state::identity::Identity;
use tripod_state::ids::{DurationMs, SessionId};
use tripod_state::token::{Bearer as Proves, Kind};
use tripod_state::{level, session};
use tripod_token::Why;

use super::*;
use crate::call_guard::CallGuard;
use crate::proposers::signed;

const HOUR_MS: u64 = 3_600_000;
const SUBMIT: &str = "/Scheduler/SubmitTask";
const HEALTH: &str = "/grpc.health.v1.Health/Check";
const CREATE: &str = "/tripod.v1.Tokens/Create";

struct Site {
    gateway: Gateway,
    bearers: Bearers,
}

impl Site {
    async fn new(takes_plain: bool) -> Self {
        let (gateway, _backend) = Gateway::in_memory();
        let raise = level::Command::Raise { to: level::NEWEST, heard: Vec::new() };
        gateway.submit(Command::Level(raise)).await.expect("no outage").expect("not refused");
        let node: tripod_identity::Identity =
            "spiffe://example.org/tripod/main/node/a".parse().expect("it is one");
        let bearers = Bearers::new(&gateway, node.realm, takes_plain);
        Self { gateway, bearers }
    }

    async fn submit(&self, command: Token) {
        self.gateway.submit(Command::Token(command)).await.expect("no outage").expect("not refused");
    }

    async fn make(&self, kind: Kind) -> (TokenId, String) {
        let text = TokenText::draw(kind).expect("the system has random bits");
        let (token, hash) = (text.id, text.secret.hash(text.id));
        let job = kind.is_of_a_job().then(|| "own".into());
        let name = if matches!(kind, Kind::Operator | Kind::Viewer) { "alice" } else { "" };
        let bearer = Proves { kind, job, task: None, name: name.to_owned() };
        let (lifetime_ms, by) = (DurationMs(HOUR_MS), "ops".to_owned());
        self.submit(Token::Create { token, hash, bearer, lifetime_ms, by }).await;
        (token, text.write().to_string())
    }

    async fn revoke(&self, token: TokenId) {
        self.submit(Token::Revoke { token, by: "ops".to_owned() }).await;
    }

    fn admit(&self, head: &mut Head, calls: &ConnectionCalls) -> Result<Option<Arc<Caller>>, Status> {
        Ok(self.bearers.admit(head, calls, true)?.map(|(caller, _)| caller))
    }

    fn refused(&self, reason: &str) -> u64 {
        let counted = self.bearers.tally().refused();
        counted.into_iter().find(|(word, _)| *word == reason).expect("a reason").1
    }
}

fn head(path: &str, shown: &[&str]) -> Head {
    let mut request = Request::builder().uri(format!("http://127.0.0.1:7700{path}"));
    for text in shown {
        request = request.header(header::AUTHORIZATION, *text);
    }
    request.body(()).expect("a request").into_parts().0
}

fn showing(token: &str) -> Head {
    head(CREATE, &[&format!("Bearer {token}")])
}

#[tokio::test]
async fn s30_whatever_is_wrong_with_a_token_its_call_is_told_the_same_and_the_node_counts_why() {
    let site = Site::new(false).await;
    let (token, text) = site.make(Kind::Operator).await;
    let (_, join) = site.make(Kind::Join).await;
    let calls = ConnectionCalls::default();
    let caller = site.admit(&mut showing(&text), &calls).expect("it holds").expect("it is shown");
    assert_eq!((caller.to_string().as_str(), caller.is_by_token()), ("operator/alice", true));
    assert!(site.admit(&mut head(CREATE, &[]), &calls).expect("nothing is shown").is_none());
    let other_scheme = site.admit(&mut head(CREATE, &["Basic YTpi"]), &calls);
    assert!(other_scheme.expect("it is for somebody else").is_none());

    let twice = [format!("Bearer {text}"), format!("bearer {text}")];
    let twice = head(CREATE, &[&twice[0], &twice[1]]);
    let nobodys = TokenText::draw(Kind::Operator).expect("random bits").write();
    let wrong = [showing(""), showing(&text[..40]), showing(&"a".repeat(1 << 20)), twice];
    let wrong = wrong.into_iter().chain([showing(&nobodys), showing(&join)]);
    for mut head in wrong {
        let status = site.admit(&mut head, &calls).expect_err("it is no token of a caller");
        assert_eq!((status.code(), status.message()), (tonic::Code::Unauthenticated, REFUSED));
    }
    site.revoke(token).await;
    let status = site.admit(&mut showing(&text), &calls).expect_err("it is revoked");
    assert_eq!((status.code(), status.message()), (tonic::Code::Unauthenticated, REFUSED));
    let counted =
        [Why::Illegible, Why::Unknown, Why::Joins, Why::Revoked].map(|why| site.refused(why.word()));
    assert_eq!(counted, [4, 1, 1, 1]);
}

#[tokio::test]
async fn what_a_connection_holds_counts_for_the_first_bearer_that_is_believed_on_it() {
    let site = Site::new(false).await;
    let (_, text) = site.make(Kind::Agent).await;
    let is_anybodys = |calls: &ConnectionCalls| {
        let mut is_asked = false;
        calls.belong_to(|| {
            is_asked = true;
            "token:test".to_owned()
        });
        !is_asked
    };
    for wrong in [head(CREATE, &[]), showing("x")] {
        let (calls, mut wrong) = (ConnectionCalls::default(), wrong);
        assert!(!matches!(site.admit(&mut wrong, &calls), Ok(Some(_))));
        assert!(!is_anybodys(&calls), "nobody was believed");
    }
    let calls = ConnectionCalls::default();
    site.admit(&mut showing(&text), &calls).expect("it holds").expect("it is shown");
    assert!(is_anybodys(&calls));
}

#[tokio::test]
async fn s30_a_token_in_plain_text_from_elsewhere_is_refused_and_revoked_unless_plain_text_is_taken() {
    let site = Site::new(false).await;
    let (token, text) = site.make(Kind::Agent).await;
    let before = ShownBefore::default();
    assert!(site.bearers.bearer(&text, true, &before).is_ok(), "nobody else has read it");
    let nobodys = TokenText::draw(Kind::Agent).expect("random bits").write();
    assert_eq!(site.bearers.bearer(&nobodys, false, &before).err(), Some(PLAIN));
    assert_eq!(site.bearers.bearer(&text, false, &before).err(), Some(PLAIN));
    let mut changes = site.gateway.watch(Topic::Tokens);
    while site.gateway.tokens_here().0.get(token).is_some_and(|known| known.revoked.is_none()) {
        tokio::time::timeout(Duration::from_secs(10), changes.changed()).await.expect("it is revoked");
    }
    assert_eq!(site.bearers.bearer(&text, true, &before).err(), Some("revoked"));
    let known = site.gateway.tokens_here().0.get(token).and_then(|known| known.revoked.clone());
    assert_eq!(known.expect("revoked").by, SEEN);

    let site = Site::new(true).await;
    let (_, text) = site.make(Kind::Agent).await;
    assert!(site.bearers.bearer(&text, false, &ShownBefore::default()).is_ok());
}

#[tokio::test]
async fn s30_a_request_of_http_is_judged_by_what_it_shows() {
    let site = Site::new(false).await;
    let (_, text) = site.make(Kind::Viewer).await;
    let from = IpAddr::from([10, 0, 0, 7]);
    let check = |head: Head, is_private| site.bearers.check(&head.headers, is_private, from);
    assert_eq!(check(head("/metrics", &[]), false), Ok(()));
    assert_eq!(check(showing(&text), true), Ok(()));
    assert_eq!(check(showing("trp_x"), true), Err(REFUSED));
    // Of a scraper, or of a proxy that knows who looks.
    assert_eq!(check(showing("eyJhbGciOiJub25lIn0.e30."), false), Ok(()));
    assert_eq!(check(showing(&text), false), Err(REFUSED));
    assert_eq!((site.refused("illegible"), site.refused(PLAIN)), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn s31_calls_under_way_end_within_a_second_of_their_tokens_revocation_and_others_go_on() {
    let site = Site::new(false).await;
    let keeping = tokio::spawn(site.bearers.clone().keep());
    let (token, text) = site.make(Kind::Agent).await;
    let (_, other) = site.make(Kind::Agent).await;
    let lapse = |text: &str| {
        let mut head = showing(text);
        site.admit(&mut head, &ConnectionCalls::default()).expect("it holds");
        head.extensions.remove::<Lapse>().expect("what it was admitted by")
    };
    let (relied, goes_on) = (lapse(&text), lapse(&other));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!relied.is_over() && !goes_on.is_over());
    site.revoke(token).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(relied.is_over() && !goes_on.is_over());
    assert_eq!(site.bearers.0.relied_on.lock().len(), 1, "what is over is forgotten");
    // Time goes on without a word of anybody.
    tokio::time::sleep(Duration::from_millis(HOUR_MS)).await;
    assert!(goes_on.is_over());
    drop((relied, goes_on));
    keeping.abort();
}

#[tokio::test(start_paused = true)]
async fn what_no_call_relies_on_any_more_is_forgotten() {
    let site = Site::new(false).await;
    let (_, text) = site.make(Kind::Agent).await;
    let calls = ConnectionCalls::default();
    site.admit(&mut showing(&text), &calls).expect("it holds");
    site.bearers.look();
    assert_eq!(site.bearers.0.relied_on.lock().len(), 1, "its connection is there");
    drop(calls);
    site.bearers.look();
    assert_eq!(site.bearers.0.relied_on.lock().len(), 0);
}

#[tokio::test]
async fn s35_whoever_bears_a_token_is_judged_as_who_has_a_certificate_and_makes_no_more_than_that_one() {
    let site = Site::new(false).await;
    let (_, driver) = site.make(Kind::Driver).await;
    let (_, viewer) = site.make(Kind::Viewer).await;
    let (_, operator) = site.make(Kind::Operator).await;
    let gate = Arc::new(Gate::new(Port::Client, Mode::Enforce, Arc::default()));
    let guard = CallGuard::new_labelled(&gate, &site.gateway, &site.bearers);
    let call = |token: &str, path: &str, job: Option<&'static str>| {
        let mut head = head(path, &[&format!("Bearer {token}")]);
        if let Some(job) = job {
            head.headers.insert(tripod_proto::metadata::JOB, HeaderValue::from_static(job));
        }
        let admitted = guard.admit(&mut head, &ConnectionCalls::default());
        admitted.map(|()| head).map_err(|status| status.code())
    };
    assert!(call(&driver, SUBMIT, Some("own")).is_ok());
    let denied = Some(tonic::Code::PermissionDenied);
    assert_eq!(call(&driver, SUBMIT, Some("other")).err(), denied);
    assert_eq!(call(&driver, CREATE, None).err(), denied);
    assert_eq!(call(&viewer, CREATE, None).err(), denied);
    let head = call(&operator, CREATE, None).expect("operators make tokens");
    let maker = head.extensions.get::<Arc<Maker>>().expect("who makes it");
    assert_eq!(**maker, Maker::Operator { name: "operator/alice".to_owned() });
}

/// What the call of this head proposes, if the head was let through by a gate of that mode.
async fn proposed(site: &Site, mode: Mode, calls: &ConnectionCalls, mut head: Head) -> Command {
    let gate = Arc::new(Gate::new(Port::Client, mode, Arc::default()));
    let guard = CallGuard::new_labelled(&gate, &site.gateway, &site.bearers);
    guard.admit(&mut head, calls).expect("it is for everybody");
    let propose = async { signed(close()) };
    match head.extensions.remove::<Speaker>() {
        Some(speaker) => speaker.scope(calls.connection(), propose).await,
        None => propose.await,
    }
}

fn close() -> Command {
    Command::Session(session::Command::Close { session: SessionId(7) })
}

#[tokio::test]
async fn what_a_call_proposes_says_who_bears_its_token_where_calls_are_refused_and_only_there() {
    let site = Site::new(false).await;
    let (_, agent) = site.make(Kind::Agent).await;
    let (_, operator) = site.make(Kind::Operator).await;
    let shown = |token: &str| head(HEALTH, &[&format!("Bearer {token}")]);
    // All by one connection: each call is its own bearer's, and what shows no token is nobody's.
    let calls = ConnectionCalls::default();
    let by_agent = close().by(Identity::Agent("own".into()));
    let by_operator = close().by(Identity::Operator("alice".into()));
    assert_eq!(proposed(&site, Mode::Enforce, &calls, shown(&agent)).await, by_agent);
    assert_eq!(proposed(&site, Mode::Enforce, &calls, shown(&operator)).await, by_operator);
    assert_eq!(proposed(&site, Mode::Enforce, &calls, shown(&agent)).await, by_agent);
    assert_eq!(proposed(&site, Mode::Enforce, &calls, head(HEALTH, &[])).await, close());
    for mode in [Mode::Off, Mode::Rehearse] {
        let calls = ConnectionCalls::default();
        assert_eq!(proposed(&site, mode, &calls, shown(&agent)).await, close(), "{mode:?}");
    }
}
