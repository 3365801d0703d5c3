//! Why a command was refused, or a wait ended badly. Facts, of which class they are, and plain words for them. The exact
//! codes and texts that a client of one protocol expects are rendered by that protocol's front end, and what a
//! protocol has no code or text for is told by class and in plain words.

mod class;
mod text;

use serde::{Deserialize, Serialize};

use crate::ids::{
    BarrierCounter, BarrierName, Incarnation, JobName, Key, ServiceIncarnation, TaskId, TaskVersion,
};
use crate::runtime::Refusal;
use crate::{identity, level, mars, member, mindspore, ray, token};

pub use class::Class;

/// A refusal. It is a reply like any other: the same on every replica, and the state is unchanged
/// unless the variant says otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Fault {
    /// The job does not exist, or was deleted while the call waited.
    JobUnknown { name: Option<JobName> },
    /// The caller was told another service incarnation when it registered.
    ServiceMismatch { requested: ServiceIncarnation, current: ServiceIncarnation },
    /// The task id is outside `0..tasks`; the text differs by what was asked.
    TaskUnknown { task: TaskId, asked: Asked },

    /// A newer call registers the same task; this one is final.
    RegistrationReplaced,
    /// A task in error registered. The task stays in error; this is propagated.
    RegisteredInError {
        task: TaskId,
        #[serde(deserialize_with = "crate::nesting::deserialize")]
        existing: Box<Fault>,
    },
    /// A connected task registered with another incarnation. Sets the task to error; propagated.
    Restarted { task: TaskId },
    /// The register barrier failed, and with it every task.
    RegistrationFailed {
        #[serde(deserialize_with = "crate::nesting::deserialize")]
        cause: Box<Fault>,
    },

    /// A task in error sent a heartbeat.
    BeatInError {
        task: TaskId,
        #[serde(deserialize_with = "crate::nesting::deserialize")]
        existing: Box<Fault>,
    },
    /// A task that left, or never came, sent a heartbeat after its grace.
    BeatUnregistered { task: TaskId },
    /// A heartbeat of another life of the task. Sets the task to error; propagated.
    BeatOfOtherLife { task: TaskId, expected: Incarnation, got: Incarnation },
    /// The task was silent for longer than the heartbeat timeout. The state of that one task.
    HeartbeatTimeout { task: TaskId },
    /// What the others are told of silent tasks, in ascending order of task id.
    TasksUnhealthy { tasks: Vec<TaskId> },

    /// A task that is not connected asked to leave.
    AlreadyDisconnected { task: TaskId },
    /// A task that is not connected reported an error.
    ReporterNotConnected,
    /// An error report with a code that means success.
    ReportWithoutCode,
    /// An error that a task reported about itself, with its own code and text.
    Reported { task: TaskId, code: i32, message: String },
    /// Nobody polls for errors, so every task was set to error instead.
    Unheard {
        #[serde(deserialize_with = "crate::nesting::deserialize")]
        cause: Box<Fault>,
    },
    /// The shutdown barrier failed.
    ShutdownFailed {
        #[serde(deserialize_with = "crate::nesting::deserialize")]
        cause: Box<Fault>,
    },

    /// A poll of a task that left, or never came, after its grace.
    PollUnregistered { task: TaskId },
    /// A poll of a task in error.
    PollInError {
        task: TaskId,
        #[serde(deserialize_with = "crate::nesting::deserialize")]
        existing: Box<Fault>,
    },
    /// A later poll of the same task took this one's place.
    PollReplaced,
    /// The polling task left.
    PollerLeft,
    /// The job does not hold polls: errors are told by heartbeat.
    PollReleased,

    /// A barrier instance failed, or refused the call.
    Barrier { barrier: BarrierName, counter: BarrierCounter, fault: BarrierFault },
    /// A later call of the same task for the same barrier instance took this one's place.
    ArrivalReplaced { barrier: BarrierName, counter: BarrierCounter },

    /// An insert without overwrite found the key.
    KeyExists { key: Key },
    /// The key as the caller wrote it, not normalised.
    KeyMissing { asked: String },
    /// An increment of a value that is no decimal 64-bit integer.
    NotAnInteger { value: String },
    /// An increment whose sum does not fit 64 bits.
    IncrementOverflow { value: i64, increment: i64 },
    /// A compare-and-set that found another version of the key (0: no such key).
    VersionMismatch { key: Key, expected: u64, current: u64 },

    /// A caller asked for the living tasks of a set that it is not in.
    NotInAliveSet { task: TaskId },
    /// A watch of a version that does not exist yet.
    VersionAhead { asked: TaskVersion, current: TaskVersion },

    /// A job of that name exists.
    JobExists { name: JobName },
    /// The text is no job name; see [`JobName`].
    JobNameInvalid { name: String },
    /// A job parameter is out of bounds.
    JobSpecInvalid { field: String, reason: String },
    /// Every job port is taken.
    JobSlotsTaken { slots: u16 },

    /// The runtime of clients older than the coordination service refused.
    Runtime(Refusal),

    /// The session is unknown or was closed; the command was not executed.
    SessionExpired,
    /// The sequence number was used and its reply is no longer remembered; the command was not
    /// executed a second time.
    ReplyForgotten,
    /// The sequence number is too far ahead of the acknowledged ones.
    SessionWindow { limit: u64 },
    /// A bound of [`crate::limits`] would be exceeded.
    LimitExceeded { what: String, limit: u64, actual: u64 },

    /// A change of the members was refused.
    Member(member::Refusal),

    /// The feature level in force does not allow it, or a change of the level was refused.
    Level(level::Refusal),

    /// A scheduler refused.
    Ray(ray::Refusal),

    /// A scheduler of MindSpore refused.
    Mindspore(mindspore::Refusal),

    /// The sequence number was used for another command; this one was not executed.
    StampReused,

    /// Something about sessions, graphs and what they hold was refused.
    Mars(mars::Refusal),

    /// Something about tokens was refused.
    Token(token::Refusal),

    /// Whoever proposed it may not have that effect.
    NotAuthorised(identity::Refusal),
}

