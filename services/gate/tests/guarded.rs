//! The layer in front of a bare service: what goes through, what it finds, what is refused, and what is counted.

mod support;

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures::FutureExt as _;
use http::{Request, Response};
use support::{job, proved};
use tower::{Layer as _, Service};
use tripod_gate::{
    Admitted, Caller, Check, Checks, Gate, GateLayer, Grant, Guarded, Jobs, Mode, Port, Reason, Rpc, Tally,
};

/// Answers with what was left to be checked.
#[derive(Clone)]
struct Bare;

impl Service<Request<()>> for Bare {
    type Response = Response<Option<Checks>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        let checks = Admitted::of(request.extensions()).map_or(Checks::NONE, Admitted::checks);
        ready(Ok(Response::new(Some(checks))))
    }
}

struct Case {
    gate: Arc<Gate>,
    tally: Arc<Tally>,
    guarded: Guarded<Bare>,
}

impl Case {
    fn new(mode: Mode, own: Option<&str>, unknown: Caller) -> Self {
        let tally = Arc::new(Tally::default());
        let gate = Arc::new(Gate::new(Port::Client, mode, Arc::clone(&tally)));
        let guarded = GateLayer::new(Arc::clone(&gate), own.map(job), unknown).layer(Bare);
        Self { gate, tally, guarded }
    }

    /// What was left to be checked, or code and text of the refusal.
    fn call(
        &mut self,
        caller: Option<Caller>,
        path: &str,
        about: Option<&str>,
    ) -> Result<Checks, (String, String)> {
        let mut request = Request::builder().uri(path);
        if let Some(about) = about {
            request = request.header(tripod_proto::metadata::JOB, about);
        }
        let mut request = request.body(()).expect("a request");
        if let Some(caller) = caller {
            request.extensions_mut().insert(Arc::new(caller));
        }
        assert!(self.guarded.poll_ready(&mut Context::from_waker(Waker::noop())).is_ready());
        let answer = self
            .guarded
            .call(request)
            .now_or_never()
            .expect("nothing is waited for")
            .expect("it does not fail");
        let header = |name: &str| answer.headers()[name].to_str().expect("ascii").to_owned();
        match answer.body() {
            Some(checks) => Ok(*checks),
            None => {
                assert_eq!(
                    (answer.status().as_u16(), header("content-type")),
                    (200, "application/grpc".to_owned())
                );
                Err((header("grpc-status"), header("grpc-message")))
            }
        }
    }
}

const GET: &str = "/xla.coordination.CoordinationService/GetKeyValue";
const DELETE: &str = "/tripod.v1.Jobs/Delete";

fn refused(reason: Reason) -> Result<Checks, (String, String)> {
    Err((reason.code().to_string(), reason.to_string()))
}

fn task() -> Option<Caller> {
    Some(proved("job/own/task", Grant::Nothing))
}

#[test]
fn a_gate_that_is_off_asks_nothing_and_counts_nothing() {
    let mut case = Case::new(Mode::Off, None, Caller::Anonymous);
    for path in [GET, DELETE, "/no.Such/Thing"] {
        assert_eq!(case.call(None, path, Some("other")), Ok(Checks::NONE));
        assert_eq!(case.call(task(), path, None), Ok(Checks::NONE));
    }
    assert_eq!((case.tally.allowed(), case.tally.would_refuse(), case.tally.refused()), (0, 0, 0));
}

