//! Chunks as they are: what played workers made is a number, what a tensor was sealed as a file of numpy.

use std::time::Duration;

use prost::Message as _;
use tokio::time::Instant;
use tonic::Status;
use tripod_load::connect;
use tripod_proto::mars::v1 as pb;
use tripod_proto::mars::v1::worker_client::WorkerClient;
use tripod_proto::ray::obj_store_client::ObjStoreClient;
use tripod_proto::ray::{Obj, StreamObjToRequest};

use super::super::wire::Attempt;
use super::AGAIN_PAUSE;
use super::caller::Caller;
use super::cells::{collect, elements};

/// How long a chunk may take to come from a store.
const LIMIT: Duration = Duration::from_secs(5);
/// How long it is asked for: the store that has it may be about to start again.
const PATIENCE: Duration = Duration::from_secs(8);

/// The number that a chunk of a graph is.
///
/// # Errors
/// Why nobody gives it.
pub(super) async fn number(caller: &mut Caller, chunk: &str) -> Result<u64, String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let why = match places(caller, chunk).await {
            Ok((Some(object), stores)) => match number_at(object, &stores).await {
                Ok(number) => return Ok(number),
                Err(why) => why,
            },
            Ok((None, _)) => "it has no object".to_owned(),
            Err(why) => why,
        };
        if Instant::now() >= deadline {
            return Err(why);
        }
        tokio::time::sleep(AGAIN_PAUSE).await;
    }
}

/// The cells of a chunk that was sealed.
///
/// # Errors
/// Why nobody gives them.
pub(super) async fn sealed(caller: &mut Caller, chunk: &str) -> Result<Vec<u64>, String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut why = "it is nowhere".to_owned();
        match places(caller, chunk).await {
            Ok((_, stores)) => {
                for store in &stores {
                    match sealed_at(&caller.session, chunk, store).await {
                        Ok(cells) => return Ok(cells),
                        Err(told) => why = told,
                    }
                }
            }
            Err(told) => why = told,
        }
        if Instant::now() >= deadline {
            return Err(why);
        }
        tokio::time::sleep(AGAIN_PAUSE).await;
    }
}

/// The object that a chunk is, and the stores that have it.
async fn places(caller: &mut Caller, chunk: &str) -> Result<(Option<u64>, Vec<String>), String> {
    let request = pb::GetMetasRequest {
        session_id: caller.session.clone(),
        keys: vec![chunk.to_owned()],
        ..Default::default()
    };
    match caller.attempt(|mut mars| async move { mars.get_chunk_metas(request).await }).await {
        Attempt::Answer(answer) => {
            let meta = answer.metas.into_iter().next().filter(|meta| meta.found).ok_or("it is not known")?;
            Ok((meta.object_id, meta.workers.into_iter().map(|place| place.worker_id).collect()))
        }
        Attempt::Refused(status) => Err(status.to_string()),
        Attempt::NotExecuted(why) | Attempt::Unknown(why) => Err(why),
    }
}

async fn number_at(object: u64, stores: &[String]) -> Result<u64, String> {
    let mut why = "no store has it".to_owned();
    for store in stores {
        match tokio::time::timeout(LIMIT, streamed(object, store)).await {
            Ok(Ok(bytes)) => {
                let object = Obj::decode(&*bytes).map_err(|error| error.to_string())?;
                let number = object.int_data.and_then(|number| u64::try_from(number.data).ok());
                return number.ok_or_else(|| "it is no number".to_owned());
            }
            Ok(Err(status)) => why = status.to_string(),
            Err(_) => why = format!("{store} does not answer"),
        }
    }
    Err(why)
}

async fn streamed(object: u64, store: &str) -> Result<Vec<u8>, Status> {
    let channel = connect::lazy(store).map_err(|error| Status::invalid_argument(error.to_string()))?;
    let request = StreamObjToRequest { objectid: object, ..Default::default() };
    let mut stream = ObjStoreClient::new(channel).stream_obj_to(request).await?.into_inner();
    let mut bytes = Vec::new();
    while let Some(part) = stream.message().await? {
        bytes.extend_from_slice(&part.data);
    }
    Ok(bytes)
}

async fn sealed_at(session: &str, chunk: &str, store: &str) -> Result<Vec<u64>, String> {
    let channel = connect::lazy(store).map_err(|error| error.to_string())?;
    let request = pb::GetChunksDataRequest {
        session_id: session.to_owned(),
        chunk_keys: vec![chunk.to_owned()],
        ..Default::default()
    };
    let got = async {
        let stream = WorkerClient::new(channel).get_chunks_data(request).await?.into_inner();
        collect(stream).await
    };
    match tokio::time::timeout(LIMIT, got).await {
        Ok(Ok(bytes)) => elements(&bytes),
        Ok(Err(status)) => Err(status.to_string()),
        Err(_) => Err(format!("{store} does not answer")),
    }
}
