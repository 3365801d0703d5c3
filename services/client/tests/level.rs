//! Clusters that have no schedulers yet, since they are at an earlier feature level.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tonic::metadata::MetadataValue;
use tonic::{Request, Response, Status};
use tripod_client::{Client, Config, Error, Offers, Registration, Scheduler};
use tripod_lines::{Arrivals, Lines};
use tripod_proto::metadata::{RAY_REASON, RAY_SEQ};
use tripod_proto::ray;
use tripod_proto::ray::scheduler_server::{Scheduler as Service, SchedulerServer};

/// Where the node listens.
const NODE: &str = "node:7700";
/// How long a process waits for nodes, and a driver for the level.
const PATIENCE: Duration = Duration::from_secs(1);

/// A node that has no scheduler at first.
#[derive(Clone, Default)]
struct Node {
    refused: Arc<AtomicU64>,
    /// So many calls are refused.
    too_early: u64,
    /// The number of the call that was not.
    accepted: Arc<AtomicU64>,
}

impl Node {
    /// Serves until it is told to end, or that is dropped.
    fn serve(&self, incoming: Arrivals) -> (oneshot::Sender<()>, JoinHandle<()>) {
        let router = tonic::transport::Server::builder().add_service(SchedulerServer::new(self.clone()));
        let (end, ended) = oneshot::channel();
        let ended = async { drop(ended.await) };
        let serving = router.serve_with_incoming_shutdown(incoming, ended);
        (end, tokio::spawn(async move { serving.await.expect("served") }))
    }

    async fn until_refused(&self, times: u64) {
        let refused = || (self.refused.load(Ordering::Relaxed) >= times).then_some(());
        tripod_wait::until("somebody to ask", refused).await;
    }
}

async fn register(lines: Lines, level_patience: Option<Duration>) -> Result<ray::RegisterWorkerReply, Error> {
    let config = Config { timeout: PATIENCE / 4, ..Config::new(vec![NODE.to_owned()]) };
    let client = Client::connecting(&config, &lines.to_connect());
    let scheduler = Scheduler::new(client.expect("an address"), "", 7, PATIENCE);
    let (host, store) = ("127.0.0.1".to_owned(), String::new());
    let who =
        Registration { host, store, is_driver: false, slots: 1, offers: Offers::default(), level_patience };
    scheduler.register_worker(&who).await
}

