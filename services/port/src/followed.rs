//! The services of a port, each of whose calls ends as it must when the port stops.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::{Request, Response};
use hyper::body::Incoming;
use pin_project_lite::pin_project;
use tokio::time::Sleep;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::service::Routes;

use crate::bodies::{AnswerBody, RequestBody};
use crate::bytes_held::{CallBytes, Short};
use crate::call_context::CallContext;
use crate::call_tally::{CallTally, CountedCall};
use crate::caller_connection::CallerConnection;
use crate::calls::{self, Gather, StreamTally};
use crate::connection::ConnectionCalls;
use crate::direct::{Direct, DirectAnswer, DirectServices};
use crate::guard::Guarding;
use crate::holding::{self, Content, Received};
use crate::lapse::Lapse;
use crate::manner::{Ending, Known, Manners, MethodKind};
use crate::speaker::Speaker;
use crate::stop::Stopping;
use crate::under_way::{Answer, Answering, Cut, UnderWay};
use crate::{deadline, label, overlong, refusal};

/// What a refused call holds until its refusal is written.
pub const REFUSAL_BYTES: u64 = 2 << 10;
/// What tonic says of a call whose time is over.
const TIMEOUT_TEXT: &str = "Timeout expired";

/// Services whose answers are noted with their connection while they are written. They find what is known of a call by
/// [`CallContext`], and [`CallerConnection::current`] says by which connection it came, [`Speaker::present`] who makes it.
///
/// Every call of every client passes here, so this is a plain service whose futures have names: a layer of the router, or
/// of a transport, would box the call, its body and its answer several times each.
#[derive(Debug, Clone)]
pub struct Followed {
    shared: Arc<Shared>,
    gather: Gather,
    tally: StreamTally,
    counts: CallTally,
    guarding: Guarding,
}

#[derive(Debug)]
struct Shared {
    direct: DirectServices,
    routes: Routes,
    manners: Manners,
    stopping: Stopping,
}

/// Those for the calls of one connection.
#[derive(Debug, Clone)]
pub(crate) struct FollowedConnection {
    services: Followed,
    calls: ConnectionCalls,
}

impl Followed {
    /// `routes` of a port that knows from `stopping` when it stops, and from `manners` what its calls are. Services among
    /// `direct` are called without asking the routes.
    #[must_use]
    pub fn new(routes: Routes, direct: Vec<Direct>, manners: Manners, stopping: &Stopping) -> Self {
        let (direct, stopping) = (DirectServices::of(direct), stopping.clone());
        let shared = Shared { direct, routes: routes.prepare(), manners, stopping };
        Self {
            shared: Arc::new(shared),
            gather: Gather::default(),
            tally: StreamTally::default(),
            counts: CallTally::default(),
            guarding: Guarding::default(),
        }
    }

    /// The same with this around the ops of each frame of a stream of calls, which all begin within it, and around those that
    /// go on together.
    #[must_use]
    pub fn gathering(self, gather: Gather) -> Self {
        Self { gather, ..self }
    }

    /// The same with its streams of calls counted there.
    #[must_use]
    pub fn tallying(self, tally: StreamTally) -> Self {
        Self { tally, ..self }
    }

    /// The same with its calls counted there.
    #[must_use]
    pub fn counting(self, counts: CallTally) -> Self {
        Self { counts, ..self }
    }

    /// The same with a guard that is asked about every call, and about every op of a stream of calls.
    #[must_use]
    pub fn guarding(self, guarding: Guarding) -> Self {
        Self { guarding, ..self }
    }

    pub(crate) fn tally(&self) -> &StreamTally {
        &self.tally
    }

    pub(crate) fn gather(&self) -> &Gather {
        &self.gather
    }

    pub(crate) fn stopping(&self) -> &Stopping {
        &self.shared.stopping
    }

    /// What is known of the calls of a path, and the service that they are made of past the router.
    pub(crate) fn find(&self, path: &str) -> (Known, Option<&Direct>) {
        let known = Known { number: self.counts.number(path), ..self.shared.manners.find(path) };
        (known, self.shared.direct.find(path))
    }

    /// For the calls of one connection.
    pub(crate) fn on(&self, calls: ConnectionCalls) -> FollowedConnection {
        FollowedConnection { services: self.clone(), calls }
    }

