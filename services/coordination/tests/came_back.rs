//! A process that came back into a recoverable job writes what its earlier life wrote.

mod support;

use bytes::Bytes;
use prost::Message as _;
use support::{SERVICE, Served};
use tonic::metadata::{Binary, MetadataValue};
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use tripod_gateway::Options;
use tripod_proto::tensorflow::coordination_service_client::CoordinationServiceClient as ClientT;
use tripod_proto::xla::coordination::coordination_service_client::CoordinationServiceClient as ClientN;
use tripod_proto::{metadata, tensorflow, xla::coordination as xla};
use tripod_state::job;

const KEY: &str = "cpu:global_topology/cpu";

async fn recoverable() -> Served {
    let served = Served::start(Options::default()).await;
    served.raise().await;
    served.create(job::Spec { recoverable: true, ..job::Spec::of_tasks(1) }).await;
    served
}

fn refused(answer: Result<(), Status>) {
    let status = answer.expect_err("it exists");
    assert_eq!(status.code(), Code::AlreadyExists);
}

/// A life of task 0 whose calls say so.
struct LifeN {
    client: ClientN<Channel>,
    incarnation: u64,
}

impl LifeN {
    async fn begins(served: &Served, incarnation: u64) -> Self {
        let mut client = ClientN::new(served.connect().await);
        client
            .register_task(xla::RegisterTaskRequest { incarnation, source_task_id: 0 })
            .await
            .expect("taken");
        Self { client, incarnation }
    }

    async fn insert(&mut self, value: &'static str) -> Result<(), Status> {
        let incarnations = Some(xla::Incarnations {
            task_id: 0,
            task_incarnation: self.incarnation,
            service_incarnation: SERVICE,
        });
        let kv = Some(xla::KeyValueEntry { key: KEY.to_owned(), value: value.into() });
        let insert = xla::InsertKeyValueRequest { incarnations, kv, allow_overwrite: false };
        self.client.insert_key_value(insert).await.map(drop)
    }
}

#[tokio::test(start_paused = true)]
async fn a_later_life_is_answered_as_if_it_had_written_what_its_earlier_life_did() {
    let served = recoverable().await;
    let mut first = LifeN::begins(&served, 1).await;
    first.insert("all").await.expect("new");
    refused(first.insert("all").await);
    let mut second = LifeN::begins(&served, 2).await;
    second.insert("all").await.expect("written before");
    refused(second.insert("others").await);
    refused(first.insert("all").await);
}

/// Task 0 of a client whose calls do not say whose they are.
fn registration(incarnation: u64) -> tensorflow::RegisterTaskRequest {
    let job_name = "jax_worker".to_owned();
    let source_task = Some(tensorflow::CoordinatedTask { job_name, task_id: 0, recoverable: false });
    tensorflow::RegisterTaskRequest { incarnation, source_task }
}

async fn insert(client: &mut ClientT<Channel>, told: Option<u64>) -> Result<(), Status> {
    let kv = Some(tensorflow::KeyValueEntry { key: KEY.to_owned(), value: Bytes::from_static(b"all") });
    let mut insert = Request::new(tensorflow::InsertKeyValueRequest { kv, allow_overwrite: false });
    if let Some(incarnation) = told {
        let bytes = registration(incarnation).encode_to_vec();
        insert.metadata_mut().insert_bin(metadata::REGISTRATION, MetadataValue::<Binary>::from_bytes(&bytes));
    }
    client.insert_key_value(insert).await.map(drop)
}

#[tokio::test(start_paused = true)]
async fn where_calls_do_not_say_whose_they_are_their_connection_does() {
    let served = recoverable().await;
    let connect = async || ClientT::new(served.connect().await);
    let mut first = connect().await;
    first.register_task(registration(1)).await.expect("taken");
    insert(&mut first, None).await.expect("new");
    refused(insert(&mut first, None).await);
    let mut second = connect().await;
    refused(insert(&mut second, None).await);
    second.register_task(registration(2)).await.expect("it came back");
    insert(&mut second, None).await.expect("written before");
    refused(insert(&mut first, None).await);

    // Another connection of the same process, as after the end of a node.
    let mut third = connect().await;
    refused(insert(&mut third, None).await);
    let tensorflow::RegisterTaskRequest { incarnation, source_task } = registration(2);
    third.heartbeat(tensorflow::HeartbeatRequest { incarnation, source_task }).await.expect("alive");
    insert(&mut third, None).await.expect("written before");
}

#[tokio::test(start_paused = true)]
async fn an_agent_tells_how_its_client_registered() {
    let served = recoverable().await;
    let mut first = ClientT::new(served.connect().await);
    first.register_task(registration(1)).await.expect("taken");
    insert(&mut first, None).await.expect("new");
    first.register_task(registration(2)).await.expect("it came back");
    let mut agent = ClientT::new(served.connect().await);
    insert(&mut agent, Some(2)).await.expect("written before");
    refused(insert(&mut agent, Some(1)).await);
    refused(insert(&mut agent, None).await);
    let nonsense = MetadataValue::<Binary>::from_bytes(b"\xff\xff");
    let kv = Some(tensorflow::KeyValueEntry { key: KEY.to_owned(), value: Bytes::from_static(b"all") });
    let mut insert = Request::new(tensorflow::InsertKeyValueRequest { kv, allow_overwrite: false });
    insert.metadata_mut().insert_bin(metadata::REGISTRATION, nonsense);
    refused(agent.insert_key_value(insert).await.map(drop));
}
