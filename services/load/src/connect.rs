//! Channels: the same settings for every system that is measured.

use std::time::Duration;

use anyhow::Context as _;
use tokio::time::Instant;
use tonic::transport::{Channel, Endpoint};
use tripod_calls::{CallStream, Hello};
use tripod_dial::Callee;

/// How long one attempt to open a TCP connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);
/// Pause between attempts of [`connect_within`].
const RETRY_PAUSE: Duration = Duration::from_millis(50);
/// Bytes in flight per stream: one value of the largest benchmark fits without waiting.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
/// Bytes in flight per connection, for all its streams.
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;

/// The endpoint of `address` (`HOST:PORT`) with the settings that all measured systems share.
///
/// # Errors
/// The address is not `HOST:PORT`.
pub fn endpoint(address: &str) -> anyhow::Result<Endpoint> {
    Ok(tripod_dial::endpoint(address, Callee::Measured)
        .with_context(|| format!("{address} is not HOST:PORT"))?
        .tcp_nodelay(true)
        .connect_timeout(CONNECT_TIMEOUT)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES))
}

/// A channel that connects when it is first used, and again after a loss.
///
/// # Errors
/// The address is not `HOST:PORT`.
pub fn lazy(address: &str) -> anyhow::Result<Channel> {
    Ok(endpoint(address)?.connect_lazy())
}

/// A stream of calls over a connection, which carries nothing else.
///
/// # Errors
/// Never, as nothing is said of all calls.
pub fn stream(channel: &Channel) -> anyhow::Result<CallStream> {
    CallStream::open(channel.clone(), &Hello::default()).context("a stream of calls")
}

/// An open connection to `address`, tried again until `patience` is over: a job's port opens a moment
/// after the job exists.
///
/// # Errors
/// The last failure, when the time is over.
pub async fn connect_within(address: &str, patience: Duration) -> anyhow::Result<Channel> {
    let endpoint = endpoint(address)?;
    let deadline = Instant::now() + patience;
    loop {
        match endpoint.connect().await {
            Ok(channel) => return Ok(channel),
            Err(error) if Instant::now() + RETRY_PAUSE >= deadline => {
                return Err(error).with_context(|| format!("no connection to {address} within {patience:?}"));
            }
            Err(_) => tokio::time::sleep(RETRY_PAUSE).await,
        }
    }
}
