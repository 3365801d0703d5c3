//! One attempt at one node, and what its end means.

use std::error::Error as _;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use tonic::{Code, Response, Status};
use tripod_calls::Way;
use tripod_client::Error;
use tripod_load::connect;
use tripod_proto::metadata::{OUTAGE, OUTAGE_UNKNOWN};

use super::setting::{Endpoint, Setting};
use tripod_checkers::history::{NodeId, Outcome, Refusal, Reply};

/// Metadata key of `tripod.v1`'s word for a refusal.
const REASON: &str = "tripod-reason";
/// The words of refusals that say nothing of the state: nothing was executed.
const NOT_EXECUTED: [&str; 3] = ["no-leader", "stopping", "overloaded"];
const OUTCOME_UNKNOWN: &str = "outcome-unknown";

/// What one attempt came to.
#[derive(Debug)]
pub(super) enum Attempt<T> {
    Answer(T),
    /// The domain said no.
    Refused(Status),
    /// The node said that it did nothing.
    NotExecuted(String),
    /// It may have been executed, or may be yet.
    Unknown(String),
}

/// A client's connections, one to each node, of which it uses one until that fails. For as long as it lives, its calls go
/// each by itself, or by streams, as chance decides.
#[derive(Debug)]
pub(super) struct Wire {
    /// Nodes, and then agents.
    endpoints: Arc<[Endpoint]>,
    nodes: usize,
    place: usize,
    by_streams: bool,
    way: Way,
}

impl Wire {
    /// Begins at a node that chance decides. Connects with the first call.
    pub(super) fn new(setting: &Setting, random: &mut StdRng) -> Self {
        Self::to(setting.endpoints.clone(), setting.endpoints.len(), random)
    }

    /// The same for calls of job `default`, which agents take, too, if there are some.
    pub(super) fn also_by_agents(setting: &Setting, random: &mut StdRng) -> Self {
        if setting.agents.is_empty() {
            return Self::new(setting, random);
        }
        let all = setting.endpoints.iter().chain(&setting.agents).cloned().collect();
        Self::to(all, setting.endpoints.len(), random)
    }

    fn to(endpoints: Arc<[Endpoint]>, nodes: usize, random: &mut StdRng) -> Self {
        let place = random.random_range(0..endpoints.len());
        let by_streams = random.random_bool(0.5);
        let way = way(&endpoints[place], by_streams);
        Self { endpoints, nodes, place, by_streams, way }
    }

    /// The node that the next attempt goes to.
    pub(super) fn node(&self) -> NodeId {
        self.endpoints[self.place].node
    }

    /// Whether the next attempt goes to an agent, which passes on calls of the dialects only.
    pub(super) fn is_at_agent(&self) -> bool {
        self.place >= self.nodes
    }

    /// Goes to the next node, over a new connection.
    pub(super) fn move_on(&mut self) {
        self.place = (self.place + 1) % self.endpoints.len();
        self.way = way(&self.endpoints[self.place], self.by_streams);
    }

    /// Calls the present node. After anything but an answer of the domain, the next attempt goes to another.
    pub(super) async fn attempt<T, F>(&mut self, limit: Duration, call: impl FnOnce(Way) -> F) -> Attempt<T>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let ended = match tokio::time::timeout(limit, call(self.way.clone())).await {
            Ok(Ok(answer)) => Attempt::Answer(answer.into_inner()),
            Ok(Err(status)) => meaning(status),
            Err(_) => Attempt::Unknown(format!("no answer within {limit:?}")),
        };
        if matches!(ended, Attempt::NotExecuted(_) | Attempt::Unknown(_)) {
            self.move_on();
        }
        ended
    }
}

fn way(endpoint: &Endpoint, by_streams: bool) -> Way {
    let channel = connect::lazy(&endpoint.address).expect("addresses of our own ports are addresses");
    let stream = by_streams.then(|| connect::stream(&channel).expect("nothing is said of all calls"));
    Way::new(channel, stream)
}

/// What a status says about the call's effect.
fn meaning<T>(status: Status) -> Attempt<T> {
    let word = |key| status.metadata().get(key).and_then(|value| value.to_str().ok()).map(str::to_owned);
    if status.source().is_some() {
        return Attempt::Unknown(format!("connection: {}", status.message()));
    }
    let told = match (word(OUTAGE), word(REASON)) {
        (Some(outage), _) if outage == OUTAGE_UNKNOWN => Some(false),
        (Some(_), _) => Some(true),
        (None, Some(reason)) if reason == OUTCOME_UNKNOWN => Some(false),
        (None, Some(reason)) => NOT_EXECUTED.contains(&reason.as_str()).then_some(true),
        (None, None) => None,
    };
    let text = format!("{:?}: {}", status.code(), status.message());
    match told {
        Some(true) => return Attempt::NotExecuted(text),
        Some(false) => return Attempt::Unknown(text),
        None => {}
    }
    // The domain's own words have a payload or a reason. Without one, these come from the transport.
    let bare = status.details().is_empty() && word(REASON).is_none();
    let of_the_transport = matches!(
        status.code(),
        Code::Cancelled | Code::Unknown | Code::DeadlineExceeded | Code::Unavailable | Code::Internal
    );
    if bare && of_the_transport { Attempt::Unknown(text) } else { Attempt::Refused(status) }
}

/// What the client library's error says, with the refusals that tell something of the state.
pub(super) fn outcome_of(error: &Error) -> Outcome {
    let refused = |refusal| Outcome::Ok(Reply::Refused(refusal));
    match error {
        Error::Unavailable { .. } | Error::Config(_) => Outcome::Fail(error.to_string()),
        Error::OutcomeUnknown { .. } => Outcome::Unknown(error.to_string()),
        // The stamp made the repetition's refusal that of the first execution.
        Error::Refused { reason, .. } if reason == "key-exists" => refused(Refusal::Exists),
        Error::Refused { reason, .. } if reason == "version-mismatch" => {
            refused(Refusal::VersionMismatch { current: None })
        }
        Error::Refused { after_unknown: true, .. } => Outcome::Unknown(error.to_string()),
        Error::Refused { .. } => Outcome::Fail(error.to_string()),
    }
}

impl<T> Attempt<T> {
    /// The same with another answer.
    pub(super) fn map<U>(self, change: impl FnOnce(T) -> U) -> Attempt<U> {
        match self {
            Self::Answer(told) => Attempt::Answer(change(told)),
            Self::Refused(status) => Attempt::Refused(status),
            Self::NotExecuted(why) => Attempt::NotExecuted(why),
            Self::Unknown(why) => Attempt::Unknown(why),
        }
    }

    /// For calls that are sent once: `answer` and `refused` know what the domain's words mean.
    pub(super) fn outcome(
        self,
        answer: impl FnOnce(T) -> Result<Reply, String>,
        refused: impl FnOnce(&Status) -> Option<Refusal>,
    ) -> Outcome {
        match self {
            Self::Answer(told) => match answer(told) {
                Ok(reply) => Outcome::Ok(reply),
                Err(nonsense) => Outcome::Unknown(nonsense),
            },
            Self::Refused(status) => match refused(&status) {
                Some(refusal) => Outcome::Ok(Reply::Refused(refusal)),
                None => Outcome::Fail(format!("{:?}: {}", status.code(), status.message())),
            },
            Self::NotExecuted(why) => Outcome::Fail(why),
            Self::Unknown(why) => Outcome::Unknown(why),
        }
    }
}
