//! Commands, exactly once: each is stamped with its place in this gateway's session and sent again,
//! with the same stamp, until there is a reply.

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tripod_port::CallerAddress;
use tripod_raft::{Applied, ProposeError, command_bytes};
use tripod_state::ids::NodeId;
use tripod_state::session::Owner;
use tripod_state::{Answer, Command, Envelope, Fault, State, mars, mindspore, ray, session};

use crate::backend::{Replica, look};
use crate::calls::Calls;
use crate::clock::millis;
use crate::fairness::{self, Turns};
use crate::hold::{Hold, ToChange};
use crate::opening::{self, IdWidth};
use crate::outage::Outage;
use crate::proposers::signed;
use crate::session::{Flight, Session};

/// How often a client's session is tried to be opened: each time but the first is for a reply that was lost.
const OPENINGS_MAX: usize = 16;

/// What submits the commands of one node.
pub(crate) struct Submitter {
    /// Whose session it is.
    node: NodeId,
    backend: Arc<dyn Replica>,
    calls: Arc<Calls>,
    patience: Duration,
    turns: Turns,
    session: Mutex<Option<Arc<Session>>>,
    /// The session of before the level had owned ones, until none of its commands is under way.
    retired: Mutex<Option<Arc<Session>>>,
    /// Held while a session is being opened, so that a crowd opens one.
    opening: tokio::sync::Mutex<()>,
}

impl Submitter {
    pub(crate) fn new(
        node: NodeId,
        backend: Arc<dyn Replica>,
        calls: Arc<Calls>,
        patience: Duration,
    ) -> Self {
        Self {
            node,
            backend,
            calls,
            patience,
            turns: Turns::new(fairness::PROPOSALS),
            session: Mutex::default(),
            retired: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
        }
    }