    fn follow(&self, request: Request<RequestBody>, calls: ConnectionCalls) -> Going {
        let path = request.uri().path();
        if path == calls::PATH {
            return self.open(request, calls);
        }
        let (known, direct) = self.find(path);
        let under_way = UnderWay::on(calls, request.headers(), known.ending, known.kind);
        self.begin(request, known, direct, under_way)
    }

    /// Begins an op of a stream of calls: a call of a path of which this is known.
    pub(crate) fn begin_op(
        &self,
        request: Request<RequestBody>,
        known: Known,
        direct: Option<&Direct>,
        calls: ConnectionCalls,
    ) -> Going {
        let under_way = UnderWay::of_op(calls, request.headers(), known.ending);
        self.begin(request, known, direct, under_way)
    }

    fn begin(
        &self,
        request: Request<RequestBody>,
        known: Known,
        direct: Option<&Direct>,
        under_way: UnderWay,
    ) -> Going {
        let Shared { routes, stopping, .. } = &*self.shared;
        let counted = self.counts.begin(known.number);
        let mut request = match self.guarding.admit(request, under_way.calls()) {
            Ok(request) => request,
            Err(status) => return told(under_way, stopping, status, counted),
        };
        // An op ends with its stream, which was admitted by the same.
        let lapse = request.extensions_mut().remove::<Lapse>().filter(|_| !under_way.is_op());
        let speaker = request.extensions_mut().remove::<Speaker>();
        let connection = under_way.connection();
        let given = deadline::given(request.headers());
        let entered = match under_way.is_op() {
            true => holding::enter_op(under_way.account(), &request, known.is_beat),
            false => holding::enter(under_way.account(), &request, known.is_beat),
        };
        let bytes = match entered {
            Ok(bytes) => bytes,
            Err(short) => return refused(under_way, stopping, short, known.poll_over, counted),
        };
        let context = under_way.context(stopping, &bytes);
        let mut request = Received::of(request, &bytes, known);
        // Nothing runs before the first poll, which comes when the call is counted.
        let is_dialect = direct.is_some_and(Direct::is_dialect);
        let answer = match direct {
            Some(service) => {
                if is_dialect {
                    label::read(&mut request);
                }
                service.call(request, context)
            }
            None => {
                context.put(request.extensions_mut());
                DirectAnswer::Routed(Box::new(routes.clone().call(request)))
            }
        };
        let own_patience =
            given.filter(|_| is_dialect).map(|given| Box::pin(tokio::time::sleep(deadline::ours(given))));
        let answer = Around { answer, is_dialect, own_patience };
        let patience = given.filter(|_| !is_dialect).map(|given| Box::pin(tokio::time::sleep(given)));
        let answering = under_way.answered(stopping, answer, bytes, cut).until(lapse);
        Going { connection, speaker, answering, patience, counted }
    }

    /// Opens a stream of calls.
    fn open(&self, request: Request<RequestBody>, calls: ConnectionCalls) -> Going {
        let counted = self.counts.begin(self.counts.number(calls::PATH));
        let stopping = &self.shared.stopping;
        let under_way = UnderWay::on(calls.clone(), request.headers(), Ending::Own, MethodKind::Streaming);
        let mut request = match self.guarding.admit(request, under_way.calls()) {
            Ok(request) => request,
            Err(status) => return told(under_way, stopping, status, counted),
        };
        let lapse = request.extensions_mut().remove::<Lapse>();
        // Each of its ops says it again.
        let speaker = request.extensions_mut().remove::<Speaker>();
        let bytes = match holding::enter(under_way.account(), &request, false) {
            Ok(bytes) => bytes,
            Err(short) => return refused(under_way, stopping, short, "", counted),
        };
        let connection = under_way.connection();
        let opened = calls::open(self, request, calls, &bytes);
        let answer = Around::at_once(opened);
        let answering = under_way.answered(stopping, answer, bytes, cut).until(lapse);
        Going { connection, speaker, answering, patience: None, counted }
    }
}

impl Service<Request<Body>> for Followed {
    type Response = Response<Answer<Content<AnswerBody>>>;
    type Error = Infallible;
    type Future = Following;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let calls = CallContext::connection_calls(request.extensions()).cloned().unwrap_or_default();
        Following { begin: None, going: Some(self.follow(request.map(RequestBody::Other), calls)) }
    }
}

impl hyper::service::Service<Request<Incoming>> for FollowedConnection {
    type Response = Response<Answer<Content<AnswerBody>>>;
    type Error = Infallible;
    type Future = Following;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let request = request.map(RequestBody::Incoming);
        let begin = Begin { services: self.services.clone(), request, calls: self.calls.clone() };
        Following { begin: Some(begin), going: None }
    }
}

