//! From a gateway to the routes of a port.

use std::sync::Arc;

use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use tonic::codec::CompressionEncoding;
use tonic::service::Routes;
use tripod_gateway::{Gateway, JobBinding};
use tripod_port::overlong::MESSAGE_BYTES_MAX;
use tripod_port::{Direct, deadline, label, overlong};
use tripod_proto::bounds::ANSWER_ENCODED_BYTES_MAX;
use tripod_proto::tensorflow::coordination_service_server::CoordinationServiceServer as ServerT;
use tripod_proto::tensorflow::eager::eager_service_server::EagerServiceServer;
use tripod_proto::tensorflow::worker_service_server::WorkerServiceServer;
use tripod_proto::tripod::v1::agents_server::AgentsServer;
use tripod_proto::xla::coordination::coordination_service_server::CoordinationServiceServer as ServerN;
use tripod_proto::xla::distributed_runtime_service_server::DistributedRuntimeServiceServer as ServerL;
use tripod_state::limits::ANSWER_BYTES_MAX;

use crate::dialect::Dialect;
use crate::direct::{DirectL, DirectN, DirectT};
use crate::front::Front;
use crate::{agents, foreign, l, n, t};

/// An answer is refused beyond [`ANSWER_BYTES_MAX`] before it is made. What frames its keys comes on top.
const _: () = assert!(ANSWER_ENCODED_BYTES_MAX as u64 >= 2 * ANSWER_BYTES_MAX);

/// The services of all dialects for the job of a port.
struct Dialects {
    n: Arc<n::Service>,
    t: Arc<t::Service>,
    l: Arc<l::Service>,
    agents: AgentsServer<agents::Service>,
}

impl Dialects {
    fn new(gateway: &Gateway, binding: &JobBinding) -> Self {
        let front = |dialect| Front::new(gateway.clone(), binding.clone(), dialect);
        let agents = AgentsServer::new(agents::Service::new(gateway.clone()))
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(ANSWER_ENCODED_BYTES_MAX);
        Self {
            n: Arc::new(n::Service::new(front(Dialect::N))),
            t: Arc::new(t::Service::new(front(Dialect::T))),
            l: Arc::new(l::Service::new(front(Dialect::L))),
            agents,
        }
    }
}

// Every call of newer clients says that it may be compressed; a service that does not accept it answers UNIMPLEMENTED to all
// of them.

/// The service that is generated for dialect N, around ours.
pub(crate) fn server_n(service: Arc<n::Service>) -> ServerN<n::Service> {
    ServerN::from_arc(service)
        .accept_compressed(CompressionEncoding::Gzip)
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(ANSWER_ENCODED_BYTES_MAX)
}

/// The same for dialect T.
pub(crate) fn server_t(service: Arc<t::Service>) -> ServerT<t::Service> {
    ServerT::from_arc(service)
        .accept_compressed(CompressionEncoding::Gzip)
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(ANSWER_ENCODED_BYTES_MAX)
}

/// The same for dialect L.
pub(crate) fn server_l(service: Arc<l::Service>) -> ServerL<l::Service> {
    ServerL::from_arc(service)
        .accept_compressed(CompressionEncoding::Gzip)
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(ANSWER_ENCODED_BYTES_MAX)
}

/// All dialects for the job that `binding` names. The path tells them apart.
pub(crate) fn routes(gateway: &Gateway, binding: &JobBinding) -> Routes {
    let Dialects { n, t, l, agents } = Dialects::new(gateway, binding);
    let foreign = Arc::new(foreign::Service::new());
    let worker = WorkerServiceServer::from_arc(Arc::clone(&foreign));
    let eager = EagerServiceServer::from_arc(foreign).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let dialects = Routes::new(server_n(n)).add_service(server_t(t)).add_service(server_l(l));
    let dialects = dialects.add_service(agents).add_service(worker).add_service(eager).into_axum_router();
    // One layer for all: each boxes every call and answer, and copies the service for it.
    dialects.layer(from_fn(around)).into()
}

/// The same to be called past the router, around which a port does what [`around`] does.
pub(crate) fn direct(gateway: &Gateway, binding: &JobBinding) -> Vec<Direct> {
    let Dialects { n, t, l, agents } = Dialects::new(gateway, binding);
    let all = [
        Direct::of(DirectN::new(n)),
        Direct::of(DirectT::new(t)),
        Direct::of(DirectL::new(l)),
        Direct::generated(agents),
    ];
    all.map(Direct::of_dialect).into()
}

/// What is done around every call.
async fn around(mut request: Request, next: Next) -> Response {
    label::read(&mut request);
    let given = deadline::given(request.headers());
    deadline::keep(given, async { overlong::mend(next.run(request).await) }).await
}
