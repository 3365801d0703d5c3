//! Who is missing in a job.

use std::time::Duration;

use tonic::Code;
use tripod_calls::Way;
use tripod_proto::bounds::ANSWER_ENCODED_BYTES_MAX;

use crate::call::Repeat;
use crate::client::Client;
use crate::error::Error;
use crate::wire;
use crate::wire::diagnose_client::DiagnoseClient;

impl Client {
    /// What is wrong with a job, as all nodes together know it; one of them judges, also without a leader. `all`: as many lines
    /// as there are. `after`: how long somebody must have waited before anybody is blamed for it, if not as each rule has it.
    /// `None`: there is no job of that name.
    ///
    /// # Errors
    /// As any call.
    pub async fn diagnose(
        &self,
        name: &str,
        all: bool,
        after: Option<Duration>,
    ) -> Result<Option<wire::DiagnoseJobResponse>, Error> {
        let after_ms = after.map(|after| u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
        let request = wire::DiagnoseJobRequest { name: name.to_owned(), all, after_ms };
        let diagnose = |way: Way| {
            let request = request.clone();
            async move {
                DiagnoseClient::new(way)
                    .max_decoding_message_size(ANSWER_ENCODED_BYTES_MAX)
                    .job(request)
                    .await
            }
        };
        match self.caller().call("diagnose", Repeat::Freely, diagnose).await {
            Ok(found) => Ok(Some(found)),
            Err(Error::Refused { code: Code::NotFound, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
