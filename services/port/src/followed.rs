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
use crate::caller_connection::CallerConnection;
use crate::connection::ConnectionCalls;
use crate::direct::{Direct, DirectAnswer, DirectServices};
use crate::holding::{self, Content, Received};
use crate::manner::Manners;
use crate::stop::Stopping;
use crate::under_way::{Answer, Answering, Cut, UnderWay};
use crate::{deadline, label, overlong, refusal};

/// What a refused call holds until its refusal is written.
pub const REFUSAL_BYTES: u64 = 2 << 10;
/// What tonic says of a call whose time is over.
const TIMEOUT_TEXT: &str = "Timeout expired";

/// Services whose answers are noted with their connection while they are written. They find what is known of a call by
/// [`CallContext`], and [`CallerConnection::current`] says by which connection it came.
///
/// Every call of every client passes here, so this is a plain service whose futures have names: a layer of the router, or
/// of a transport, would box the call, its body and its answer several times each.
#[derive(Debug, Clone)]
pub struct Followed {
    shared: Arc<Shared>,
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
        Self { shared: Arc::new(Shared { direct, routes: routes.prepare(), manners, stopping }) }
    }

    /// For the calls of one connection.
    pub(crate) fn on(&self, calls: ConnectionCalls) -> FollowedConnection {
        FollowedConnection { services: self.clone(), calls }
    }

    fn follow(&self, request: Request<RequestBody>, calls: ConnectionCalls) -> Going {
        let Shared { direct, routes, manners, stopping } = &*self.shared;
        let path = request.uri().path();
        let known = manners.find(path);
        let direct = direct.find(path);
        let under_way = UnderWay::on(calls, request.headers(), known.ending, known.kind);
        let connection = under_way.connection();
        let given = deadline::given(request.headers());
        let bytes = match holding::enter(under_way.account(), &request, known.is_beat) {
            Ok(bytes) => bytes,
            Err(short) => return refused(under_way, stopping, short, known.poll_over),
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
            given.filter(|_| is_dialect).map(|given| tokio::time::sleep(deadline::ours(given)));
        let answer = Around { answer, is_dialect, own_patience };
        let patience = given.filter(|_| !is_dialect).map(tokio::time::sleep);
        Going { connection, answering: under_way.answered(stopping, answer, bytes, cut), patience }
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
    struct Going {
        connection: CallerConnection,
        #[pin]
        answering: Answering<Around>,
        // How long its caller waits, if nothing else looks after that.
        #[pin]
        patience: Option<Sleep>,
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
        if let Poll::Ready(answer) = this.connection.enter(|| answering.as_mut().poll(context)) {
            return Poll::Ready(Ok(answer));
        }
        let Some(patience) = this.patience.as_pin_mut() else { return Poll::Pending };
        ready!(patience.poll(context));
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
        #[pin]
        own_patience: Option<Sleep>,
    }
}

impl Future for Around {
    type Output = Response<AnswerBody>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(answer) = Pin::new(this.answer).poll(context) {
            return Poll::Ready(if *this.is_dialect { overlong::mend(answer) } else { answer });
        }
        let Some(patience) = this.own_patience.as_pin_mut() else { return Poll::Pending };
        ready!(patience.poll(context));
        Poll::Ready(deadline::exceeded())
    }
}

/// What a call is told for which there is no room. Its answer is small and held nowhere else.
fn refused(under_way: UnderWay, stopping: &Stopping, short: Short, poll_over: &str) -> Going {
    let connection = under_way.connection();
    let bytes = CallBytes::of(under_way.account().refused_call(REFUSAL_BYTES));
    let status =
        if under_way.is_poll() { refusal::of_short_poll(short, poll_over) } else { refusal::of_short(short) };
    let answer = DirectAnswer::Own(Box::pin(std::future::ready(status.into_http())));
    let answer = Around { answer, is_dialect: false, own_patience: None };
    Going { connection, answering: under_way.answered(stopping, answer, bytes, cut), patience: None }
}

/// What a call is told that a stop ends.
fn cut(why: Cut) -> Response<AnswerBody> {
    refusal::of_cut(why).into_http()
}

#[cfg(test)]
#[path = "followed_test.rs"]
mod tests;
