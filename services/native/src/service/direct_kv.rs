//! `tripod.v1.Kv` past the router: puts and gets, most of which are one small frame each way, are read and answered without
//! what a service that is generated makes for every call.

use std::convert::Infallible;
use std::sync::Arc;

use http::{Request, Response};
use http_body::Body as HttpBody;
use tonic::body::Body;
use tonic::codegen::{Service as _, StdError};
use tripod_port::{CallContext, DirectAnswer, DirectRequest, DirectService, unary};
use tripod_proto::tripod::v1::kv_server;

use super::{kv, kv_server};

const PUT: &str = "/tripod.v1.Kv/Put";
const GET: &str = "/tripod.v1.Kv/Get";

/// The service. All other methods, and requests that are not so plain, are those of the one that is generated.
pub(super) struct DirectKv {
    service: Arc<kv::Service>,
}

impl DirectKv {
    pub(super) fn new(service: Arc<kv::Service>) -> Self {
        Self { service }
    }
}

impl DirectService for DirectKv {
    fn name(&self) -> &'static str {
        kv_server::SERVICE_NAME
    }

    fn call(&self, mut request: DirectRequest, context: CallContext) -> DirectAnswer {
        let service = Arc::clone(&self.service);
        match request.uri().path() {
            PUT => {
                let reading = unary::reading(request);
                DirectAnswer::Own(Box::pin(async move {
                    let own = |request| service.store(request);
                    unary::call(reading, own, |request| generated(&service, context, request)).await
                }))
            }
            GET => {
                let reading = unary::reading(request);
                DirectAnswer::Own(Box::pin(async move {
                    let own = |request| service.find(request);
                    unary::call(reading, own, |request| generated(&service, context, request)).await
                }))
            }
            _ => {
                context.put(request.extensions_mut());
                DirectAnswer::Generated(kv_server(service).call(request))
            }
        }
    }
}

/// The answer to a call that is not so plain.
async fn generated<B>(
    service: &Arc<kv::Service>,
    context: CallContext,
    mut request: Request<B>,
) -> Result<Response<Body>, Infallible>
where
    B: HttpBody + Send + 'static,
    B::Error: Into<StdError> + Send + 'static,
{
    context.put(request.extensions_mut());
    kv_server(Arc::clone(service)).call(request).await
}
