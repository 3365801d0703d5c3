//! Writes that take effect once however often the network makes us send them.

use std::future::Future;

use tonic::{Response, Status};
use tripod_calls::Way;

use crate::call::Repeat;
use crate::client::Client;
use crate::error::Error;
use crate::wire;

/// How often a write that was certainly not executed begins again with a new stamp.
const FRESH_STAMPS: u32 = 3;

impl Client {
    /// Sends a write with a stamp, and begins again with a new one only when the cluster says that it
    /// was not executed and no earlier attempt can have been.
    pub(crate) async fn stamped<T, F, Fut>(&self, what: &'static str, send: F) -> Result<T, Error>
    where
        F: Fn(Way, wire::Stamp) -> Fut,
        Fut: Future<Output = Result<Response<T>, Status>>,
    {
        let mut left = FRESH_STAMPS;
        loop {
            let ticket = self.stamp().await?;
            let stamp = ticket.stamp();
            let error = match self.caller().call(what, Repeat::SameStamp, |c| send(c, stamp)).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let expired = error.has_reason("session-expired");
            if expired {
                self.session_lost(ticket.session());
            }
            let again = expired || error.has_reason("job-replaced");
            left -= 1;
            if !again || left == 0 {
                return Err(error);
            }
            if matches!(error, Error::Refused { after_unknown: true, .. }) {
                // The session's memory is gone, and with it the answer to an earlier attempt.
                return Err(Error::OutcomeUnknown { what, attempts: Vec::new() });
            }
        }
    }
}
