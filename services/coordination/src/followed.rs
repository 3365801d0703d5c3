//! The services of a port, each of whose calls ends as it must when the port stops.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::service::Routes;
use tripod_gateway::Outage;

use crate::status;
use crate::stop::Stopping;
use crate::under_way::{Answer, Cut, UnderWay};

/// Routes whose answers are noted with their connection while they are written. The services find [`Stopping`]
/// and [`tripod_gateway::CallerAddress`] among a request's extensions, and
/// the gateway knows by which [`tripod_gateway::CallerConnection`] it came.
///
/// Every call of every client passes here, so this is a plain service: a layer of the router would box the call, its
/// body and its answer several times each.
#[derive(Debug, Clone)]
pub struct Followed {
    routes: Routes,
    stopping: Stopping,
}

impl Followed {
    /// `routes` of a port that knows from `stopping` when it stops.
    #[must_use]
    pub fn new(routes: Routes, stopping: &Stopping) -> Self {
        Self { routes: routes.prepare(), stopping: stopping.clone() }
    }
}

impl Service<Request<Body>> for Followed {
    type Response = Response<Answer<Body>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<Request<Body>>::poll_ready(&mut self.routes, context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let under_way = UnderWay::of(&request);
        let stopping = self.stopping.clone();
        request.extensions_mut().insert(self.stopping.clone());
        let connection = under_way.connection();
        request.extensions_mut().insert(connection.address());
        // Nothing runs before the first poll, which comes when the call is counted.
        let answer = self.routes.call(request);
        Box::pin(async move {
            let answer = async {
                match answer.await {
                    Ok(answer) => answer,
                    Err(never) => match never {},
                }
            };
            Ok(connection.scope(under_way.answered(&stopping, answer, ended)).await)
        })
    }
}

/// What a call is told that ends before its answer.
fn ended(cut: Cut) -> Response<Body> {
    let outage = match cut {
        Cut::Elsewhere => Outage::Stopping,
        Cut::Unknown => Outage::Unknown("the node is stopping".to_owned()),
    };
    status::of_outage(&outage).into_http()
}