/// How many faults may be nested in one. A chain of errors that each cite the one before must not
/// grow for ever, and whoever prints, hashes or drops a fault recurses into it.
const NESTED_MAX: usize = 8;

/// Bytes of a reported text that other faults cite. The wire shows fewer of the whole fault, and one
/// long text can be cited by every barrier of a job.
pub(crate) const CITED_TEXT_BYTES_MAX: usize = 4 << 10;

impl Fault {
    /// The fault that this one cites, if any.
    #[must_use]
    pub fn cause(&self) -> Option<&Self> {
        match self {
            Self::RegisteredInError { existing, .. }
            | Self::BeatInError { existing, .. }
            | Self::PollInError { existing, .. } => Some(existing),
            Self::RegistrationFailed { cause } | Self::Unheard { cause } | Self::ShutdownFailed { cause } => {
                Some(cause)
            }
            Self::Barrier { fault, .. } => fault.cause(),
            _ => None,
        }
    }

    /// Whether a task that is in error of it was ended because of others.
    #[must_use]
    pub fn comes_of_others(&self) -> bool {
        matches!(self, Self::Unheard { .. } | Self::RegistrationFailed { .. } | Self::ShutdownFailed { .. })
    }

    /// A copy to be cited by another fault. A chain that is too long keeps only its root, and a text
    /// that is too long its beginning.
    #[must_use]
    pub fn cited(&self) -> Box<Self> {
        let mut root = self;
        let mut depth = 0;
        while let Some(cause) = root.cause() {
            root = cause;
            depth += 1;
        }
        Box::new(match if depth < NESTED_MAX { self } else { root } {
            // One that is nested already was shortened when it was cited.
            Self::Reported { task, code, message } => {
                let end = message.floor_char_boundary(CITED_TEXT_BYTES_MAX);
                Self::Reported { task: *task, code: *code, message: message[..end].to_owned() }
            }
            fault => fault.clone(),
        })
    }
}

