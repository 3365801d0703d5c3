//! The feature level, and what every node supports.

use std::time::Duration;

use tripod_calls::Way;

use crate::call::{Caller, Repeat};
use crate::client::Client;
use crate::config::Config;
use crate::error::Error;
use crate::wire;
use crate::wire::levels_client::LevelsClient;

impl Client {
    /// The level, and what every member says that it supports, as any node asks them.
    ///
    /// # Errors
    /// As any call.
    pub async fn levels(&self) -> Result<wire::LevelsReport, Error> {
        let show = |way: Way| async move { LevelsClient::new(way).show(wire::ShowLevelsRequest {}).await };
        self.caller().call("level show", Repeat::Freely, show).await
    }

    /// Lowers the level, or leaves it where it is, and keeps it from being raised. The node at `leader` must lead.
    ///
    /// # Errors
    /// [`Error::Refused`] with the reason, else as any call. The same may be sent again.
    pub async fn pin_level(
        leader: &str,
        request: &wire::PinLevelRequest,
        timeout: Duration,
    ) -> Result<wire::LevelsReport, Error> {
        let pin = |way: Way| {
            let request = request.clone();
            async move { LevelsClient::new(way).pin(request).await }
        };
        at(leader, timeout)?.call("level pin", Repeat::Freely, pin).await
    }

    /// Lets the level be raised again. The node at `leader` must lead.
    ///
    /// # Errors
    /// [`Error::Refused`] with the reason, else as any call. The same may be sent again.
    pub async fn unpin_level(
        leader: &str,
        request: &wire::UnpinLevelRequest,
        timeout: Duration,
    ) -> Result<wire::LevelsReport, Error> {
        let unpin = |way: Way| {
            let request = request.clone();
            async move { LevelsClient::new(way).unpin(request).await }
        };
        at(leader, timeout)?.call("level unpin", Repeat::Freely, unpin).await
    }
}

/// Calls of one node and no other.
fn at(endpoint: &str, timeout: Duration) -> Result<Caller, Error> {
    Caller::new(&Config { endpoints: vec![endpoint.to_owned()], timeout }, None)
}
