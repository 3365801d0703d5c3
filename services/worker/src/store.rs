//! The object store of this machine.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use tonic::Code;
use tripod_client::wire::RayRun;
use tripod_dial::Callee;
use tripod_objstore::local::{Connection, LocalError};
use tripod_objstore::{Made, ObjectId, Run, Teller};
use tripod_proto::bounds::ANSWER_ENCODED_BYTES_MAX;
use tripod_proto::ray::ObjStoreInfoRequest;
use tripod_proto::ray::obj_store_client::ObjStoreClient;

use crate::error::Lost;

/// How long the store of the same machine may take to answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a worker without its store waits to be given up. The scheduler needs less: a store's time to live is a few
/// seconds, and after an election some more.
const GIVEN_UP_WITHIN: Duration = Duration::from_secs(60);

/// Whether an answer means that the store is gone with everything in it: it has ended, or begins anew.
pub(crate) fn is_gone(code: Code) -> bool {
    matches!(code, Code::Unavailable | Code::Cancelled)
}

/// Whether an answer means that an object cannot come to this store, and may be at another one: it is larger than this
/// one, or this one does not reach it.
pub(crate) fn is_elsewhere(code: Code) -> bool {
    matches!(code, Code::ResourceExhausted | Code::Aborted)
}

/// Waits for the end of a worker whose store is gone. The scheduler gives up a store together with its workers; what
/// such a worker could report until then would look like a fault of its tasks.
pub(crate) async fn gone(text: &str) -> Lost {
    let lost = lost(text);
    tokio::time::sleep(GIVEN_UP_WITHIN).await;
    lost
}

/// [`gone`] for a thread that belongs to the worker, and may be left behind when its process ends.
pub(crate) fn gone_for_thread(text: &str) -> Lost {
    let lost = lost(text);
    std::thread::sleep(GIVEN_UP_WITHIN);
    lost
}

fn lost(text: &str) -> Lost {
    tracing::warn!(text, "the object store of this worker is gone: it begins nothing until it is given up");
    Lost { why: format!("the object store of this machine is gone: {text}").into() }
}

/// A connection to it. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Store {
    connection: Connection,
}

impl Store {
    /// Connects to the store that listens at this address for other machines.
    pub(crate) async fn connect(address: &str, process: u64) -> Result<Self, String> {
        let connecting = async {
            let target = tripod_dial::endpoint(address, Callee::Worker).map_err(|error| error.to_string())?;
            let channel = tripod_dial::connect_to_worker(&target).await.map_err(|error| root_of(&error))?;
            // Of no object: what is wanted is where its socket is.
            let ask = ObjStoreInfoRequest { objectid: Vec::new() };
            let told = ObjStoreClient::new(channel)
                .max_decoding_message_size(ANSWER_ENCODED_BYTES_MAX)
                .obj_store_info(ask)
                .await;
            let socket = told.map_err(|status| status.message().to_owned())?.into_inner().local_socket;
            if socket.is_empty() {
                return Err("it does not say where its socket for processes of this machine is".to_owned());
            }
            let connection = Connection::open(Path::new(&socket), Some(process)).await;
            Ok(Self { connection: connection.map_err(|error| error.to_string())? })
        };
        let late = |_| format!("it does not answer within {} s", CONNECT_TIMEOUT.as_secs());
        tokio::time::timeout(CONNECT_TIMEOUT, connecting).await.map_err(late)?
    }

    /// The id under which the scheduler knows it.
    pub(crate) fn id(&self) -> u64 {
        self.connection.welcome().store.0
    }

    /// Writes a whole object.
    pub(crate) async fn put(
        &self,
        object: u64,
        data: Bytes,
        run: Option<RayRun>,
        teller: Teller,
    ) -> Result<(), (Code, String)> {
        let run = run.map(|run| Run { operation: run.operationid, attempt: run.attempt });
        self.connection.put(ObjectId(object), data, 0, Made { run, teller }).await.map_err(refusal)
    }

    /// An object, once it is there.
    pub(crate) async fn get(&self, object: u64) -> Result<Bytes, (Code, String)> {
        let object = self.connection.get(ObjectId(object), None).await.map_err(refusal)?;
        if object.metadata_offset() != 0 {
            let text = "the object has a layout that only Python reads".to_owned();
            return Err((Code::InvalidArgument, text));
        }
        object.bytes().map_err(refusal)
    }
}

fn refusal(error: LocalError) -> (Code, String) {
    match error {
        LocalError::Refused { code, text } => (code, text),
        LocalError::Disconnected(_) => (Code::Unavailable, error.to_string()),
        LocalError::Memory(_) | LocalError::Unexpected => (Code::Internal, error.to_string()),
    }
}

/// The innermost cause: the outer texts only say "transport error".
fn root_of(error: &(dyn std::error::Error + 'static)) -> String {
    let mut root = error;
    while let Some(source) = root.source() {
        root = source;
    }
    root.to_string()
}
