//! Saving the whole state as a file.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, timeout};
use tonic::{Status, Streaming};
use tripod_calls::Way;

use crate::call::Repeat;
use crate::client::Client;
use crate::error::{Attempt, Error, Phase};
use crate::wire;
use crate::wire::save_part::Part;
use crate::wire::snapshots_client::SnapshotsClient;

const WHAT: &str = "snapshot save";
/// How long a node may say nothing. It reads all of its state before the first byte.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// A snapshot that is coming in. It is whole when [`Self::next`] has given `None`, and its reader has
/// verified it.
#[derive(Debug)]
pub struct Download {
    begin: wire::SaveBegin,
    parts: Streaming<wire::SavePart>,
    begun: Instant,
}

impl Client {
    /// Asks the nodes in turn for a snapshot, until one begins to send. With `local` a node sends what it
    /// has, without asking the leader whether that is all.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn save_snapshot(&self, local: bool) -> Result<Download, Error> {
        let begun = Instant::now();
        let save = move |way: Way| async move {
            SnapshotsClient::new(way.apart()).save(wire::SaveRequest { local }).await
        };
        let mut parts = self.caller().call(WHAT, Repeat::Freely, save).await?;
        match next(&mut parts).await.map_err(|cause| broken(0, begun, cause))? {
            Some(Part::Begin(begin)) => Ok(Download { begin, parts, begun }),
            _ => Err(broken(0, begun, "its first message does not tell what it is of".into())),
        }
    }
}

impl Download {
    /// What it is of.
    #[must_use]
    pub fn begin(&self) -> &wire::SaveBegin {
        &self.begin
    }

    /// The next bytes of the file; `None` behind the last.
    ///
    /// # Errors
    /// [`Error::Unavailable`]: the node or the connection is gone, and what came so far is of no use.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let part = next(&mut self.parts).await;
        match part.map_err(|cause| self.broken(cause))? {
            None => Ok(None),
            Some(Part::Data(data)) => Ok(Some(data)),
            Some(Part::Begin(_)) => Err(self.broken("it begins a second time".into())),
        }
    }

    fn broken(&self, cause: String) -> Error {
        broken(self.begin.node_id, self.begun, cause)
    }
}

async fn next(parts: &mut Streaming<wire::SavePart>) -> Result<Option<Part>, String> {
    let message = timeout(SILENCE_MAX, parts.message()).await;
    let message = message.map_err(|_| format!("nothing came for {} s", SILENCE_MAX.as_secs()))?;
    match message.map_err(|status| cause_of(&status))? {
        None => Ok(None),
        Some(part) => part.part.map(Some).ok_or_else(|| "a message of it is empty".to_owned()),
    }
}

/// The outer text of a broken connection only says "transport error".
fn cause_of(status: &Status) -> String {
    let Some(mut root) = std::error::Error::source(status) else { return status.message().to_owned() };
    while let Some(source) = root.source() {
        root = source;
    }
    root.to_string()
}

fn broken(node: u64, begun: Instant, cause: String) -> Error {
    let endpoint = if node == 0 { "the node that answered".to_owned() } else { format!("node {node}") };
    let attempts = vec![Attempt { endpoint, phase: Phase::Call, cause }];
    Error::Unavailable { what: WHAT, waited: begun.elapsed(), attempts }
}
