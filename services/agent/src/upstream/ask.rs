//! The agent's own questions to the cluster.

use std::error::Error as _;
use std::future::Future;

use tonic::{Code, Response, Status};
use tripod_dial::Shown;
use tripod_proto::metadata;

use super::{Doubt, Upstream, Wire, root_cause};

impl Upstream {
    /// Asks until somebody answers: for questions that may be asked twice. Waits as long as it takes.
    ///
    /// # Errors
    /// The cluster's refusal.
    pub(crate) async fn ask<T, F, Fut>(&self, what: &'static str, send: F) -> Result<T, Status>
    where
        F: Fn(Wire) -> Fut,
        Fut: Future<Output = Result<Response<T>, Status>>,
    {
        let mut pause = self.timing().pause_min;
        loop {
            let link = self.link().await;
            let shown = Shown::now();
            let answer = tokio::select! {
                answer = send(link.wire.clone()) => answer,
                () = self.left(&link) => continue,
            };
            match answer {
                Ok(answer) => {
                    self.heard();
                    return Ok(answer.into_inner());
                }
                Err(status) if is_own_trouble(&status) || is_outdated(&status, &shown) => {
                    let cause = root_cause(&status);
                    tracing::debug!(what, address = link.address, cause, "question without answer");
                    self.doubt(&link, Doubt::Failed);
                    self.pause(&link, &mut pause).await;
                }
                Err(status) => return Err(status),
            }
        }
    }
}

/// Whether a status tells only that a token has run out in whose place there is another one.
fn is_outdated(status: &Status, shown: &Shown) -> bool {
    status.code() == Code::Unauthenticated && shown.is_replaced()
}

/// Metadata key of the machine-readable word for a refusal by `tripod.v1`, and the word of a node that
/// has too much to do.
const REASON: &str = "tripod-reason";
const OVERLOADED: &str = "overloaded";

/// Whether a status tells of the node or of the way to it, and not of what was asked.
pub(crate) fn is_own_trouble(status: &Status) -> bool {
    status.source().is_some()
        || status.metadata().contains_key(metadata::OUTAGE)
        || status.metadata().get(REASON).is_some_and(|reason| reason == OVERLOADED)
        || matches!(
            status.code(),
            Code::Unavailable | Code::Cancelled | Code::DeadlineExceeded | Code::Unknown
        )
}
