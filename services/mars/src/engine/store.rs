//! Connections to object stores, and the call that has one seal.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};
use tripod_dial::{Callee, Dialler, Named};
use tripod_proto::mars::v1 as pb;
use tripod_proto::mars::v1::worker_client::WorkerClient;

/// How long a connection may take to be made: stores are near, and another attempt follows.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// How often a connection is tried while a call is under way, and how long the other side may take: a store whose machine
/// is gone is noticed long before it could have sealed.
const PING_EVERY: Duration = Duration::from_secs(2);
const PING_TIMEOUT: Duration = Duration::from_secs(4);
/// How long one call may take. A chunk has 256 MiB at most, and is read from a disk; what a store has made by then it has
/// when it is asked again.
const SEAL_TIMEOUT: Duration = Duration::from_secs(120);

/// How a connection to an object store is made.
pub type Connect = Arc<dyn Fn(Endpoint) -> Connecting + Send + Sync>;
/// A connection that is being made.
pub type Connecting = Pin<Box<dyn Future<Output = Result<Channel, tonic::transport::Error>> + Send>>;

/// As a dialler connects to addresses that were noted when stores registered.
pub(crate) fn by(dialler: &Dialler) -> Connect {
    let dialler = dialler.clone();
    Arc::new(move |endpoint| {
        let dialler = dialler.clone();
        Box::pin(async move { dialler.connect_to_worker(endpoint, Named::Noted).await })
    })
}

/// A connection to the store at that address.
///
/// # Errors
/// Why there is none: nothing was sent.
pub(super) async fn link(connect: &Connect, address: &str) -> Result<WorkerClient<Channel>, Status> {
    let endpoint =
        tripod_dial::endpoint(address, Callee::Worker).map_err(|error| unreached(&reasons(&error)))?;
    let endpoint = endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIMEOUT)
        .tcp_nodelay(true);
    let connected = timeout(CONNECT_TIMEOUT, connect(endpoint)).await;
    let connected = connected.map_err(|_| unreached(&format!("no connection within {CONNECT_TIMEOUT:?}")))?;
    connected.map(WorkerClient::new).map_err(|error| unreached(&reasons(&error)))
}

/// Has the store seal, and gives what it says of each chunk.
///
/// # Errors
/// What it says of the call, or that it says nothing in time.
pub(super) async fn seal(
    client: &mut WorkerClient<Channel>,
    message: pb::SealMutableChunksRequest,
) -> Result<Vec<pb::SealedChunk>, Status> {
    let mut request = Request::new(message);
    request.set_timeout(SEAL_TIMEOUT);
    match timeout(SEAL_TIMEOUT, client.seal_mutable_chunks(request)).await {
        Ok(answered) => answered.map(|answer| answer.into_inner().chunks),
        Err(_) => Err(Status::deadline_exceeded(format!("no answer within {SEAL_TIMEOUT:?}"))),
    }
}

fn unreached(why: &str) -> Status {
    Status::unavailable(format!("the store is not reached: {why}"))
}

/// An error with everything behind it: a transport's own text says only that it failed.
fn reasons(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(reason) = cause {
        text = format!("{text}: {reason}");
        cause = reason.source();
    }
    text
}
