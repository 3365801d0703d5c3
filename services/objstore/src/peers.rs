//! Connections to other stores.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tonic::transport::Channel;
use tripod_dial::{Allow, Callee, Dialler, Named, Rule};
use tripod_proto::ray::obj_store_client::ObjStoreClient;

use crate::callers::FLAG;
use crate::chunks::CHUNK_BYTES_MAX;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Connections that are kept. A store talks to those that it fetches from; beyond this all are made anew.
const CONNECTIONS_MAX: usize = 256;
/// What may be under way to us before it is read, per stream and per connection, in bytes.
pub(crate) const STREAM_WINDOW_BYTES: u32 = 8 << 20;
pub(crate) const CONNECTION_WINDOW_BYTES: u32 = 32 << 20;
/// HTTP/2 frames that others may send us: with the default of 16 KiB most of the time goes into frames.
pub(crate) const FRAME_BYTES_MAX: u32 = 1 << 20;
/// A chunk and the fields around it.
const MESSAGE_BYTES_MAX: usize = CHUNK_BYTES_MAX as usize + 4096;

/// Connections to other stores, kept until one fails.
#[derive(Debug)]
pub(crate) struct Peers {
    dialler: Dialler,
    channels: Mutex<HashMap<String, Channel>>,
}

impl Peers {
    /// `allow` has those addresses that stores are at and that are connected to nowhere else.
    pub(crate) fn new(allow: Allow) -> Self {
        let rule = Rule { allow, flag: FLAG, here_only: false };
        Self { dialler: Dialler::new(rule), channels: Mutex::default() }
    }

    /// # Errors
    /// Why there is no connection, for people.
    pub(crate) async fn client(&self, address: &str) -> Result<ObjStoreClient<Channel>, String> {
        let channel = self.channel(address).await?;
        Ok(ObjStoreClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX))
    }

    /// The same, whatever is asked of that store.
    ///
    /// # Errors
    /// As [`Self::client`].
    pub(crate) async fn channel(&self, address: &str) -> Result<Channel, String> {
        let kept = self.channels.lock().get(address).cloned();
        match kept {
            Some(channel) => Ok(channel),
            None => self.connect(address).await,
        }
    }

    /// Forgets a connection that failed.
    pub(crate) fn forget(&self, address: &str) {
        self.channels.lock().remove(address);
    }

    async fn connect(&self, address: &str) -> Result<Channel, String> {
        let endpoint = tripod_dial::endpoint(address, Callee::Worker)
            .map_err(|_| format!("`{address}` is no address"))?
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_frame_size(FRAME_BYTES_MAX);
        let connected = self.dialler.connect_to_worker(endpoint, Named::Ordered).await;
        let channel = connected.map_err(|error| root_cause(&error))?;
        let mut channels = self.channels.lock();
        if channels.len() >= CONNECTIONS_MAX {
            channels.clear();
        }
        channels.insert(address.to_owned(), channel.clone());
        Ok(channel)
    }
}

/// What is at the bottom of an error: the outer texts only say "transport error".
pub(crate) fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    std::iter::successors(Some(error), |error| error.source())
        .last()
        .map(ToString::to_string)
        .unwrap_or_default()
}
