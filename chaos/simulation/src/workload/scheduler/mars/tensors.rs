//! Mutable tensors, as the log knows them: created, looked at, sealed as of one time, and deleted. Their owners never change.

use std::time::Duration;

use rand::RngExt as _;
use tokio::time::Instant;
use tripod_checkers::history::{Call, Outcome, Reply, TensorAct, TensorName, Timestamp};
use tripod_proto::mars::v1 as pb;
use tripod_proto::mars::v1::scheduler_client::SchedulerClient;

use super::call::{record, tensor};
use super::{JOB, create, delete};
use crate::client::{Client, to_job};
use crate::witness::now;

const SESSION: &str = "tensors";
/// When everything has settled a tensor is sealed within so long.
const SEALED_WITHIN: Duration = Duration::from_secs(30);

struct Tensor {
    name: String,
    /// Of each chunk, as it was told when it was created.
    owners: Vec<Vec<String>>,
}

pub(super) async fn run(mut client: Client) {
    create(&mut client, SESSION).await;
    let mut number = 0;
    while !client.done() {
        number += 1;
        if let Some(open) = begin(&mut client, format!("t{number}")).await {
            live(&mut client, &open).await;
        }
        client.pause(300).await;
    }
    delete(&mut client, SESSION).await;
}

fn call(name: &str, act: TensorAct) -> Call {
    Call::Tensor { tensor: TensorName::from(format!("{SESSION}/{name}")), act }
}

fn owners(info: &pb::MutableInfo) -> Vec<Vec<String>> {
    info.chunks.iter().map(|chunk| chunk.workers.clone()).collect()
}

fn seen(answer: &pb::MutableResponse) -> Option<Reply> {
    tensor(answer.info.as_ref()?)
}

/// Creates it, with a few tries.
async fn begin(client: &mut Client, name: String) -> Option<Tensor> {
    for _ in 0..5 {
        let request = pb::CreateMutableTensorRequest {
            session_id: SESSION.to_owned(),
            name: name.clone(),
            shape: vec![4],
            dtype: pb::ElementType::I64.into(),
            chunk_size: vec![2],
            replicas: 2,
            if_not_exist: true,
            ..Default::default()
        };
        let mut mars = SchedulerClient::new(client.channel());
        let sent = async move { mars.create_mutable_tensor(to_job(JOB, request)).await };
        let (_, told) = record(client, call(&name, TensorAct::Create), sent, seen).await;
        if let Some(info) = told.and_then(|told| told.info) {
            return Some(Tensor { name, owners: owners(&info) });
        }
        client.pause(300).await;
    }
    None
}

/// Until it is sealed or lost; then it is deleted.
async fn live(client: &mut Client, open: &Tensor) {
    for _ in 0..client.dice.random_range(0..4) {
        client.pause(400).await;
        look(client, open).await;
    }
    let at = client.dice.random_bool(0.5).then(|| Timestamp(client.dice.random_range(1..100)));
    let mut until = None;
    loop {
        match seal(client, open, at).await {
            Outcome::Ok(Reply::Done) => {
                // As of another time it is not sealed once more.
                seal(client, open, Some(Timestamp(at.map_or(1, |at| at.0 + 1)))).await;
                client.witness.count("tensors that were sealed");
                break;
            }
            // Lost, or not there: a look tells which.
            Outcome::Ok(_) => break,
            Outcome::Fail(_) | Outcome::Unknown(_) => {}
        }
        look(client, open).await;
        if client.settled() {
            let until = *until.get_or_insert_with(|| Instant::now() + SEALED_WITHIN);
            if Instant::now() >= until {
                let what =
                    format!("tensor {} is not, {SEALED_WITHIN:?} after everything had settled", open.name);
                client.witness.broken(now(), "every tensor is sealed", what);
                break;
            }
        }
        client.pause(300).await;
    }
    look(client, open).await;
    let request = pb::DeleteMutableTileableRequest {
        session_id: SESSION.to_owned(),
        name: open.name.clone(),
        ..Default::default()
    };
    let mut mars = SchedulerClient::new(client.channel());
    let sent = async move { mars.delete_mutable_tileable(to_job(JOB, request)).await };
    let done = |_: &pb::DeleteMutableTileableResponse| Some(Reply::Done);
    let deleted = record(client, call(&open.name, TensorAct::Delete), sent, done).await.0;
    if deleted.acknowledged() {
        look(client, open).await;
    }
}

async fn seal(client: &mut Client, open: &Tensor, at: Option<Timestamp>) -> Outcome {
    let request = pb::SealMutableTileableRequest {
        session_id: SESSION.to_owned(),
        name: open.name.clone(),
        timestamp_ns: at.map(|at| at.0),
        ..Default::default()
    };
    let mut mars = SchedulerClient::new(client.channel());
    let sent = async move { mars.seal_mutable_tileable(to_job(JOB, request)).await };
    let done = |_: &pb::SealMutableTileableResponse| Some(Reply::Done);
    record(client, call(&open.name, TensorAct::Seal { at }), sent, done).await.0
}

async fn look(client: &mut Client, open: &Tensor) {
    let (session_id, name) = (SESSION.to_owned(), open.name.clone());
    let request = pb::GetMutableTileableRequest { session_id, name, ..Default::default() };
    let mut mars = SchedulerClient::new(client.channel());
    let sent = async move { mars.get_mutable_tileable(to_job(JOB, request)).await };
    let (_, told) = record(client, call(&open.name, TensorAct::Look), sent, seen).await;
    let Some(info) = told.and_then(|told| told.info) else { return };
    if owners(&info) != open.owners {
        let what =
            format!("tensor {}: {:?} had its chunks, and now {:?}", open.name, open.owners, owners(&info));
        client.witness.broken(now(), "a tensor keeps its owners", what);
    }
}
