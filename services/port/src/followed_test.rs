//! What is done around every call, seen at services that answer at once or never.

use tonic::Code;

use super::*;
use crate::bytes_held::Account;
use crate::caller_address::CallerAddress;
use crate::direct::{DirectRequest, DirectService};

/// Answers with who calls, or never.
struct Told {
    name: &'static str,
    answers: bool,
}

impl DirectService for Told {
    fn name(&self) -> &'static str {
        self.name
    }

    fn call(&self, request: DirectRequest, context: CallContext) -> DirectAnswer {
        assert!(request.extensions().is_empty(), "that is up to the service");
        let answers = self.answers;
        DirectAnswer::Own(Box::pin(async move {
            if !answers {
                std::future::pending::<()>().await;
            }
            drop(context);
            Status::aborted(format!("{:?}", CallerConnection::current())).into_http()
        }))
    }
}

fn services() -> Followed {
    let direct = vec![
        Direct::of(Told { name: "a.Plain", answers: false }),
        Direct::of(Told { name: "a.Dialect", answers: false }).of_dialect(),
        Direct::of(Told { name: "a.Ready", answers: true }),
    ];
    Followed::new(Routes::default(), direct, Manners::default(), &Stopping::never())
}

async fn call(path: &str, timeout: Option<&str>, calls: ConnectionCalls) -> Status {
    call_of(&services(), path, timeout, calls).await
}