#[test]
fn a_rehearsal_lets_everything_through_and_counts_what_would_be_refused() {
    let mut case = Case::new(Mode::Rehearse, None, Caller::Anonymous);
    assert_eq!(case.call(task(), GET, Some("own")), Ok(Checks::NONE));
    assert_eq!(case.call(task(), GET, None), Ok(Checks::NONE.and(Check::OwnJob)));
    for _ in 0..2 {
        assert_eq!(case.call(task(), DELETE, Some("own")), Ok(Checks::NONE));
    }
    assert_eq!(case.call(None, "/no.Such/Thing", None), Ok(Checks::NONE));
    assert_eq!((case.tally.allowed(), case.tally.in_apply(), case.tally.would_refuse()), (1, 1, 3));
    assert_eq!(case.tally.refused(), 0);
    let told: Vec<_> =
        case.tally.refusals().into_iter().map(|of| (of.caller, of.rpc, of.reason, of.count)).collect();
    let expected = [
        ("anonymous".to_owned(), None, Reason::UnknownRpc, 1),
        ("job/own/task".to_owned(), Some(Rpc::Jobs(Jobs::Delete)), Reason::Role, 2),
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_gate_that_enforces_refuses_before_the_service_hears_of_the_call() {
    let mut case = Case::new(Mode::Enforce, None, Caller::Anonymous);
    assert_eq!(case.call(task(), GET, Some("own")), Ok(Checks::NONE));
    assert_eq!(case.call(task(), GET, Some("other")), refused(Reason::OtherJob));
    assert_eq!(case.call(task(), GET, Some("No Name")), refused(Reason::OtherJob));
    assert_eq!(case.call(task(), DELETE, Some("own")), refused(Reason::Role));
    assert_eq!(case.call(None, GET, None), refused(Reason::NoIdentity));
    assert_eq!(case.call(Some(proved("operator/x", Grant::Nothing)), GET, None), refused(Reason::NoGrant));
    assert_eq!(case.call(task(), "/tripod.v1.Kv/Steal", None), refused(Reason::UnknownRpc));
    assert_eq!(case.call(task(), "/tripod.peer.v1.Raft/Vote", None), refused(Reason::OtherPort));
    assert_eq!(case.call(None, "/grpc.health.v1.Health/Check", None), Ok(Checks::NONE));
    assert_eq!((case.tally.refused(), case.tally.would_refuse()), (7, 0));
}

#[test]
fn what_is_left_to_be_checked_goes_on_with_the_call() {
    let mut case = Case::new(Mode::Enforce, None, Caller::Anonymous);
    let own_job = Checks::NONE.and(Check::OwnJob);
    assert_eq!(case.call(task(), GET, None), Ok(own_job));
    let heartbeat = "/xla.coordination.CoordinationService/Heartbeat";
    assert_eq!(case.call(task(), heartbeat, Some("own")), Ok(Checks::NONE.and(Check::OwnTask)));
    assert_eq!(case.call(task(), heartbeat, None), Ok(own_job.and(Check::OwnTask)));
}

#[test]
fn the_port_of_a_job_says_the_job_that_the_call_does_not() {
    let mut case = Case::new(Mode::Enforce, Some("own"), Caller::Listener(job("own")));
    assert_eq!(case.call(None, GET, None), Ok(Checks::NONE));
    assert_eq!(case.call(task(), GET, None), Ok(Checks::NONE));
    // A port of the job, and the metadata of another one.
    assert_eq!(case.call(None, GET, Some("other")), refused(Reason::OtherJob));
    let stranger = Some(proved("job/other/task", Grant::Nothing));
    assert_eq!(case.call(stranger.clone(), GET, None), refused(Reason::OtherJob));
    assert_eq!(case.call(stranger, GET, Some("other")), Ok(Checks::NONE));
    assert_eq!(case.call(None, DELETE, None), refused(Reason::Role));
}

#[test]
fn whoever_need_not_say_who_it_is_may_what_it_always_could() {
    let mut case = Case::new(Mode::Enforce, None, Caller::Legacy);
    for path in [GET, DELETE, "/tripod.v1.Cluster/DrainNode", "/no.Such/Thing"] {
        assert_eq!(case.call(None, path, Some("other")), Ok(Checks::NONE), "{path}");
    }
    // Who has proved to be somebody is that one.
    assert_eq!(case.call(task(), DELETE, Some("own")), refused(Reason::Role));
}

#[test]
fn a_job_that_the_message_names_is_checked_whatever_the_head_says() {
    let own_job = Checks::NONE.and(Check::OwnJob);
    let mut case = Case::new(Mode::Enforce, Some("own"), Caller::Anonymous);
    for path in ["/tripod.v1.Kv/Put", "/tripod.v1.Jobs/Get"] {
        assert_eq!(case.call(task(), path, None), Ok(own_job), "{path}");
        assert_eq!(case.call(task(), path, Some("own")), Ok(own_job), "{path}");
        assert_eq!(case.call(task(), path, Some("other")), refused(Reason::OtherJob), "{path}");
    }
    let own_session = Checks::NONE.and(Check::OwnSession);
    assert_eq!(case.call(task(), "/tripod.v1.Sessions/Open", None), Ok(own_session), "it is about no job");
}

#[test]
fn another_mode_is_in_force_with_the_next_call() {
    let mut case = Case::new(Mode::Off, None, Caller::Anonymous);
    assert_eq!(case.call(None, GET, None), Ok(Checks::NONE));
    case.gate.set_mode(Mode::Enforce);
    assert_eq!(case.call(None, GET, None), refused(Reason::NoIdentity));
    case.gate.set_mode(Mode::Rehearse);
    assert_eq!(case.call(None, GET, None), Ok(Checks::NONE));
    assert_eq!((case.tally.refused(), case.tally.would_refuse()), (1, 1));
}
