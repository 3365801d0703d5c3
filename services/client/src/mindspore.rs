//! The MindSpore clusters of one job, as operators look at them and scale them.

use std::time::Duration;

use bytes::Bytes;
use tripod_calls::Way;
use tripod_proto::bounds::ANSWER_ENCODED_BYTES_MAX;

use crate::call::Repeat;
use crate::client::Client;
use crate::error::Error;
use crate::wire;
use crate::wire::mindspore_client::MindsporeClient;
use crate::wire::mindspore_plan_request::Change;
use crate::wire::mindspore_scale_request::Change as Scale;

/// The longest wait at one node: shorter than the time after which another node is asked.
const WAIT_SLICE: Duration = Duration::from_secs(2);
/// The reason of a refusal of what is meant for a generation that is over.
const OUTDATED: &str = "mindspore-plan";

/// The MindSpore clusters of a job.
#[derive(Debug, Clone)]
pub struct Mindspore {
    client: Client,
    job: String,
}

impl Client {
    /// The MindSpore clusters of a job; an empty name means `default`.
    #[must_use]
    pub fn mindspore(&self, job: &str) -> Mindspore {
        Mindspore { client: self.clone(), job: job.to_owned() }
    }
}

impl Mindspore {
    /// How far they are.
    ///
    /// # Errors
    /// [`Error::Refused`] when there is no such job, else as any call.
    pub async fn state(&self) -> Result<wire::MindsporeState, Error> {
        let request = wire::MindsporeStateRequest { job: self.job.clone() };
        let ask = |way: Way| {
            let request = request.clone();
            async move { client(way).state(request).await }
        };
        self.client.caller().call("mindspore state", Repeat::Freely, ask).await
    }

    /// Who belongs to them.
    ///
    /// # Errors
    /// As [`Self::state`].
    pub async fn nodes(&self) -> Result<wire::MindsporeNodes, Error> {
        let request = wire::MindsporeNodesRequest { job: self.job.clone() };
        let ask = |way: Way| {
            let request = request.clone();
            async move { client(way).nodes(request).await }
        };
        self.client.caller().call("mindspore nodes", Repeat::Freely, ask).await
    }

    /// What nodes of the parameter server told all behind the event of that number. If there is nothing, waits for it: for
    /// `wait`, or for a shorter while that one node may take.
    ///
    /// # Errors
    /// As [`Self::state`].
    pub async fn events(&self, after: u64, wait: Duration) -> Result<wire::MindsporeEvents, Error> {
        let wait_ms = u64::try_from(wait.min(WAIT_SLICE).as_millis()).unwrap_or(u64::MAX);
        let request = wire::MindsporeEventsRequest { job: self.job.clone(), after, wait_ms };
        let ask = |way: Way| {
            let request = request.clone();
            async move { client(way).events(request).await }
        };
        self.client.caller().call("mindspore events", Repeat::Freely, ask).await
    }

    /// What a change would do now. Nothing is changed.
    ///
    /// # Errors
    /// [`Error::Refused`] as the change itself would be, else as any call.
    pub async fn plan(&self, change: &Change) -> Result<wire::MindsporePlan, Error> {
        let request = wire::MindsporePlanRequest { job: self.job.clone(), change: Some(change.clone()) };
        let ask = |way: Way| {
            let request = request.clone();
            async move { client(way).plan_scale(request).await }
        };
        self.client.caller().call("mindspore scale --plan", Repeat::Freely, ask).await
    }

    /// Begins to scale, once however often the network makes us send it; gives the generation that it begins.
    /// `generation`: that of the plan that it is to be.
    ///
    /// # Errors
    /// [`Error::Refused`] when the cluster is not ready, or of another generation, else as any call.
    pub async fn scale(&self, change: &Scale, generation: Option<u64>) -> Result<u64, Error> {
        let request = wire::MindsporeScaleRequest {
            job: self.job.clone(),
            change: Some(change.clone()),
            generation,
            stamp: None,
        };
        let what = "mindspore scale";
        let send = |way: Way, stamp: wire::Stamp| {
            let request = wire::MindsporeScaleRequest { stamp: Some(stamp), ..request.clone() };
            async move { client(way).scale(request).await }
        };
        let begun = self.client.stamped(what, send).await.map_err(|error| unless_own(what, error))?;
        Ok(begun.generation)
    }

    /// Takes back that the cluster scales out. `generation`: that of the scaling that it is to be.
    ///
    /// # Errors
    /// [`Error::Refused`] when there is nothing to take back, or the cluster is of another generation, else as any call.
    pub async fn abort(&self, generation: Option<u64>) -> Result<(), Error> {
        let what = "mindspore abort";
        let send = |way: Way, stamp: wire::Stamp| {
            let (job, stamp) = (self.job.clone(), Some(stamp));
            let request = wire::MindsporeAbortRequest { job, stamp, generation };
            async move { client(way).abort(request).await }
        };
        let aborted = self.client.stamped(what, send).await;
        aborted.map(|_| ()).map_err(|error| unless_own(what, error))
    }

    /// Tells all servers something; gives its number. `body`: the parameters of a new instance. `generation`: that of the
    /// cluster whose servers they are to be.
    ///
    /// # Errors
    /// [`Error::Refused`] when the cluster is not ready, or of another generation, else as any call.
    pub async fn switch(
        &self,
        switch: wire::MindsporeSwitch,
        body: Bytes,
        generation: Option<u64>,
    ) -> Result<u64, Error> {
        let what = "mindspore switch";
        let send = |way: Way, stamp: wire::Stamp| {
            let request = wire::MindsporeSwitchRequest {
                job: self.job.clone(),
                switch: switch.into(),
                body: body.clone(),
                stamp: Some(stamp),
                generation,
            };
            async move { client(way).switch(request).await }
        };
        let told = self.client.stamped(what, send).await.map_err(|error| unless_own(what, error))?;
        Ok(told.switch)
    }
}

/// What a refusal says, but of another generation if an earlier attempt, of which no node has heard the end, may be what
/// began that one.
fn unless_own(what: &'static str, error: Error) -> Error {
    match error {
        Error::Refused { after_unknown: true, reason, .. } if reason == OUTDATED => {
            Error::OutcomeUnknown { what, attempts: Vec::new() }
        }
        error => error,
    }
}

fn client(way: Way) -> MindsporeClient<Way> {
    MindsporeClient::new(way).max_decoding_message_size(ANSWER_ENCODED_BYTES_MAX)
}