/// A time that is waited for. In a box, as calls that wait for hours have none, and one that has one has no other.
type Patience = Pin<Box<Sleep>>;

/// A call whose head has come.
#[derive(Debug)]
struct Begin {
    services: Followed,
    request: Request<RequestBody>,
    calls: ConnectionCalls,
}

pin_project! {
    /// The answer to a call, to be waited for.
    pub struct Following {
        // Until this is polled by the call's own task. If each were counted as soon as its head comes, many that come
        // together would fill their connection before the message of one was read, and those messages would wait.
        begin: Option<Begin>,
        #[pin]
        going: Option<Going>,
    }
}

pin_project! {
    /// One that is counted.
    pub(crate) struct Going {
        connection: CallerConnection,
        // Who makes it, if a guard has said that.
        speaker: Option<Speaker>,
        #[pin]
        answering: Answering<Around>,
        // How long its caller waits, if nothing else looks after that.
        patience: Option<Patience>,
        counted: CountedCall,
    }
}

impl Going {
    /// What it holds.
    pub(crate) fn bytes(&self) -> &CallBytes {
        self.answering.bytes()
    }
}

impl Future for Following {
    type Output = Result<Response<Answer<Content<AnswerBody>>>, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Some(Begin { services, request, calls }) = this.begin.take() {
            this.going.set(Some(services.follow(request, calls)));
        }
        this.going.as_pin_mut().map_or(Poll::Pending, |going| going.poll(context))
    }
}

impl Future for Going {
    type Output = Result<Response<Answer<Content<AnswerBody>>>, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let answering = &mut this.answering;
        let speaker = this.speaker.clone();
        if let Poll::Ready(answer) = this.connection.enter(speaker, || answering.as_mut().poll(context)) {
            this.counted.answered(answer.headers());
            return Poll::Ready(Ok(answer));
        }
        let Some(patience) = this.patience else { return Poll::Pending };
        ready!(patience.as_mut().poll(context));
        // As tonic does.
        Poll::Ready(Ok(this.answering.end_with(Status::cancelled(TIMEOUT_TEXT).into_http())))
    }
}

pin_project! {
    /// A service's answer, and what is done around it for the clients of others.
    struct Around {
        answer: DirectAnswer,
        is_dialect: bool,
        // Then it is ended with the code of such clients.
        own_patience: Option<Patience>,
    }
}

impl Around {
    /// An answer of the port itself.
    fn at_once(answer: Response<AnswerBody>) -> Self {
        let answer = DirectAnswer::Own(Box::pin(std::future::ready(answer)));
        Self { answer, is_dialect: false, own_patience: None }
    }
}

impl Future for Around {
    type Output = Response<AnswerBody>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(answer) = Pin::new(this.answer).poll(context) {
            return Poll::Ready(if *this.is_dialect { overlong::mend(answer) } else { answer });
        }
        let Some(patience) = this.own_patience else { return Poll::Pending };
        ready!(patience.as_mut().poll(context));
        Poll::Ready(deadline::exceeded())
    }
}

/// What a call is told for which there is no room.
fn refused(
    under_way: UnderWay,
    stopping: &Stopping,
    short: Short,
    poll_over: &str,
    counted: CountedCall,
) -> Going {
    let status =
        if under_way.is_poll() { refusal::of_short_poll(short, poll_over) } else { refusal::of_short(short) };
    told(under_way, stopping, status, counted)
}

/// What a call is told that no service hears of. Its answer is small and held nowhere else.
fn told(under_way: UnderWay, stopping: &Stopping, status: Status, counted: CountedCall) -> Going {
    let connection = under_way.connection();
    let account = under_way.account();
    let bytes = match under_way.is_op() {
        // There are no more of them than their stream was granted.
        true => CallBytes::of_op(account.answer_anyway(REFUSAL_BYTES)),
        false => CallBytes::of(account.refused_call(REFUSAL_BYTES)),
    };
    let answer = Around::at_once(status.into_http());
    let answering = under_way.answered(stopping, answer, bytes, cut);
    Going { connection, speaker: None, answering, patience: None, counted }
}

/// What a call is told that a stop ends.
fn cut(why: Cut) -> Response<AnswerBody> {
    refusal::of_cut(why).into_http()
}

#[cfg(test)]
#[path = "followed_test.rs"]
mod tests;
