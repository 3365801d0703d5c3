//! The dialects past the router: calls that are made often, and those of which each task of a gang has one that waits, are read
//! and answered without what a service that is generated makes for every call. Most of them are one small frame each way.

use std::sync::Arc;

use tonic::codegen::Service as _;
use tripod_port::{CallContext, DirectAnswer, DirectRequest, DirectService, unary};
use tripod_proto::bounds::ANSWER_ENCODED_BYTES_MAX;
use tripod_proto::tensorflow::coordination_service_server as of_t;
use tripod_proto::xla::coordination::coordination_service_server as of_n;
use tripod_proto::xla::distributed_runtime_service_server as of_l;
use tripod_state::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};

use crate::routes::{server_l, server_n, server_t};
use crate::{l, n, t};

/// A service that is generated refuses longer answers. The longest of the calls here is one key with its value.
const _: () = assert!(ANSWER_ENCODED_BYTES_MAX >= 2 * (KEY_BYTES_MAX + VALUE_BYTES_MAX));

/// A dialect whose calls of these paths are made by those functions of its service, if they are plain. All other calls are
/// those of the service that is generated.
macro_rules! direct {
    ($direct:ident, $service:ty, $name:expr, $server:ident, { $($path:literal => $own:ident,)+ }) => {
        pub(crate) struct $direct {
            service: Arc<$service>,
        }

        impl $direct {
            #[cfg(test)]
            const PATHS: &[&str] = &[$($path),+];

            pub(crate) fn new(service: Arc<$service>) -> Self {
                Self { service }
            }
        }

        impl DirectService for $direct {
            fn name(&self) -> &'static str {
                $name
            }

            fn call(&self, mut request: DirectRequest, context: CallContext) -> DirectAnswer {
                context.put(request.extensions_mut());
                let service = Arc::clone(&self.service);
                match request.uri().path() {
                    $($path => {
                        let reading = unary::reading(request);
                        DirectAnswer::Own(Box::pin(async move {
                            let own = |request| service.$own(request);
                            unary::call(reading, own, |request| $server(Arc::clone(&service)).call(request)).await
                        }))
                    })+
                    _ => DirectAnswer::Generated($server(service).call(request)),
                }
            }
        }
    };
}

direct!(DirectN, n::Service, of_n::SERVICE_NAME, server_n, {
    "/xla.coordination.CoordinationService/Heartbeat" => beat,
    "/xla.coordination.CoordinationService/InsertKeyValue" => insert,
    "/xla.coordination.CoordinationService/GetKeyValue" => get,
    "/xla.coordination.CoordinationService/TryGetKeyValue" => try_get,
    "/xla.coordination.CoordinationService/IncrementKeyValue" => increment,
    "/xla.coordination.CoordinationService/Barrier" => arrive,
    "/xla.coordination.CoordinationService/RegisterTask" => register,
    "/xla.coordination.CoordinationService/ShutdownTask" => leave,
    "/xla.coordination.CoordinationService/PollForError" => poll,
});

direct!(DirectT, t::Service, of_t::SERVICE_NAME, server_t, {
    "/tensorflow.CoordinationService/Heartbeat" => beat,
    "/tensorflow.CoordinationService/InsertKeyValue" => insert,
    "/tensorflow.CoordinationService/GetKeyValue" => get,
    "/tensorflow.CoordinationService/TryGetKeyValue" => try_get,
    "/tensorflow.CoordinationService/IncrementKeyValue" => increment,
    "/tensorflow.CoordinationService/Barrier" => arrive,
    "/tensorflow.CoordinationService/RegisterTask" => register,
    "/tensorflow.CoordinationService/ShutdownTask" => leave,
    "/tensorflow.CoordinationService/PollForError" => poll,
});

direct!(DirectL, l::Service, of_l::SERVICE_NAME, server_l, {
    "/xla.DistributedRuntimeService/Heartbeat" => beat,
    "/xla.DistributedRuntimeService/KeyValueGet" => get,
    "/xla.DistributedRuntimeService/KeyValueSet" => set,
    "/xla.DistributedRuntimeService/WaitAtBarrier" => arrive,
});

#[cfg(test)]
mod tests {
    use std::fmt::Debug;
    use std::time::Duration;

    use tokio::time::timeout;
    use tonic::Request;
    use tonic::metadata::MetadataValue;
    use tripod_gateway::{Gateway, JobBinding};
    use tripod_proto::metadata;
    use tripod_proto::xla as pb_l;
    use tripod_proto::xla::coordination as pb;
    use tripod_proto::xla::distributed_runtime_service_server::DistributedRuntimeService as _;
    use tripod_state::ids::ServiceIncarnation;
    use tripod_state::{Command, job};