    pub(crate) fn hold(&self) -> Hold<'_> {
        Hold::new(self.backend.as_ref(), &self.calls, self.patience)
    }

    /// The turns of clients' commands.
    pub(crate) fn turns(&self) -> &Turns {
        &self.turns
    }

    /// Submits a command in this gateway's session.
    pub(crate) fn submit(&self, command: Command) -> impl Future<Output = Result<Applied, Outage>> + Send {
        self.submit_within(command, self.patience)
    }

    /// The same with another patience.
    pub(crate) async fn submit_within(
        &self,
        command: Command,
        patience: Duration,
    ) -> Result<Applied, Outage> {
        let mut envelope = Envelope { stamp: None, command };
        if let Some(refused) = self.too_long(&envelope.command) {
            return Ok(refused);
        }
        envelope.command = self.fit(signed(envelope.command));
        let mut hold = Hold::new(self.backend.as_ref(), &self.calls, patience);
        if is_repeatable(&envelope.command) {
            let mut turn = hold.turn_to_change(&self.turns, || command_bytes(&envelope.command)).await?;
            return Box::pin(self.send(&envelope, &mut hold, Some(&mut turn), true)).await;
        }
        loop {
            let session = self.session(hold.deadline()).await?;
            // Before the place in the session: those who wait must not hold up the oldest number there. And for as long
            // as the call is sent, also again: what waits for a leader here would come all at once when there is one.
            let mut turn = hold.turn_to_change(&self.turns, || command_bytes(&envelope.command)).await?;
            let flight = self.begin(&session, hold.deadline()).await?;
            envelope.stamp = Some(flight.stamp());
            let applied = Box::pin(self.send(&envelope, &mut hold, Some(&mut turn), true)).await?;
            if !matches!(applied.reply, Err(Fault::SessionExpired)) {
                return Ok(applied);
            }
            if matches!(envelope.command, Command::Session(session::Command::Open)) {
                // Or the level was raised while this was under way: then another one must be drawn, and not this session.
                self.backend.wait_applied(applied.index).await.map_err(|_| Outage::Stopping)?;
                if opening::is_owned(self.backend.as_ref()) {
                    return Ok(applied);
                }
            }
            // The session was idle for so long that it was closed: nothing was executed, in this attempt or in an
            // earlier one.
            self.forget(&session);
            hold.after(ProposeError::NoLeader("this node's session expired".into())).await?;
        }
    }

    /// Opens a session for a client.
    pub(crate) async fn open_for(&self, from: CallerAddress, width: IdWidth) -> Result<Applied, Outage> {
        for _ in 0..OPENINGS_MAX {
            let open = opening::command(self.backend.as_ref(), Owner::Client(from.0), width);
            let applied = self.submit(Command::Session(open)).await?;
            // The first of two attempts took the id, or the level was raised meanwhile, which this node knows by now.
            if applied.reply != Err(Fault::SessionExpired) {
                return Ok(applied);
            }
        }
        Err(Outage::Overloaded("the cluster takes no session".into()))
    }

    /// Submits an envelope as it is: its stamp is the client's own. Without one it is not sent again
    /// when its outcome is unknown. A reply that belongs to another command is refused: the client used the stamp for that
    /// one, in a session of before feature level 5.
    pub(crate) async fn submit_stamped(&self, mut envelope: Envelope) -> Result<Applied, Outage> {
        if let Some(refused) = self.too_long(&envelope.command) {
            return Ok(refused);
        }
        // In its place: another one would be there beside it for as long as the call waits for its turn.
        envelope.command = self.fit(signed(envelope.command));
        let mut hold = self.hold();
        let mut turn = hold.turn_to_change(&self.turns, || command_bytes(&envelope.command)).await?;
        let sending = self.send(&envelope, &mut hold, Some(&mut turn), envelope.stamp.is_some());
        let applied = Box::pin(sending).await?;
        match &applied.reply {
            Ok(answer) if !envelope.command.fits(answer) => {
                Ok(Applied { reply: Err(Fault::StampReused), ..applied })
            }
            _ => Ok(applied),
        }
    }

    /// A command as the cluster has it at the level of which this node knows. If it is higher by now, the earlier command
    /// asks for less.
    fn fit(&self, command: Command) -> Command {
        command.for_level(|| look(self.backend.as_ref(), State::level))
    }

    /// The refusal of a command whose lists are too long to be sent to anybody.
    fn too_long(&self, command: &Command) -> Option<Applied> {
        let tasks_of = |job| look(self.backend.as_ref(), |state| state.tasks_of(job));
        let fault = command.check_lists(&tasks_of).err()?;
        Some(Applied { index: self.backend.applied_index(), reply: Err(fault) })
    }

    /// Sends until there is a reply. What a client's call has to be sent with is `turn`. To be boxed: few calls are sent at a
    /// time, and thousands may wait for their turn, which would all be as large as this.
    async fn send(
        &self,
        envelope: &Envelope,
        hold: &mut Hold<'_>,
        mut turn: Option<&mut ToChange>,
        repeatable: bool,
    ) -> Result<Applied, Outage> {
        // Only where the level was lowered.
        let mut lowered = None;
        loop {
            let sent = lowered.as_ref().unwrap_or(envelope);
            let attempt = self.backend.propose(sent.clone());
            let mut attempt = pin!(tokio::time::timeout_at(hold.deadline(), attempt));
            // A replica takes a command in the first step, unless it has to wait for what all commands wait for.
            let begun = poll_fn(|context| Poll::Ready(attempt.as_mut().poll(context))).await;
            if let Some(turn) = turn.take() {
                turn.handed_on();
            }
            let outcome = match begun {
                Poll::Ready(outcome) => outcome,
                Poll::Pending => attempt.await,
            };
            let error = match outcome {
                Ok(Ok(applied)) => return certain(&sent.command, applied, hold),
                // The level was lowered, and nothing was appended: the earlier command says nearly as much.
                Ok(Err(ProposeError::Level(why))) => match sent.command.earlier() {
                    Some(command) => {
                        lowered = Some(Envelope { stamp: envelope.stamp, command });
                        continue;
                    }
                    None => ProposeError::Level(why),
                },
                Ok(Err(error)) => error,
                Err(_) => ProposeError::Unknown("no answer for as long as calls are held".into()),
            };
            match error {
                ProposeError::Unknown(why) if !repeatable => return Err(Outage::Unknown(why)),
                error => hold.after(error).await?,
            }
        }
    }

    /// A place in the session.
    async fn begin(&self, session: &Arc<Session>, deadline: Instant) -> Result<Flight, Outage> {
        if let Some(flight) = session.try_begin() {
            return Ok(flight);
        }
        let _waiting = self.calls.enter()?;
        let flight = session.begin(deadline).await;
        flight.ok_or_else(|| Outage::Overloaded("this node's oldest command is still without a reply".into()))
    }

    /// The open session; opens one if there is none.
    async fn session(&self, deadline: Instant) -> Result<Arc<Session>, Outage> {
        match self.current() {
            Some(session) => Ok(session),
            // Boxed, as it is seldom: every command looks for the session, and would be as large as this.
            None => Box::pin(self.open(deadline)).await,
        }
    }

    /// Opens a session, unless somebody else does so first.
    async fn open(&self, deadline: Instant) -> Result<Arc<Session>, Outage> {
        let _waiting = self.calls.enter()?;
        let _one_at_a_time = self.opening.lock().await;
        if let Some(session) = self.current() {
            return Ok(session);
        }
        let owner = Owner::Node(self.node);
        let patience = deadline.saturating_duration_since(Instant::now());
        let mut hold = Hold::new(self.backend.as_ref(), &self.calls, patience);
        let session = loop {
            // Opening twice is harmless: a session that nobody uses is closed for being idle.
            let open = opening::command(self.backend.as_ref(), owner, IdWidth::Wide);
            let envelope = Envelope { stamp: None, command: Command::Session(open) };
            let applied = match self.send(&envelope, &mut hold, None, true).await {
                // Whether a session was opened says nothing of the command that wanted one.
                Err(Outage::Unknown(last)) => {
                    return Err(Outage::NoLeader { waited_ms: millis(self.patience), last });
                }
                outcome => outcome?,
            };
            match applied.reply {
                Ok(Answer::Session(id)) => break Session::new(id),
                refused => {
                    // If the level was raised meanwhile, this node must know it before it draws another one.
                    self.backend.wait_applied(applied.index).await.map_err(|_| Outage::Stopping)?;
                    let why = format!("this node's session was refused: {refused:?}");
                    hold.after(ProposeError::Overloaded(why)).await?;
                }
            }
        };
        tracing::info!("session opened");
        let before = self.session.lock().replace(Arc::clone(&session));
        if before.is_some() {
            *self.retired.lock() = before;
        }
        Ok(session)
    }

    /// The open session, unless another one could be named by nobody else.
    fn current(&self) -> Option<Arc<Session>> {
        let session = self.session.lock().clone()?;
        (!self.is_outdated(&session)).then_some(session)
    }

    fn is_outdated(&self, session: &Session) -> bool {
        !session.id().is_node() && opening::is_owned(self.backend.as_ref())
    }

    /// Opens another session if others could name the open one and need not be able to, and closes that one as soon as none
    /// of its commands is under way.
    pub(crate) async fn renew(&self) {
        let session = self.session.lock().clone();
        if session.is_some_and(|session| self.is_outdated(&session))
            && let Err(outage) = self.session(Instant::now() + self.patience).await
        {
            tracing::debug!(%outage, "no other session was opened");
            return;
        }
        // Whoever has a command in it, or is about to, holds it, too.
        let resting = self.retired.lock().take_if(|session| Arc::strong_count(session) == 1);
        let Some(resting) = resting else { return };
        let close = session::Command::Close { session: resting.id() };
        if let Err(outage) = self.submit(Command::Session(close)).await {
            tracing::debug!(%outage, "the session of before was not closed");
            self.retired.lock().get_or_insert(resting);
        }
    }

    /// Drops the session unless somebody else has opened a newer one meanwhile.
    fn forget(&self, expired: &Arc<Session>) {
        let mut session = self.session.lock();
        if session.as_ref().is_some_and(|session| session.id() == expired.id()) {
            tracing::warn!("session expired");
            *session = None;
        }
    }
}

