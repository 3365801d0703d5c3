//! Whatever a client sends: no crash, and a refusal changes nothing.

use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::{Request, Status};
use tripod_proto::raw::RawCodec;
use tripod_proto::ray as pb;
use tripod_proto::tripod::v1;

use crate::readme::calls;
use crate::support::Cluster;

/// Of each call; enough to meet most mistakes in a second, and the seeds differ from run to run.
const ROUNDS: usize = 200;

/// How long a call is waited for that waits by itself: a registration without a store, and a wait.
const PATIENCE: Duration = Duration::from_millis(200);

async fn send(cluster: &Cluster, path: &str, message: Bytes) -> Option<Result<(), Status>> {
    let mut grpc = Grpc::new(cluster.connect().await);
    grpc.ready().await.expect("the node lives");
    let path = PathAndQuery::try_from(format!("/{path}")).expect("a path");
    let call = grpc.server_streaming(Request::new(message), path.clone(), RawCodec);
    if path.as_str().ends_with("/RegisterWorker") || path.as_str().ends_with("/Wait") {
        return tokio::time::timeout(PATIENCE, call).await.ok().map(|answer| answer.map(drop));
    }
    // What a stream answers to a message comes after its headers.
    let first = async { call.await?.into_inner().message().await.map(drop) };
    Some(tripod_wait::within(format!("an answer of {path}"), first).await)
}