/// Longer than it waits for nodes that do not answer: also when all of them are away for an upgrade after that time.
#[tokio::test(start_paused = true)]
async fn who_waits_for_the_level_for_ever_does_so_longer_than_for_nodes() {
    let lines = Lines::new();
    let node = Node { too_early: 8, ..Node::default() };
    let (end, serving) = node.serve(lines.listen(NODE));
    let begun = Instant::now();
    let mut registered = tokio::spawn(register(lines.clone(), None));
    node.until_refused(6).await;
    assert!(begun.elapsed() > PATIENCE, "it is asked four times a second");
    drop(end);
    serving.await.expect("no panic");
    let mut arrivals = lines.listen(NODE);
    // More than the attempts of one call.
    for _ in 0..12 {
        tokio::select! {
            ended = &mut registered => panic!("it gives up: {ended:?}"),
            arrival = arrivals.next() => drop(arrival.expect("somebody comes")),
        }
    }
    let _serving = node.serve(arrivals);
    registered.await.expect("no panic").expect("it is registered");
    assert_eq!((node.refused.load(Ordering::Relaxed), node.accepted.load(Ordering::Relaxed)), (8, 1));
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_the_level_for_a_while_is_told_why_it_was_in_vain() {
    let lines = Lines::new();
    let node = Node { too_early: u64::MAX, ..Node::default() };
    let _serving = node.serve(lines.listen(NODE));
    let refused = register(lines, Some(PATIENCE)).await.expect_err("it has waited long enough");
    assert!(
        refused.has_reason("level") && refused.to_string().contains("needs feature level 3"),
        "{refused}"
    );
    assert!(node.refused.load(Ordering::Relaxed) > 1);
}

type Outcome<T> = Result<Response<T>, Status>;

fn unasked<T>() -> Outcome<T> {
    Err(Status::unimplemented("nobody asks for that here"))
}

#[tonic::async_trait]
impl Service for Node {
    async fn register_worker(
        &self,
        request: Request<ray::RegisterWorkerRequest>,
    ) -> Outcome<ray::RegisterWorkerReply> {
        if self.refused.load(Ordering::Relaxed) < self.too_early {
            self.refused.fetch_add(1, Ordering::Relaxed);
            let mut status =
                Status::failed_precondition("ray needs feature level 3, and the cluster is at 2");
            status.metadata_mut().insert(RAY_REASON, MetadataValue::from_static("level"));
            return Err(status);
        }
        let number = request.metadata().get(RAY_SEQ).and_then(|number| number.to_str().ok()?.parse().ok());
        self.accepted.store(number.expect("a number"), Ordering::Relaxed);
        Ok(Response::new(ray::RegisterWorkerReply::default()))
    }

    async fn register_obj_store(
        &self,
        _: Request<ray::RegisterObjStoreRequest>,
    ) -> Outcome<ray::RegisterObjStoreReply> {
        unasked()
    }
    async fn obj_ready(&self, _: Request<ray::ObjReadyRequest>) -> Outcome<ray::AckReply> {
        unasked()
    }
    async fn register_function(&self, _: Request<ray::RegisterFunctionRequest>) -> Outcome<ray::AckReply> {
        unasked()
    }
    async fn submit_task(&self, _: Request<ray::SubmitTaskRequest>) -> Outcome<ray::SubmitTaskReply> {
        unasked()
    }
    async fn increment_count(&self, _: Request<ray::ChangeCountRequest>) -> Outcome<ray::AckReply> {
        unasked()
    }
    async fn decrement_count(&self, _: Request<ray::ChangeCountRequest>) -> Outcome<ray::AckReply> {
        unasked()
    }
    async fn put_obj(&self, _: Request<ray::PutObjRequest>) -> Outcome<ray::PutObjReply> {
        unasked()
    }
    async fn request_obj(&self, _: Request<ray::RequestObjRequest>) -> Outcome<ray::AckReply> {
        unasked()
    }
    async fn alias_object_i_ds(&self, _: Request<ray::AliasObjectIDsRequest>) -> Outcome<ray::AckReply> {
        unasked()
    }
    async fn increment_ref_count(&self, _: Request<ray::IncrementRefCountRequest>) -> Outcome<ray::AckReply> {
        unasked()
    }
    async fn decrement_ref_count(&self, _: Request<ray::DecrementRefCountRequest>) -> Outcome<ray::AckReply> {
        unasked()
    }
    async fn add_contained_object_i_ds(
        &self,
        _: Request<ray::AddContainedObjectIDsRequest>,
    ) -> Outcome<ray::AckReply> {
        unasked()
    }
    async fn ready_for_new_task(&self, _: Request<ray::ReadyForNewTaskRequest>) -> Outcome<ray::AckReply> {
        unasked()
    }
    async fn scheduler_info(
        &self,
        _: Request<ray::SchedulerInfoRequest>,
    ) -> Outcome<ray::SchedulerInfoReply> {
        unasked()
    }
    async fn task_info(&self, _: Request<ray::TaskInfoRequest>) -> Outcome<ray::TaskInfoReply> {
        unasked()
    }
    async fn kill_workers(&self, _: Request<ray::KillWorkersRequest>) -> Outcome<ray::KillWorkersReply> {
        unasked()
    }
    async fn export_function(
        &self,
        _: Request<ray::ExportFunctionRequest>,
    ) -> Outcome<ray::ExportFunctionReply> {
        unasked()
    }
    async fn export_reusable_variable(
        &self,
        _: Request<ray::ExportReusableVariableRequest>,
    ) -> Outcome<ray::AckReply> {
        unasked()
    }
}
