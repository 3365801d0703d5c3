//! The task of one node: it has the connection, tells the node one order at a time, and waits for its answers.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::sleep;
use tripod_state::ids::JobId;
use tripod_state::mindspore::Member;
use tripod_state::mindspore::cluster::{Echo, Incarnation, Order, Recipient};

use super::Answered;
use super::assignment::{Assigned, Assignment};
use super::trouble::Trouble;
use crate::calls::{Answer, Calls, Connection, Failed, address};
use crate::engine::leader_term::LeaderTerm;
use crate::pulse::PeerMemory;

/// How long an answer takes. A node that takes longer is waited for on, and takes no turn of others meanwhile.
const ANSWER_TIME: Duration = Duration::from_secs(3);
/// After so long the connection is given up, and the node is told again on another one.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// The same for what makes a node begin anew when it is told again: as long as a cluster may take to scale. A node that is
/// gone is noticed earlier, by its heartbeats.
const SCALE_SILENCE_MAX: Duration = Duration::from_secs(300);

pub(super) struct NodeTask {
    calls: Calls,
    heard: Arc<PeerMemory>,
    job: JobId,
    number: u64,
    member: Member,
    incarnation: Incarnation,
    address: String,
    assigned: watch::Receiver<Assigned>,
    answers: mpsc::Sender<Answered>,
    connection: Option<Connection>,
    /// How many answers this task has passed on.
    answered: u64,
    trouble: Trouble,
}

/// What came of an attempt.
enum Outcome {
    Told,
    /// The order need not be carried out any more.
    Over,
    Failed(Failed),
}

impl NodeTask {
    pub(super) fn new(
        led: &LeaderTerm,
        (number, recipient): (u64, Recipient),
        assigned: watch::Receiver<Assigned>,
        answers: mpsc::Sender<Answered>,
    ) -> Self {
        Self {
            calls: led.calls.clone(),
            heard: Arc::clone(&led.heard),
            job: led.job,
            number,
            member: recipient.member,
            incarnation: recipient.incarnation,
            address: address(&recipient.ip, recipient.port),
            assigned,
            answers,
            connection: None,
            answered: 0,
            trouble: Trouble::of(&recipient, led.complaints.clone()),
        }
    }

    /// Runs until nobody has orders for the node any more.
    pub(super) async fn run(mut self) {
        while let Some((order, assignment)) = self.next().await {
            let was_kept = self.connection.is_some();
            match self.tell(order, &assignment).await {
                Outcome::Over => {}
                Outcome::Told => {
                    self.trouble.end();
                    self.answered += 1;
                    let echo = Echo { member: self.member, incarnation: self.incarnation, order };
                    if self.answers.send(Answered { task: self.number, echo }).await.is_err() {
                        return;
                    }
                }
                Outcome::Failed(failed) if was_kept && failed.may_be_old() => self.connection = None,
                Outcome::Failed(failed) => {
                    self.connection = None;
                    self.trouble.note(order, &failed);
                    self.trouble.rest().await;
                }
            }
        }
    }

    /// Waits for an order. `None`: there will be none.
    async fn next(&mut self) -> Option<(Order, Arc<Assignment>)> {
        loop {
            // What was assigned last stays there when nobody assigns anything any more.
            self.assigned.has_changed().ok()?;
            let now = self.assigned.borrow_and_update().for_one_with(self.answered);
            if let Some(assignment) = now
                && let Some(order) = assignment.order()
            {
                return Some((order, assignment));
            }
            let (connection, assigned) = (&mut self.connection, &mut self.assigned);
            let ended = async {
                match connection {
                    Some(connection) => connection.ended().await,
                    None => pending().await,
                }
            };
            tokio::select! {
                changed = assigned.changed() => changed.ok()?,
                failed = ended => {
                    tracing::debug!(member = self.member.0, %failed, "a connection to a MindSpore node ends");
                    self.connection = None;
                }
            }
        }
    }

    /// What the program of a server says is for the operator who waits for it.
    fn note(&self, order: Order, answer: Answer) {
        if let Order::Switch { switch } = order {
            let said = (answer.meta.rank_id, answer.payload);
            self.heard.switches().note(self.job, switch, said);
        }
    }

    async fn tell(&mut self, order: Order, assignment: &Assignment) -> Outcome {
        let call = &assignment.first;
        let mut turn = Some(self.calls.turn(self.trouble.standing()).await);
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => match self.calls.connect(&self.address).await {
                Ok(connection) => connection,
                Err(failed) => return Outcome::Failed(failed),
            },
        };
        if !self.assigned.borrow().has(order) {
            self.connection = Some(connection);
            return Outcome::Over;
        }
        let request = match connection.send(call).await {
            Ok(request) => request,
            Err(failed) => return Outcome::Failed(failed),
        };
        let connection = self.connection.insert(connection);
        if !call.is_answered {
            return Outcome::Told;
        }
        let silence_max = match order {
            Order::Scale { .. } => SCALE_SILENCE_MAX,
            _ => SILENCE_MAX,
        };
        let (late, given_up) = (sleep(ANSWER_TIME), sleep(silence_max));
        tokio::pin!(late, given_up);
        loop {
            let seconds = silence_max.as_secs();
            tokio::select! {
                biased;
                answer = connection.answer(call, request) => match answer {
                    Ok(answer) => {
                        self.note(order, answer);
                        return Outcome::Told;
                    }
                    Err(failed) => return Outcome::Failed(failed),
                },
                changed = self.assigned.changed() => {
                    // Nobody is there any more, or this is over; an answer that still comes is nobody's.
                    if changed.is_err() || !self.assigned.borrow_and_update().has(order) {
                        return Outcome::Over;
                    }
                }
                () = &mut late, if turn.is_some() => {
                    turn = None;
                    self.trouble.note(order, &Failed::Silent { seconds: ANSWER_TIME.as_secs() });
                }
                () = &mut given_up => return Outcome::Failed(Failed::Silent { seconds }),
            }
        }
    }
}
