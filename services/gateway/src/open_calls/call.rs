//! What is told of one call.

use std::time::Duration;

use tripod_state::Ticket;
use tripod_state::ids::TaskId;
use tripod_state::runtime::Wait;

/// Bytes of a barrier's or key's name that are kept; of longer ones the end, which is what differs.
pub(super) const SUBJECT_BYTES_MAX: usize = 128;

/// What a call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallKind {
    /// For all to register, or to connect.
    Registration,
    /// At a barrier of the program's own.
    Barrier,
    /// For all to leave.
    Shutdown,
    /// For everybody's devices.
    Devices,
    /// For a key.
    Key,
    /// For a word who is alive.
    Alive,
    /// For a change of other tasks.
    Tasks,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallOutcome {
    /// It got what it waited for.
    Passed,
    /// It got an error.
    Refused,
    /// Its caller hung up, or gave up.
    HungUp,
}

/// A call as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownCall {
    pub kind: CallKind,
    /// The name of a barrier or a key; of a long one its end.
    pub subject: String,
    /// How long ago it began to wait.
    pub since: Duration,
    /// How it ended, and how long ago; `None` while it waits.
    pub ended: Option<(CallOutcome, Duration)>,
}

impl CallKind {
    /// That of a ticket, and the task that waits, if the ticket says it. `None`: a poll, which waits all the time.
    pub(super) fn of(ticket: &Ticket) -> Option<(Self, Option<TaskId>)> {
        Some(match ticket {
            Ticket::Register { task, .. } => (Self::Registration, Some(*task)),
            Ticket::Barrier { task, .. } => (Self::Barrier, Some(*task)),
            Ticket::Shutdown { task, .. } => (Self::Shutdown, Some(*task)),
            Ticket::Devices { task, .. } => (Self::Devices, Some(*task)),
            Ticket::Poll { .. } => return None,
            Ticket::Alive { .. } => (Self::Alive, None),
            Ticket::Key { .. } => (Self::Key, None),
            Ticket::Tasks { .. } => (Self::Tasks, None),
            Ticket::Runtime { wait, .. } => match wait {
                Wait::Connect { task, .. } => (Self::Registration, Some(*task)),
                Wait::Enumerate => (Self::Devices, None),
                Wait::Barrier { .. } => (Self::Barrier, None),
                Wait::Shutdown => (Self::Shutdown, None),
            },
        })
    }
}

/// The name of what is waited for.
pub(super) fn subject(ticket: &Ticket) -> Box<str> {
    match ticket {
        Ticket::Barrier { barrier, .. } => shortened(barrier.as_str()),
        Ticket::Key { asked, .. } => shortened(asked),
        Ticket::Runtime { wait: Wait::Barrier { barrier }, .. } => {
            shortened(&String::from_utf8_lossy(&barrier.0))
        }
        _ => Box::default(),
    }
}

fn shortened(text: &str) -> Box<str> {
    if text.len() <= SUBJECT_BYTES_MAX {
        return text.into();
    }
    const CUT: &str = "...";
    let from = text.ceil_char_boundary(text.len() - (SUBJECT_BYTES_MAX - CUT.len()));
    format!("{CUT}{}", &text[from..]).into()
}