async fn call_of(services: &Followed, path: &str, timeout: Option<&str>, calls: ConnectionCalls) -> Status {
    let mut request = Request::builder().uri(path);
    if let Some(timeout) = timeout {
        request = request.header("grpc-timeout", timeout);
    }
    let request = request.body(RequestBody::Other(Body::empty())).expect("a request");
    let answer = services.follow(request, calls).await.expect("there is no error");
    Status::from_header_map(answer.headers()).expect("an answer without a message")
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_time_is_over_ends_with_the_code_of_its_clients() {
    let begun = tokio::time::Instant::now();
    for (path, code, text, ms) in [
        ("/a.Plain/Wait", Code::Cancelled, "Timeout expired", 50..=51),
        ("/a.Dialect/Wait", Code::DeadlineExceeded, "Deadline Exceeded", 48..=49),
    ] {
        let before = begun.elapsed();
        let status = call(path, Some("50m"), ConnectionCalls::default()).await;
        assert_eq!((status.code(), status.message()), (code, text), "{path}");
        assert!(ms.contains(&(begun.elapsed() - before).as_millis()), "{path}");
    }
}

#[tokio::test]
async fn a_service_runs_in_the_name_of_the_connection_of_its_call() {
    let calls = ConnectionCalls::from(CallerAddress::at([10, 0, 0, 7].into()), Account::default());
    let expected = format!("{:?}", Some(calls.connection()));
    let status = call("/a.Ready/Ask", Some("1S"), calls).await;
    assert_eq!(status.message(), expected);
    assert_eq!(CallerConnection::current(), None, "and only the service does");
}

#[tokio::test]
async fn what_no_direct_service_has_is_asked_of_the_routes() {
    for path in ["/a.Other/Ask", "/a.Ready/", "/a.Ready"] {
        let status = call(path, None, ConnectionCalls::default()).await;
        assert_eq!((status.code(), status.message()), (Code::Unimplemented, ""), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_call_is_counted_once_whether_it_comes_by_itself_or_as_an_op() {
    let tally = CallTally::new();
    let direct = vec![
        Direct::of(Told { name: "tripod.v1.Kv", answers: true }),
        Direct::of(Told { name: "tripod.v1.Jobs", answers: false }),
    ];
    let services = Followed::new(Routes::default(), direct, Manners::default(), &Stopping::never());
    let services = services.counting(tally.clone());
    let request = |path: &str| {
        let request = Request::builder().uri(path).header("grpc-timeout", "50m");
        request.body(RequestBody::Other(Body::empty())).expect("a request")
    };
    let _answer = services.follow(request("/tripod.v1.Kv/Put"), ConnectionCalls::default()).await;
    let (known, direct) = services.find("/tripod.v1.Kv/Put");
    let _answer =
        services.begin_op(request("/tripod.v1.Kv/Put"), known, direct, ConnectionCalls::default()).await;
    // Its time is over before it is answered.
    let _answer = services.follow(request("/tripod.v1.Jobs/List"), ConnectionCalls::default()).await;
    // Its client goes.
    drop(services.follow(request("/tripod.v1.Jobs/List"), ConnectionCalls::default()));
    drop(services.follow(request("/tripod.v1.Jobs/NoSuch"), ConnectionCalls::default()));
    let counts: Vec<_> = tally
        .counts()
        .into_iter()
        .map(|count| (count.rpc.map(tripod_gate::Rpc::call), count.outcomes, count.took.count()))
        .collect();
    assert_eq!(
        counts,
        [
            (None, [0, 0, 0, 1], 0),
            (Some("Jobs/List".to_owned()), [0, 0, 0, 2], 0),
            (Some("Kv/Put".to_owned()), [0, 2, 0, 0], 2),
        ]
    );
}

/// Lets through what is called `Ask`, and remembers what it was asked.
#[derive(Default, Clone)]
struct Strict(Arc<parking_lot::Mutex<Vec<String>>>);

impl crate::guard::Guard for Strict {
    fn admit(&self, head: &mut http::request::Parts, connection: &ConnectionCalls) -> Result<(), Status> {
        let path = head.uri.path();
        let timeout = head.headers.get("grpc-timeout").map_or("", |timeout| timeout.to_str().expect("ascii"));
        self.0.lock().push(format!("{path} {timeout} {:?}", connection.connection().address()));
        if path.ends_with("/Ask") { Ok(()) } else { Err(Status::permission_denied("not you")) }
    }
}

#[tokio::test]
async fn a_guard_is_asked_once_about_every_call_and_no_service_hears_of_one_that_it_refuses() {
    let strict = Strict::default();
    let services = services().guarding(Guarding::by(strict.clone()));
    let calls = ConnectionCalls::from(CallerAddress::at([10, 0, 0, 7].into()), Account::default());
    for (path, code) in [
        ("/a.Ready/Ask", Code::Aborted),
        // It would never be answered.
        ("/a.Plain/Wait", Code::PermissionDenied),
        ("/a.Other/Take", Code::PermissionDenied),
        ("/a.Other/Ask", Code::Unimplemented),
        (calls::PATH, Code::PermissionDenied),
    ] {
        let status = call_of(&services, path, Some("1S"), calls.clone()).await;
        assert_eq!(status.code(), code, "{path}");
        let asked = std::mem::take(&mut *strict.0.lock());
        let expected = format!("{path} 1S {:?}", calls.connection().address());
        assert_eq!(asked, [expected]);
    }
    // As the connection does when all answers are on their way.
    assert!(calls.account().written(true));
    assert_eq!(calls.account().held(), 0, "a refusal is not held for longer than it takes");
}

/// Says of a call who makes it, if its path does.
struct Naming;

impl crate::guard::Guard for Naming {
    fn admit(&self, head: &mut http::request::Parts, _: &ConnectionCalls) -> Result<(), Status> {
        let who = head.uri.path().split_once("/By").map(|(_, who)| who.to_owned());
        if let Some(who) = who {
            head.extensions.insert(Speaker::of(who));
        }
        Ok(())
    }
}

/// Answers with who makes the call.
struct Who;

impl DirectService for Who {
    fn name(&self) -> &'static str {
        "a.Who"
    }

    fn call(&self, request: DirectRequest, context: CallContext) -> DirectAnswer {
        assert!(request.extensions().is_empty(), "it is not for services");
        DirectAnswer::Own(Box::pin(async move {
            drop(context);
            // Others go on meanwhile.
            tokio::task::yield_now().await;
            let who = Speaker::present::<String>();
            Status::aborted(who.map_or_else(|| "nobody".to_owned(), |who| (*who).clone())).into_http()
        }))
    }
}

#[tokio::test]
async fn a_call_is_made_by_whom_its_guard_says_whoever_makes_others_of_its_connection() {
    let direct = vec![Direct::of(Who)];
    let services = Followed::new(Routes::default(), direct, Manners::default(), &Stopping::never());
    let services = services.guarding(Guarding::by(Naming));
    let calls = ConnectionCalls::default();
    let call = |path: &'static str| call_of(&services, path, None, calls.clone());
    let (ann, bob, nobody) = tokio::join!(call("/a.Who/ByAnn"), call("/a.Who/ByBob"), call("/a.Who/Ask"));
    assert_eq!((ann.message(), bob.message(), nobody.message()), ("Ann", "Bob", "nobody"));
    let (known, direct) = services.find("/a.Who/ByAnn");
    let request = Request::builder().uri("/a.Who/ByAnn").body(RequestBody::Other(Body::empty()));
    let op = services.begin_op(request.expect("a request"), known, direct, calls.clone()).await;
    let told = Status::from_header_map(op.expect("there is no error").headers()).expect("its status");
    assert_eq!(told.message(), "Ann");
    assert!(Speaker::present::<String>().is_none(), "and only the service knows it");
}