async fn check(cluster: &Cluster, path: &str, message: Vec<u8>, seed: u64) {
    let before = cluster.seen();
    let answer = send(cluster, path, message.clone().into()).await;
    if answer.is_none() {
        // The clock stands still while anything can happen, so what was given up does not take effect later.
        tokio::time::sleep(PATIENCE).await;
    }
    if let Some(Err(status)) = answer {
        let after = cluster.seen();
        assert!(after == before, "{path} was refused with {status}; seed {seed}, message {message:?}");
        assert_ne!(
            status.code(),
            tonic::Code::Internal,
            "{path}: {status}; seed {seed}, message {message:?}"
        );
        assert_ne!(status.code(), tonic::Code::Unknown, "{path}: {status}; seed {seed}, message {message:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn any_bytes_on_any_call_do_no_harm() {
    let cluster = Cluster::at_rest().await;
    let seed: u64 = rand::random();
    let mut random = StdRng::seed_from_u64(seed);
    for path in calls() {
        for _ in 0..ROUNDS / 4 {
            let length = random.random_range(0..60);
            let message: Vec<u8> = (0..length).map(|_| random.random()).collect();
            check(&cluster, &path, message, seed).await;
        }
    }
    cluster.info().await;
}

#[tokio::test(start_paused = true)]
async fn any_messages_on_any_call_do_no_harm() {
    let cluster = Cluster::at_rest().await;
    let store = cluster.store().await;
    let worker = cluster.worker(&store, &[("f", 2)]).await;
    let driver = cluster.driver(&store).await;
    cluster.put(driver).await;
    let seed: u64 = rand::random();
    let mut random = Messages(StdRng::seed_from_u64(seed));
    for _ in 0..ROUNDS * 10 {
        let (path, message) = random.any();
        check(&cluster, &path, message, seed).await;
    }
    let mut held = cluster.try_submit(driver, "f", vec![]).await;
    if held.is_err() {
        // A fuzzed call may have ended the driver's store; the node is what must live.
        held = Ok(pb::SubmitTaskReply::default());
    }
    drop((held, worker));
    cluster.info().await;
    cluster.task_info().await;
}

#[tokio::test(start_paused = true)]
async fn a_value_that_is_too_deep_is_refused() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let driver = cluster.driver(&store).await;
    // Deeper than any decoder goes, written without building it.
    let mut value: Vec<u8> = Vec::new();
    for _ in 0..2000 {
        for tag in [0x0a, 0x22] {
            let mut outer = vec![tag];
            prost::encoding::encode_varint(value.len() as u64, &mut outer);
            outer.extend_from_slice(&value);
            value = outer;
        }
    }
    let mut argument = vec![0x12];
    prost::encoding::encode_varint(value.len() as u64, &mut argument);
    argument.extend_from_slice(&value);
    let mut task = vec![0x0a, 1, b'f', 0x12];
    prost::encoding::encode_varint(argument.len() as u64, &mut task);
    task.extend_from_slice(&argument);
    let mut message = vec![0x08, u8::try_from(driver).expect("small"), 0x12];
    prost::encoding::encode_varint(task.len() as u64, &mut message);
    message.extend_from_slice(&task);
    let answer = send(&cluster, "Scheduler/SubmitTask", message.into()).await;
    let refused = answer.expect("it is answered").unwrap_err();
    assert_eq!(refused.code(), tonic::Code::InvalidArgument, "{refused}");
}

/// Messages of the right form with numbers that often mean something.
struct Messages(StdRng);

impl Messages {
    fn id(&mut self) -> u64 {
        *[0, 0, 1, 1, 2, 3, 5, 9, u64::MAX, u64::MAX - 1].choose(&mut self.0).expect("some")
    }

    fn ids(&mut self) -> Vec<u64> {
        let many = self.0.random_range(0..4);
        (0..many).map(|_| self.id()).collect()
    }

    fn value(&mut self) -> pb::Value {
        if self.0.random() {
            return crate::support::by_id(self.id());
        }
        crate::support::holding(self.id())
    }

    fn submit(&mut self) -> pb::SubmitTaskRequest {
        let arg = (0..self.0.random_range(0..3)).map(|_| self.value()).collect();
        let result = if self.0.random_range(0..8) == 0 { self.ids() } else { vec![] };
        let name = if self.0.random() { "f" } else { "" };
        let task = pb::Task { name: name.into(), arg, result };
        pb::SubmitTaskRequest { workerid: self.id(), task: (self.0.random_range(0..9) > 0).then_some(task) }
    }

    fn idle(&mut self) -> pb::ReadyForNewTaskRequest {
        let previous = pb::ready_for_new_task_request::PreviousTaskInfo {
            task_succeeded: self.0.random(),
            error_message: Bytes::from_static(&[0xff, 0]),
        };
        let workerid = self.id();
        pb::ReadyForNewTaskRequest {
            workerid,
            previous_task_info: self.0.random::<bool>().then_some(previous),
        }
    }

    fn call(&mut self) -> v1::RayCall {
        use v1::ray_call::Call;
        let call = match self.0.random_range(0..9) {
            0 => Call::Submit(self.submit()),
            1 => Call::Put(pb::PutObjRequest { workerid: self.id(), hold: self.0.random() }),
            2 => Call::Request(pb::RequestObjRequest { workerid: self.id(), objectid: self.id() }),
            3 => Call::Alias(pb::AliasObjectIDsRequest {
                alias_objectid: self.id(),
                target_objectid: self.id(),
            }),
            4 => Call::Ready(pb::ObjReadyRequest { objectid: self.id(), objstoreid: self.id() }),
            5 => Call::Increment(pb::IncrementRefCountRequest { objectid: self.ids() }),
            6 => Call::Decrement(pb::DecrementRefCountRequest { objectid: self.ids() }),
            7 => Call::FetchFailed(v1::RayFetchFailedRequest {
                objstoreid: self.id(),
                objectid: self.id(),
                absent_at: if self.0.random() { String::new() } else { "10.0.0.1:1".to_owned() },
                told: self.0.random(),
            }),
            _ => Call::Idle(self.idle()),
        };
        let run = v1::RayRun { operationid: self.id(), attempt: self.0.random_range(0..3) };
        let child = self.0.random::<bool>().then(|| self.0.random_range(0..2));
        v1::RayCall { call: Some(call), options: None, run: self.0.random::<bool>().then_some(run), child }
    }

    fn any(&mut self) -> (String, Vec<u8>) {
        let host = || "10.0.0.1".to_owned();
        let (name, message) = match self.0.random_range(0..20) {
            0 => {
                let address = if self.0.random() { String::new() } else { "10.0.0.1:1".to_owned() };
                (
                    "RegisterObjStore",
                    pb::RegisterObjStoreRequest { objstore_address: address }.encode_to_vec(),
                )
            }
            1 => {
                let request = pb::RegisterWorkerRequest {
                    node_ip_address: host(),
                    objstore_address: String::new(),
                    is_driver: self.0.random(),
                };
                ("RegisterWorker", request.encode_to_vec())
            }
            2 => {
                let request = pb::RegisterFunctionRequest {
                    workerid: self.id(),
                    fnname: if self.0.random() { "f".into() } else { Bytes::new() },
                    num_return_vals: self.id(),
                };
                ("RegisterFunction", request.encode_to_vec())
            }
            3..6 => ("SubmitTask", self.submit().encode_to_vec()),
            6 => ("PutObj", pb::PutObjRequest { workerid: self.id(), hold: self.0.random() }.encode_to_vec()),
            7 => {
                let request = pb::RequestObjRequest { workerid: self.id(), objectid: self.id() };
                ("RequestObj", request.encode_to_vec())
            }
            8..10 => {
                let request =
                    pb::AliasObjectIDsRequest { alias_objectid: self.id(), target_objectid: self.id() };
                ("AliasObjectIDs", request.encode_to_vec())
            }
            10..12 => {
                let request = pb::ObjReadyRequest { objectid: self.id(), objstoreid: self.id() };
                ("ObjReady", request.encode_to_vec())
            }
            12 => {
                ("IncrementRefCount", pb::IncrementRefCountRequest { objectid: self.ids() }.encode_to_vec())
            }
            13 => {
                ("DecrementRefCount", pb::DecrementRefCountRequest { objectid: self.ids() }.encode_to_vec())
            }
            14 => {
                let request =
                    pb::AddContainedObjectIDsRequest { objectid: self.id(), contained_objectid: self.ids() };
                ("AddContainedObjectIDs", request.encode_to_vec())
            }
            15..17 => ("ReadyForNewTask", self.idle().encode_to_vec()),
            17 => ("KillWorkers", pb::KillWorkersRequest {}.encode_to_vec()),
            18 => {
                let function = self.0.random::<bool>().then(pb::Function::default);
                ("ExportFunction", pb::ExportFunctionRequest { function }.encode_to_vec())
            }
            _ => {
                let calls = (0..self.0.random_range(0..4)).map(|_| self.call()).collect();
                let workerid = self.0.random::<bool>().then(|| self.id());
                let request = v1::RayBatchRequest { workerid, calls };
                return ("tripod.v1.Ray/Batch".to_owned(), request.encode_to_vec());
            }
        };
        (format!("Scheduler/{name}"), message)
    }
}
