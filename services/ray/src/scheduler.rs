//! `/Scheduler/*`.

use std::time::Duration;

use tonic::metadata::MetadataValue;
use tonic::{Request, Response, Status};
use tripod_gateway::Consistency;
use tripod_proto::metadata;
use tripod_proto::ray as pb;
use tripod_proto::ray::scheduler_server::Scheduler;
use tripod_state::ray::ids::ObjectId;
use tripod_state::ray::view::Availability;
use tripod_state::ray::{Answer, Needs, Ray};
use tripod_state::{DomainId, Topic};

use crate::caller::Caller;
use crate::front::{Answered, Front};
use crate::{admit, admitted, caller, decode, graph, status};

/// How long a registration waits for an object store of its host, as long as upstream waited before it gave up.
const STORE_PATIENCE: Duration = Duration::from_secs(3);

/// The scheduler of one port.
pub(crate) struct Service {
    front: Front,
}

/// The outcome of a call.
type Outcome<T> = Result<Response<T>, Status>;

impl Service {
    pub(crate) fn new(front: Front) -> Self {
        Self { front }
    }

    /// An answer that says only that it is done.
    fn acknowledge(&self, answered: Answered) -> Outcome<pb::AckReply> {
        self.front.respond(answered, |answer| match answer {
            Answer::Done => Ok(pb::AckReply {}),
            other => Err(status::unexpected(&other)),
        })
    }

    /// Registers a worker, and again whenever something changed while it has no store.
    async fn register(&self, request: Request<pb::RegisterWorkerRequest>) -> Result<Answered, Status> {
        let (metadata, extensions, message) = request.into_parts();
        admitted::registers(&extensions, message.is_driver)?;
        let caller = Caller::of(&metadata)?;
        let message = admit::worker(&self.front.dialler, &extensions, message).await?;
        let asked = decode::register_worker(&caller, caller::offers(&metadata)?, message);
        let job = self.front.job(&metadata).await?;
        let mut changes = self.front.gateway.watch(Topic::Domain(DomainId::Ray, job));
        let patience = tokio::time::sleep(STORE_PATIENCE);
        tokio::pin!(patience);
        loop {
            let registered = self.front.submit(job, &caller, asked.clone()).await;
            match registered {
                Err(refused) if has_no_store(&refused) => {
                    tokio::select! {
                        biased;
                        () = &mut patience => return Err(refused),
                        () = changes.changed() => {}
                    }
                }
                decided => return decided,
            }
        }
    }

    /// Looks at the job's scheduler as freshly as the caller wishes, and says which state it was.
    async fn show<M, T>(
        &self,
        request: &Request<M>,
        look: impl FnOnce(&Ray) -> T + Send,
    ) -> Result<Response<T>, Status>
    where
        M: Sync,
    {
        let caller = Caller::of(request.metadata())?;
        let job = self.front.job(request.metadata()).await?;
        self.front.read(caller.freshness, job, |_| ()).await?;
        // Read between the two looks: the state that is shown may be newer than what is said of it, never older.
        let index = self.front.gateway.applied_index();
        let mut response = Response::new(self.front.read(Consistency::Local, job, look).await?);
        response.metadata_mut().insert(metadata::RAY_INDEX, index.0.into());
        self.front.leader.borrow().tell(response.metadata_mut());
        Ok(response)
    }
}

fn has_no_store(refused: &Status) -> bool {
    let reason = refused.metadata().get(metadata::RAY_REASON);
    refused.code() == tonic::Code::Unavailable && reason.is_some_and(|word| word == "no-store")
}

#[tonic::async_trait]
impl Scheduler for Service {
    async fn register_worker(
        &self,
        request: Request<pb::RegisterWorkerRequest>,
    ) -> Outcome<pb::RegisterWorkerReply> {
        let answered = self.register(request).await?;
        self.front.respond(answered, |answer| match answer {
            Answer::Worker { worker, store, address, store_address } => Ok(pb::RegisterWorkerReply {
                workerid: worker.0,
                objstoreid: store.0,
                worker_address: address,
                objstore_address: store_address,
            }),
            other => Err(status::unexpected(&other)),
        })
    }

    async fn register_obj_store(
        &self,
        request: Request<pb::RegisterObjStoreRequest>,
    ) -> Outcome<pb::RegisterObjStoreReply> {
        let request = admit::store(&self.front.dialler, request).await?;
        let answered = self
            .front
            .ask(request, |_, message| {
                Ok(tripod_state::ray::Request::RegisterStore { address: message.objstore_address })
            })
            .await?;
        self.front.respond(answered, |answer| match answer {
            Answer::Store(store) => Ok(pb::RegisterObjStoreReply { objstoreid: store.0 }),
            other => Err(status::unexpected(&other)),
        })
    }

    async fn register_function(
        &self,
        request: Request<pb::RegisterFunctionRequest>,
    ) -> Outcome<pb::AckReply> {
        self.acknowledge(self.front.ask(request, |_, message| Ok(decode::register_function(message))).await?)
    }

    async fn submit_task(&self, request: Request<pb::SubmitTaskRequest>) -> Outcome<pb::SubmitTaskReply> {
        let decode = |caller: &Caller, message| {
            decode::submit(message, caller.options, Needs::default(), caller.child)
        };
        match self.front.ask(request, decode).await {
            Ok(answered) => self.front.respond(answered, |answer| match answer {
                Answer::Submitted { results } => Ok(pb::SubmitTaskReply {
                    result: results.into_iter().map(|id| id.0).collect(),
                    function_registered: true,
                }),
                other => Err(status::unexpected(&other)),
            }),
            // A client of 2016 waits and asks again: workers register what they imported in their own time.
            Err(refused) if has_no_function(&refused) => Ok(Response::new(pb::SubmitTaskReply::default())),
            Err(refused) => Err(refused),
        }
    }