impl BarrierFault {
    /// The fault that this one cites, if any.
    #[must_use]
    pub fn cause(&self) -> Option<&Fault> {
        match self {
            Self::MemberInError { existing, .. } => Some(existing),
            Self::MemberLost { reason: Leaving::Error(fault), .. }
            | Self::StaleArrival { reason: Leaving::Error(fault), .. } => Some(fault),
            Self::CancelAfterEnd { result } => result.as_deref(),
            _ => None,
        }
    }
}

/// Which call met an unknown task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Asked {
    Register,
    Heartbeat,
    Disconnect,
    Report,
    Poll,
    State,
}

/// Why a barrier instance failed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum BarrierFault {
    /// The deadline passed. `missing` holds the lowest ids, as many as the text shows (two).
    TimedOut { arrived: u32, total: u32, first: TaskId, missing: Vec<TaskId> },
    /// The list names a task that the job does not have.
    UnknownMember { task: TaskId },
    /// The list differs from the instance's.
    ConflictingTasks,
    /// No list, but the instance is for a part of the job only.
    ListMissing,
    /// The caller is not in the list.
    NotAMember { task: TaskId },
    /// A member was in error when the instance opened.
    MemberInError {
        task: TaskId,
        #[serde(deserialize_with = "crate::nesting::deserialize")]
        existing: Box<Fault>,
    },
    /// A member left or failed while the instance was open.
    MemberLost { task: TaskId, reason: Leaving },
    /// The caller counts instances differently.
    CounterMismatch { called: BarrierCounter },
    /// A task cancelled the instance.
    Cancelled { by: TaskId },
    /// A cancellation with another counter; the instance is unchanged.
    CancelOfOtherInstance { called: BarrierCounter },
    /// A cancellation after the end; the result is unchanged. `None`: it had passed.
    CancelAfterEnd {
        #[serde(deserialize_with = "crate::nesting::deserialize")]
        result: Option<Box<Fault>>,
    },
    /// The arrival of a recoverable task that has since left or restarted.
    StaleArrival { task: TaskId, reason: Leaving },
}

/// Why a task left its ongoing barriers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Leaving {
    /// It was set to error.
    Error(#[serde(deserialize_with = "crate::nesting::deserialize")] Box<Fault>),
    /// It shut down or was reset.
    Disconnected,
    /// It is recoverable and registered again.
    ConnectedAgain,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(message: &str) -> Fault {
        Fault::Reported { task: TaskId(1), code: 13, message: message.to_owned() }
    }

    #[test]
    fn a_citation_is_the_fault_itself_as_long_as_it_is_short() {
        let fault = Fault::ShutdownFailed { cause: reported("boom").cited() };
        assert_eq!(*fault.cited(), fault);
    }

    #[test]
    fn a_citation_shortens_a_long_text_between_characters() {
        let text = "\u{e4}".repeat(CITED_TEXT_BYTES_MAX);
        let Fault::Reported { message, .. } = *reported(&text[..]).cited() else {
            panic!("it is still a report");
        };
        assert_eq!(message.len(), CITED_TEXT_BYTES_MAX);
        let Fault::Reported { message, .. } = *reported(&format!("x{text}")).cited() else {
            panic!("it is still a report");
        };
        assert_eq!(message.len(), CITED_TEXT_BYTES_MAX - 1);
    }

    #[test]
    fn a_long_chain_is_cited_by_its_root() {
        let mut fault = reported("boom");
        for _ in 0..NESTED_MAX {
            fault = Fault::Unheard { cause: Box::new(fault) };
        }
        assert_eq!(*fault.cited(), reported("boom"));
    }
}