/// A refusal for want of a session says that this attempt was not executed. It says nothing of an
/// earlier one whose outcome is unknown. If a session is to be opened, it does: the earlier one has opened it, for nobody.
fn certain(command: &Command, applied: Applied, hold: &Hold<'_>) -> Result<Applied, Outage> {
    if let Command::Session(session::Command::OpenFor { .. }) = command.plain() {
        return Ok(applied);
    }
    match (&applied.reply, hold.uncertain()) {
        (Err(Fault::SessionExpired | Fault::ReplyForgotten), Some(unknown)) => Err(unknown),
        _ => Ok(applied),
    }
}

/// Commands that may be executed twice without harm, and whose refusals speak of the session they
/// name, which must not be taken for ours.
fn is_repeatable(command: &Command) -> bool {
    match command {
        Command::By(by) => is_repeatable(&by.command),
        Command::Session(command) => {
            matches!(
                command,
                session::Command::Close { .. }
                    | session::Command::ExpireIdle { .. }
                    | session::Command::ExpireOwned { .. }
                    | session::Command::OpenFor { .. }
            )
        }
        // A stamp of the client's own is the scheduler's to remember, and what its leader decides is checked
        // again whenever it is applied.
        Command::Ray(ray::Command::Ask { origin, .. }) => origin.stamp.is_some(),
        Command::Ray(ray::Command::Lead { .. })
        | Command::Mindspore(mindspore::Command::Lead { .. })
        | Command::Mars(mars::Command::Lead { .. }) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryBackend;

    #[tokio::test]
    async fn opening_a_session_is_no_part_of_every_command_and_a_command_is_there_once() {
        let patience = Duration::from_secs(1);
        let submitter = Submitter::new(NodeId(1), MemoryBackend::new(), Calls::new(1), patience);
        let command = || Command::Session(session::Command::Open);
        let deadline = Instant::now();
        let (looking, opening) =
            (size_of_val(&submitter.session(deadline)), size_of_val(&submitter.open(deadline)));
        assert!(looking < opening, "{looking} bytes to look for a session, and {opening} to open one");
        let within = size_of_val(&submitter.submit_within(command(), patience));
        assert_eq!(size_of_val(&submitter.submit(command())), within);
    }
}