    use super::*;
    use crate::dialect::Dialect;
    use crate::front::Front;
    use crate::manners::MANNERS;

    /// What a call takes that waits for a gang, what it was asked apart.
    const WAITING_BYTES_MAX: usize = 3 << 10;

    #[test]
    fn every_path_is_that_of_a_method_of_the_dialect() {
        let dialects = [
            (of_n::SERVICE_NAME, DirectN::PATHS),
            (of_t::SERVICE_NAME, DirectT::PATHS),
            (of_l::SERVICE_NAME, DirectL::PATHS),
        ];
        for (service, paths) in dialects {
            let manner = MANNERS.iter().find(|manner| manner.service == service).unwrap();
            for path in paths {
                let method = path.strip_prefix('/').and_then(|path| path.strip_prefix(service));
                let method =
                    method.and_then(|method| method.strip_prefix('/')).and_then(|name| manner.method(name));
                assert!(method.is_some_and(|method| !method.is_streaming), "{path}");
            }
        }
    }

    #[tokio::test]
    async fn a_call_of_which_each_task_has_one_that_waits_takes_little() {
        let (gateway, _backend) = Gateway::in_memory();
        let front = Front::new(gateway, JobBinding::Named("default".to_owned()), Dialect::N);
        let service = n::Service::new(front);
        let bytes = [
            size_of_val(&service.register(Request::new(pb::RegisterTaskRequest::default()))),
            size_of_val(&service.arrive(Request::new(pb::BarrierRequest::default()))),
            size_of_val(&service.leave(Request::new(pb::ShutdownTaskRequest::default()))),
            size_of_val(&service.poll(Request::new(pb::PollForErrorRequest::default()))),
            size_of_val(&service.get(Request::new(pb::GetKeyValueRequest::default()))),
        ];
        assert!(bytes.iter().all(|bytes| *bytes <= WAITING_BYTES_MAX), "{bytes:?}");
    }

    /// A front of a node that has a job of one task.
    async fn front(dialect: Dialect) -> Front {
        let (gateway, _backend) = Gateway::in_memory();
        let (name, spec) = ("default".to_owned(), job::Spec::of_tasks(1));
        let create = job::Command::Create { name: name.clone(), spec, service: ServiceIncarnation(7) };
        gateway.submit(Command::Job(create)).await.expect("no outage").expect("not refused");
        Front::new(gateway, JobBinding::Named(name), dialect)
    }

    /// A call through an agent, and what is there twice as long as its request is kept.
    fn through_an_agent<M>(message: M) -> (Request<M>, Arc<()>) {
        let mut request = Request::new(message);
        request.metadata_mut().insert(metadata::LASTING, MetadataValue::from_static("1"));
        let kept = Arc::new(());
        request.extensions_mut().insert(Arc::clone(&kept));
        (request, kept)
    }

    /// The call waits, and keeps nothing of its request.
    async fn waits_alone<F>(call: F, kept: Arc<()>)
    where
        F: Future,
        F::Output: Debug,
    {
        let mut call = Box::pin(call);
        let answer = timeout(Duration::from_millis(1), &mut call).await;
        assert!(answer.is_err(), "nothing has come for it: {answer:?}");
        assert_eq!(Arc::strong_count(&kept), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_through_an_agent_keeps_nothing_of_its_request_while_it_waits() {
        let service = n::Service::new(front(Dialect::N).await);
        let register = pb::RegisterTaskRequest { incarnation: 1, ..Default::default() };
        service.register(Request::new(register)).await.expect("it is the only task");
        let life = pb::Incarnations { service_incarnation: 7, ..Default::default() };
        let poll = pb::PollForErrorRequest { incarnations: Some(life), ..Default::default() };
        let (request, kept) = through_an_agent(poll);
        waits_alone(service.poll(request), kept).await;

        let service = l::Service::new(front(Dialect::L).await);
        let connect = pb_l::ConnectRequest { protocol_version: 3, client_id: 1, ..Default::default() };
        let connected = service.connect(Request::new(connect)).await.expect("it is the only task");
        let session_id = connected.into_inner().session_id;
        let get = pb_l::KeyValueGetRequest { session_id, key: "none".into(), timeout_milliseconds: 60_000 };
        let (request, kept) = through_an_agent(get);
        waits_alone(service.get(request), kept).await;
    }
}
