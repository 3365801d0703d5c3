//! A frame, sent to the cluster until it is answered.

use tokio::time::timeout;
use tripod_mindspore_wire::{Mark, Word};
use tripod_port::{Account, CallerConnection, Short};

use super::Relay;
use super::ended::Ended;
use super::incoming::Held;
use super::open::{NoAnswer, Open};
use super::passed::Passed;
use super::place::{self, NoPlace};
use crate::calls::Repeat;
use crate::sessions::Pace;
use crate::upstream::{Doubt, Link};

/// The way of one client's frames to the cluster.
pub(super) struct Way {
    relay: Relay,
    account: Account,
    /// To the node to which the last frame went.
    open: Option<Open>,
    /// The last attempt may have been executed.
    was_sent: bool,
}

/// What came of the attempts with one stamp.
enum Outcome<F> {
    Answer(Held<F>),
    /// The client is to hear nothing.
    Silent,
    /// The session of the stamp is not known any more. `is_certain`: no attempt was executed.
    SessionGone {
        is_certain: bool,
    },
}

/// Why an attempt brought no answer.
enum Unanswered {
    /// There is another link now.
    Left,
    /// The node in use does not serve the job.
    Closed(String),
    Failed(String),
    Short(Short),
}

impl Way {
    pub(super) fn new(relay: Relay, account: Account) -> Self {
        Self { relay, account, open: None, was_sent: false }
    }

    /// Sends a frame of this connection until a node has answered it; `None` if that answer is none. Dropping the future gives
    /// the frame up.
    ///
    /// # Errors
    /// The connection of the client must end.
    pub(super) async fn answer<F: Passed>(
        &mut self,
        frame: &F,
        caller: CallerConnection,
    ) -> Result<Option<Held<F>>, Ended> {
        let upstream = self.relay.upstream.clone();
        let limit = upstream.timing().max_outage;
        tokio::select! {
            biased;
            answered = timeout(limit, self.until_answered(frame, caller)) => answered.unwrap_or_else(|_| {
                Err(Ended::GivenUp(format!("no node has answered a message for {} s", limit.as_secs())))
            }),
            given_up = upstream.given_up() => Err(Ended::GivenUp(given_up.message().to_owned())),
        }
    }

    async fn until_answered<F: Passed>(
        &mut self,
        frame: &F,
        caller: CallerConnection,
    ) -> Result<Option<Held<F>>, Ended> {
        let repeat = frame.repeat()?;
        loop {
            let flight = match repeat {
                Repeat::Free => None,
                Repeat::Stamped | Repeat::Recognised => {
                    let taken = self.relay.sessions.take(caller, Pace::Prompt).await;
                    Some(taken.map_err(|refused| Ended::NotServed(refused.message().to_owned()))?)
                }
            };
            let stamp = flight.as_ref().map(|flight| flight.stamp().of_frame());
            let is_certain = match self.attempts(frame, Mark { stamp }).await? {
                Outcome::Answer(answer) => return Ok(Some(answer)),
                Outcome::Silent => return Ok(None),
                Outcome::SessionGone { is_certain } => is_certain,
            };
            // A node that misses a session where none was named says nothing that could be understood.
            flight.ok_or(Ended::Unknown)?.lost();
            if !is_certain && repeat != Repeat::Recognised {
                return Err(Ended::Unknown);
            }
        }
    }

    /// Attempts with one stamp.
    async fn attempts<F: Passed>(&mut self, frame: &F, mark: Mark) -> Result<Outcome<F>, Ended> {
        let bytes = frame.attempt(mark)?;
        let _held = self.account.call(bytes.len() as u64)?;
        let upstream = self.relay.upstream.clone();
        let mut pause = upstream.timing().pause_min;
        let mut is_certain = true;
        loop {
            let link = upstream.link().await;
            let attempt = tokio::select! {
                // An answer that is here counts, even if the link is left at the same moment.
                biased;
                attempt = self.attempt::<F>(&link, &bytes) => attempt,
                () = upstream.left(&link) => Err(Unanswered::Left),
            };
            let unanswered = match attempt {
                Ok(answer) => match answer.inner.told() {
                    None => return Ok(Outcome::Answer(answer)),
                    Some(Word::Silent) => return Ok(Outcome::Silent),
                    Some(Word::SessionGone) => return Ok(Outcome::SessionGone { is_certain }),
                    Some(Word::Unknown) => return Err(Ended::Unknown),
                    Some(Word::Refused) => return Err(Ended::Refused),
                },
                Err(unanswered) => unanswered,
            };
            self.open = None;
            is_certain &= !self.was_sent;
            match unanswered {
                Unanswered::Short(short) => return Err(short.into()),
                Unanswered::Left => {}
                Unanswered::Closed(why) => {
                    self.relay.tell_unserved(&why);
                    upstream.pause(&link, &mut pause).await;
                }
                Unanswered::Failed(why) => {
                    tracing::debug!(
                        address = link.address,
                        why,
                        "a message of a MindSpore node is not answered"
                    );
                    upstream.doubt(&link, Doubt::Failed);
                    upstream.pause(&link, &mut pause).await;
                }
            }
        }
    }

    async fn attempt<F: Passed>(&mut self, link: &Link, bytes: &[u8]) -> Result<Held<F>, Unanswered> {
        self.was_sent = false;
        let mut open = match self.open.take() {
            Some(open) if open.link == link.id => open,
            _ => connect(&self.relay, link).await?,
        };
        self.was_sent = true;
        match open.exchange(bytes, &self.account).await {
            Ok(answer) => {
                self.open = Some(open);
                Ok(answer)
            }
            Err(NoAnswer::Short(short)) => Err(Unanswered::Short(short)),
            Err(lost) => Err(Unanswered::Failed(lost.to_string())),
        }
    }
}

async fn connect(relay: &Relay, link: &Link) -> Result<Open, Unanswered> {
    let Relay { upstream, job_name, .. } = relay;
    let address = match place::find(link, job_name, upstream.timing().answer_limit).await {
        Ok(address) => address,
        Err(NoPlace::Closed(why)) => return Err(Unanswered::Closed(why)),
        Err(NoPlace::Unanswered(why)) => return Err(Unanswered::Failed(why)),
    };
    let stream = upstream.plain(&address).await;
    let stream = stream.map_err(|error| Unanswered::Failed(format!("{address}: {error}")))?;
    Ok(Open::new(link.id, stream))
}
