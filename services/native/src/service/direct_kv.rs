//! `tripod.v1.Kv` past the router: puts and gets, most of which are one small frame each way, are read and answered without
//! what a service that is generated makes for every call.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;

use http::{Request, Response};
use http_body::Body;
use prost::Message;
use tonic::Status;
use tonic::codegen::{Service as _, StdError};
use tripod_port::{AnswerBody, CallContext, DirectAnswer, DirectRequest, DirectService, unary};
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
            PUT => DirectAnswer::Own(Box::pin(async move {
                answered(request, context, |message| service.put_message(message), &service).await
            })),
            GET => DirectAnswer::Own(Box::pin(async move {
                answered(request, context, |message| service.get_message(message), &service).await
            })),
            _ => {
                context.put(request.extensions_mut());
                DirectAnswer::Generated(kv_server(service).call(request))
            }
        }
    }
}

/// The answer to a call whose message is plain; to another one, the generated service's.
async fn answered<M, R, Fut>(
    request: DirectRequest,
    context: CallContext,
    answer: impl FnOnce(M) -> Fut,
    service: &Arc<kv::Service>,
) -> Response<AnswerBody>
where
    M: Message + Default,
    R: Message,
    Fut: Future<Output = Result<R, Status>>,
{
    match unary::read(request).await {
        Ok(message) => unary::answer(answer(message).await),
        Err(mut request) => {
            context.put(request.extensions_mut());
            generated(service, request).await
        }
    }
}

async fn generated<B>(service: &Arc<kv::Service>, request: Request<B>) -> Response<AnswerBody>
where
    B: Body + Send + 'static,
    B::Error: Into<StdError> + Send + 'static,
{
    let answer: Result<_, Infallible> = kv_server(Arc::clone(service)).call(request).await;
    match answer {
        Ok(answer) => answer.map(AnswerBody::Other),
        Err(never) => match never {},
    }
}
