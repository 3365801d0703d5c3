//! A call that waits only for so long. The time is this node's, which holds the call; what it means
//! that the time is over is the state's to say, because the wait may have ended meanwhile.

use std::future::{Future as _, poll_fn};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, timeout_at};
use tripod_gateway::{Consistency, Gateway, Outage, meeting};
use tripod_port::CallerConnection;
use tripod_state::ids::TaskId;
use tripod_state::task::Origin;
use tripod_state::{Answer, Command, Fault, Reply, Scope, State, runtime};

use crate::caller::Caller;
use crate::own_task;

/// A call, how long it waits, and what happens then.
pub(super) struct WaitingCall {
    pub(super) begin: Begin,
    /// In milliseconds; what is not above zero waits for nothing.
    pub(super) patience_ms: i64,
    pub(super) over: Over,
    /// Whose it is, if it says so.
    pub(super) task: Option<TaskId>,
}

/// How a call begins.
pub(super) enum Begin {
    Command(runtime::Command),
    /// Looks for a key.
    Key(Scope, Bytes),
}

/// What happens when the time is over.
pub(super) enum Over {
    /// Told to the state, whose reply is the call's.
    Command(runtime::Command),
    /// The call's reply; nobody else need know.
    Fault(Fault),
}

impl WaitingCall {
    /// The same, with where it comes from if it connects.
    pub(super) fn with_origin(self, origin: Origin) -> Self {
        let begin = match self.begin {
            Begin::Command(command) => Begin::Command(command.with_origin(origin)),
            Begin::Key(scope, key) => Begin::Key(scope, key),
        };
        Self { begin, ..self }
    }

    /// The task of which it speaks, as its sender.
    pub(super) fn sender(&self) -> Option<TaskId> {
        match &self.begin {
            Begin::Command(command) => own_task::of_runtime(command),
            Begin::Key(..) => None,
        }
    }

    /// Runs the call to its end. If others must learn that it gave up, it is in a task of its own, which
    /// goes on when the caller hangs up.
    ///
    /// # Errors
    /// [`Outage`].
    pub(super) async fn call(self, caller: Caller, gateway: &Gateway) -> Result<Reply, Outage> {
        match self.over {
            // A task that nobody aborts is lost only with the whole process.
            Over::Command(_) => {
                let gateway = gateway.clone();
                let run = async move { self.run(caller, &gateway).await };
                let mut run = Box::pin(CallerConnection::carried(run));
                // Begun here, so that an op of a stream has its place among the others.
                match poll_fn(|context| Poll::Ready(run.as_mut().poll(context))).await {
                    Poll::Ready(outcome) => outcome,
                    Poll::Pending => tokio::spawn(run).await.unwrap_or(Err(Outage::Stopping)),
                }
            }
            Over::Fault(_) => self.run(caller, gateway).await,
        }
    }

    async fn run(self, caller: Caller, gateway: &Gateway) -> Result<Reply, Outage> {
        let patience = Duration::from_millis(u64::try_from(self.patience_ms).unwrap_or(0));
        let deadline = Instant::now() + patience;
        // Boxed, as is what comes last: whoever asks the cluster takes several times as much as who waits.
        let begun = match self.begin {
            Begin::Command(command) => {
                let command = Command::Runtime(command);
                let meeting = meeting(&command);
                let begun = Box::pin(caller.submit(gateway, command)).await?;
                gateway.met_at_once(meeting, &begun, self.task);
                begun
            }
            Begin::Key(scope, key) => {
                let look = |state: &State| state.runtime_value(scope, &key);
                Box::pin(gateway.read(Consistency::Linearizable, look)).await?
            }
        };
        let Ok(Answer::Waiting(ticket)) = begun else { return Ok(begun) };
        match (timeout_at(deadline, gateway.wait_as(ticket, self.task)).await, self.over) {
            (Ok(outcome), _) => outcome,
            (Err(_), Over::Command(command)) => Box::pin(gateway.submit(Command::Runtime(command))).await,
            (Err(_), Over::Fault(fault)) => Ok(Err(fault)),
        }
    }
}
