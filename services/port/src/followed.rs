//! The services of a port, each of whose calls ends as it must when the port stops.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::service::Routes;

use crate::bytes_held::{CallBytes, Short};
use crate::holding::{self, Content, Received};
use crate::manner::Manners;
use crate::refusal;
use crate::stop::Stopping;
use crate::under_way::{Answer, UnderWay};

/// What a refused call holds until its refusal is written.
pub const REFUSAL_BYTES: u64 = 2 << 10;

/// Routes whose answers are noted with their connection while they are written. The services find [`Stopping`]
/// and [`crate::CallerAddress`] among a request's extensions, and [`crate::CallerConnection::current`] says by which
/// connection it came.
///
/// Every call of every client passes here, so this is a plain service: a layer of the router would box the call, its
/// body and its answer several times each.
#[derive(Debug, Clone)]
pub struct Followed {
    routes: Routes,
    manners: Manners,
    stopping: Stopping,
}

impl Followed {
    /// `routes` of a port that knows from `stopping` when it stops, and from `manners` what its calls are.
    #[must_use]
    pub fn new(routes: Routes, manners: Manners, stopping: &Stopping) -> Self {
        Self { routes: routes.prepare(), manners, stopping: stopping.clone() }
    }
}

impl Service<Request<Body>> for Followed {
    type Response = Response<Answer<Content<Body>>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<Request<Body>>::poll_ready(&mut self.routes, context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let known = self.manners.find(request.uri().path());
        let under_way = UnderWay::of(&request, known.ending, known.kind);
        let stopping = self.stopping.clone();
        request.extensions_mut().insert(self.stopping.clone());
        let connection = under_way.connection();
        request.extensions_mut().insert(connection.address());
        let call = match holding::enter(under_way.account(), &request, known.is_beat) {
            Ok(call) => call,
            Err(short) => return Box::pin(refused(under_way, stopping, short, known.poll_over)),
        };
        request.extensions_mut().insert(call.clone());
        // Nothing runs before the first poll, which comes when the call is counted.
        let answer = self.routes.call(Received::of(request, &call, known));
        Box::pin(async move {
            let ended = |cut| Content::of(refusal::of_cut(cut).into_http(), call.clone());
            let answer = async {
                match answer.await {
                    Ok(answer) => Content::of(answer, call.clone()),
                    Err(never) => match never {},
                }
            };
            Ok(connection.scope(under_way.answered(&stopping, answer, ended)).await)
        })
    }
}

/// What a call is told for which there is no room. Its answer is small and held nowhere else.
async fn refused(
    under_way: UnderWay,
    stopping: Stopping,
    short: Short,
    poll_over: &str,
) -> Result<Response<Answer<Content<Body>>>, Infallible> {
    let call = CallBytes::of(under_way.account().refused_call(REFUSAL_BYTES));
    let status =
        if under_way.is_poll() { refusal::of_short_poll(short, poll_over) } else { refusal::of_short(short) };
    let answer = Content::of(status.into_http(), call.clone());
    let never_cut = |_| Content::of(Response::new(Body::empty()), call.clone());
    Ok(under_way.answered(&stopping, std::future::ready(answer), never_cut).await)
}