    async fn increment_count(&self, _: Request<pb::ChangeCountRequest>) -> Outcome<pb::AckReply> {
        Err(never_implemented("IncrementRefCount"))
    }

    async fn decrement_count(&self, _: Request<pb::ChangeCountRequest>) -> Outcome<pb::AckReply> {
        Err(never_implemented("DecrementRefCount"))
    }

    async fn put_obj(&self, request: Request<pb::PutObjRequest>) -> Outcome<pb::PutObjReply> {
        let decode = |caller: &Caller, message| Ok(decode::put(message, caller.child));
        let answered = self.front.ask(request, decode).await?;
        self.front.respond(answered, |answer| match answer {
            Answer::Object { object, present } => {
                Ok(pb::PutObjReply { objectid: object.0, already_present: present })
            }
            other => Err(status::unexpected(&other)),
        })
    }

    async fn request_obj(&self, request: Request<pb::RequestObjRequest>) -> Outcome<pb::AckReply> {
        let object = ObjectId(request.get_ref().objectid);
        let answered = self.front.ask(request, |_, message| Ok(decode::get(message))).await?;
        let job = answered.job;
        let mut response = self.acknowledge(answered)?;
        // The value that says so comes to the store; who can read it here need not wait for that.
        let found = self.front.read(Consistency::Local, job, |ray| ray.availability(object)).await?;
        if let Some(Availability::Failed(failure)) = found
            && let Ok(word) = MetadataValue::try_from(status::reason_word(failure.reason))
        {
            response.metadata_mut().insert(metadata::RAY_REASON, word);
        }
        Ok(response)
    }

    async fn alias_object_i_ds(&self, request: Request<pb::AliasObjectIDsRequest>) -> Outcome<pb::AckReply> {
        let decode = |caller: &Caller, message| Ok(decode::alias(message, caller.run));
        self.acknowledge(self.front.ask(request, decode).await?)
    }

    async fn obj_ready(&self, request: Request<pb::ObjReadyRequest>) -> Outcome<pb::AckReply> {
        let decode = |caller: &Caller, message| Ok(decode::ready(message, caller.run));
        self.acknowledge(self.front.ask(request, decode).await?)
    }

    async fn increment_ref_count(
        &self,
        request: Request<pb::IncrementRefCountRequest>,
    ) -> Outcome<pb::AckReply> {
        self.acknowledge(self.front.ask(request, |_, message| decode::add_references(message)).await?)
    }

    async fn decrement_ref_count(
        &self,
        request: Request<pb::DecrementRefCountRequest>,
    ) -> Outcome<pb::AckReply> {
        self.acknowledge(self.front.ask(request, |_, message| decode::drop_references(message)).await?)
    }

    async fn add_contained_object_i_ds(
        &self,
        request: Request<pb::AddContainedObjectIDsRequest>,
    ) -> Outcome<pb::AckReply> {
        self.acknowledge(self.front.ask(request, |_, message| Ok(decode::contain(message))).await?)
    }

    async fn ready_for_new_task(
        &self,
        request: Request<pb::ReadyForNewTaskRequest>,
    ) -> Outcome<pb::AckReply> {
        let decode = |caller: &Caller, message| Ok(decode::idle(message, caller.run));
        self.acknowledge(self.front.ask(request, decode).await?)
    }

    async fn scheduler_info(
        &self,
        request: Request<pb::SchedulerInfoRequest>,
    ) -> Outcome<pb::SchedulerInfoReply> {
        let shown = self.show(&request, Ray::info).await?;
        let (metadata, info, extensions) = shown.into_parts();
        let (object, operation) = (info.base_object, info.base_operation);
        let mut response = Response::from_parts(metadata, graph::scheduler_info(info), extensions);
        response.metadata_mut().insert(metadata::RAY_BASE_OBJECT, object.into());
        response.metadata_mut().insert(metadata::RAY_BASE_OPERATION, operation.into());
        Ok(response)
    }

    async fn task_info(&self, request: Request<pb::TaskInfoRequest>) -> Outcome<pb::TaskInfoReply> {
        Ok(self.show(&request, Ray::task_info).await?.map(graph::task_info))
    }

    async fn kill_workers(&self, request: Request<pb::KillWorkersRequest>) -> Outcome<pb::KillWorkersReply> {
        let answered = self.front.ask(request, |_, _| Ok(tripod_state::ray::Request::KillWorkers)).await?;
        self.front.respond(answered, |answer| match answer {
            Answer::Killed(success) => Ok(pb::KillWorkersReply { success }),
            other => Err(status::unexpected(&other)),
        })
    }

    async fn export_function(
        &self,
        request: Request<pb::ExportFunctionRequest>,
    ) -> Outcome<pb::ExportFunctionReply> {
        let answered = self.front.ask(request, |_, message| decode::export_function(&message)).await?;
        Ok(self.acknowledge(answered)?.map(|_| pb::ExportFunctionReply {}))
    }

    async fn export_reusable_variable(
        &self,
        request: Request<pb::ExportReusableVariableRequest>,
    ) -> Outcome<pb::AckReply> {
        self.acknowledge(self.front.ask(request, |_, message| decode::export_variable(&message)).await?)
    }
}

fn has_no_function(refused: &Status) -> bool {
    refused.metadata().get(metadata::RAY_REASON).is_some_and(|word| word == "no-function")
}

fn never_implemented(instead: &str) -> Status {
    Status::unimplemented(format!("upstream declared it and never served it; call {instead}"))
}
