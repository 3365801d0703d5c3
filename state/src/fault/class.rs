//! What kind of refusal a fault is, for protocols that have no code of their own for it.

use crate::fault::{BarrierFault, Fault};
use crate::{level, mars, member, mindspore, ray, runtime, token};

/// A kind of refusal, by what the caller can do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The call is wrong by itself, whatever the state is.
    InvalidArgument,
    /// The call goes beyond what there is, or what fits.
    OutOfRange,
    /// What the call names does not exist.
    NotFound,
    /// What the call would make exists.
    AlreadyExists,
    /// The state must be changed first.
    FailedPrecondition,
    /// Another call, or a failure, came before; the caller begins anew.
    Aborted,
    /// There is no room.
    Exhausted,
    /// Something that the call needs is not there now.
    Unavailable,
    /// The time ran out.
    Deadline,
    /// The caller, or somebody for it, gave up.
    Cancelled,
    /// A defect of ours.
    Internal,
    /// It is not for the caller to do.
    Denied,
}

impl Class {
    /// What programs go by.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::InvalidArgument => "invalid-argument",
            Self::OutOfRange => "out-of-range",
            Self::NotFound => "not-found",
            Self::AlreadyExists => "already-exists",
            Self::FailedPrecondition => "failed-precondition",
            Self::Aborted => "aborted",
            Self::Exhausted => "exhausted",
            Self::Unavailable => "unavailable",
            Self::Deadline => "deadline",
            Self::Cancelled => "cancelled",
            Self::Internal => "internal",
            Self::Denied => "permission-denied",
        }
    }
}

impl Fault {
    /// Its kind. A protocol that has a code of its own for a fault tells that one instead.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::JobUnknown { .. } | Self::KeyMissing { .. } => Class::NotFound,
            Self::JobExists { .. } | Self::KeyExists { .. } => Class::AlreadyExists,
            Self::JobNameInvalid { .. }
            | Self::JobSpecInvalid { .. }
            | Self::TaskUnknown { .. }
            | Self::NotInAliveSet { .. }
            | Self::ReportWithoutCode => Class::InvalidArgument,
            Self::IncrementOverflow { .. } | Self::VersionAhead { .. } => Class::OutOfRange,
            Self::JobSlotsTaken { .. } | Self::SessionWindow { .. } | Self::LimitExceeded { .. } => {
                Class::Exhausted
            }
            Self::ServiceMismatch { .. }
            | Self::NotAnInteger { .. }
            | Self::VersionMismatch { .. }
            | Self::AlreadyDisconnected { .. }
            | Self::ReporterNotConnected
            | Self::SessionExpired
            | Self::StampReused
            | Self::ReplyForgotten => Class::FailedPrecondition,
            Self::RegistrationReplaced
            | Self::RegisteredInError { .. }
            | Self::Restarted { .. }
            | Self::RegistrationFailed { .. }
            | Self::BeatInError { .. }
            | Self::BeatUnregistered { .. }
            | Self::BeatOfOtherLife { .. }
            | Self::HeartbeatTimeout { .. }
            | Self::TasksUnhealthy { .. }
            | Self::Reported { .. }
            | Self::Unheard { .. }
            | Self::ShutdownFailed { .. }
            | Self::PollUnregistered { .. }
            | Self::PollInError { .. }
            | Self::PollReplaced
            | Self::PollerLeft
            | Self::PollReleased
            | Self::ArrivalReplaced { .. } => Class::Aborted,
            Self::Barrier { fault, .. } => fault.class(),
            Self::Runtime(refusal) => refusal.class(),
            Self::Member(refusal) => refusal.class(),
            Self::Level(refusal) => refusal.class(),
            Self::Ray(refusal) => refusal.class(),
            Self::Mindspore(refusal) => refusal.class(),
            Self::Mars(refusal) => refusal.class(),
            Self::Token(refusal) => refusal.class(),
            Self::NotAuthorised(_) => Class::Denied,
        }
    }
}

impl BarrierFault {
    fn class(&self) -> Class {
        match self {
            Self::TimedOut { .. } => Class::Deadline,
            Self::UnknownMember { .. }
            | Self::ConflictingTasks
            | Self::ListMissing
            | Self::NotAMember { .. } => Class::InvalidArgument,
            Self::MemberInError { .. }
            | Self::MemberLost { .. }
            | Self::Cancelled { .. }
            | Self::StaleArrival { .. } => Class::Aborted,
            Self::CounterMismatch { .. }
            | Self::CancelOfOtherInstance { .. }
            | Self::CancelAfterEnd { .. } => Class::FailedPrecondition,
        }
    }
}

impl runtime::Refusal {
    fn class(&self) -> Class {
        match self {
            Self::NotInitializing | Self::NotRunning { .. } | Self::BarrierUsed | Self::BarrierSpoiled => {
                Class::FailedPrecondition
            }
            Self::TaskUnknown { .. } => Class::InvalidArgument,
            Self::Replaced { .. } | Self::Lost { .. } => Class::Aborted,
            Self::TimedOut { .. } => Class::Deadline,
        }
    }
}

impl member::Refusal {
    fn class(&self) -> Class {
        match self {
            Self::NodeUnknown { .. } => Class::NotFound,
            Self::AddressTaken { .. } | Self::NameTaken { .. } => Class::AlreadyExists,
            Self::InProgress { .. }
            | Self::NodeRemoved { .. }
            | Self::HadData { .. }
            | Self::NotOpen { .. }
            | Self::NameBound { .. } => Class::FailedPrecondition,
            Self::NameInvalid { .. } => Class::InvalidArgument,
        }
    }
}

impl level::Refusal {
    fn class(&self) -> Class {
        match self {
            Self::NoPin { .. } => Class::InvalidArgument,
            Self::TooLow { .. }
            | Self::NotAbove { .. }
            | Self::NotHeard { .. }
            | Self::Notes { .. }
            | Self::Drained { .. }
            | Self::Schedulers { .. }
            | Self::Clusters { .. }
            | Self::Scheduled { .. }
            | Self::Sessions { .. }
            | Self::Floor { .. } => Class::FailedPrecondition,
        }
    }
}

impl mindspore::Refusal {
    fn class(&self) -> Class {
        match self {
            Self::NodeUnknown { .. } => Class::NotFound,
            Self::OtherRole { .. } => Class::AlreadyExists,
            Self::Full { .. } => Class::Exhausted,
            Self::Replaced { .. } => Class::Aborted,
            Self::Ending => Class::Unavailable,
            Self::WorkersFixed | Self::NothingToScale | Self::NoServer { .. } | Self::FirstServer { .. } => {
                Class::InvalidArgument
            }
            Self::NodeLeft { .. }
            | Self::NotInitialized
            | Self::NotFormed
            | Self::NotReady { .. }
            | Self::NotAbortable
            | Self::Outdated { .. } => Class::FailedPrecondition,
        }
    }
}

impl mars::Refusal {
    fn class(&self) -> Class {
        match self {
            Self::SessionUnknown { .. }
            | Self::GraphUnknown { .. }
            | Self::TileableUnknown { .. }
            | Self::MutableUnknown { .. } => Class::NotFound,
            Self::SessionExists { .. } | Self::GraphExists { .. } | Self::MutableExists { .. } => {
                Class::AlreadyExists
            }
            Self::Node { .. } | Self::Invalid { .. } | Self::RequestReused { .. } => Class::InvalidArgument,
            Self::SchedulerFull { .. } => Class::Exhausted,
            Self::NoStore => Class::Unavailable,
            Self::GraphRuns { .. }
            | Self::NotNext { .. }
            | Self::NotOpen { .. }
            | Self::ChunkGone { .. }
            | Self::FitsNowhere { .. }
            | Self::TooFewReferences { .. }
            | Self::MutableDiffers { .. }
            | Self::MutableState { .. } => Class::FailedPrecondition,
        }
    }
}

impl token::Refusal {
    fn class(&self) -> Class {
        match self {
            Self::Unknown { .. } => Class::NotFound,
            Self::Taken { .. } => Class::AlreadyExists,
            Self::Invalid { .. } => Class::InvalidArgument,
            Self::Ended { .. } | Self::Bootstrapped { .. } => Class::FailedPrecondition,
        }
    }
}

impl ray::Refusal {
    /// Its kind: see [`Fault::class`].
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::FunctionUnknown { .. }
            | Self::WorkerUnknown { .. }
            | Self::StoreUnknown { .. }
            | Self::ObjectUnknown { .. } => Class::NotFound,
            Self::NoStore { .. } => Class::Unavailable,
            Self::ArgumentUnknown { .. }
            | Self::Invalid { .. }
            | Self::AliasOfItself { .. }
            | Self::AliasCycle { .. } => Class::InvalidArgument,
            Self::SessionWindow { .. } | Self::Full { .. } => Class::Exhausted,
            Self::WorkerExpired { .. }
            | Self::StoreExpired { .. }
            | Self::ObjectDeallocated { .. }
            | Self::ArgumentDeallocated { .. }
            | Self::NotOwned { .. }
            | Self::TooFewReferences { .. }
            | Self::AliasedAlready { .. }
            | Self::AliasOfValue { .. }
            | Self::ReadyAlias { .. }
            | Self::ContainedAlready { .. }
            | Self::IsDriver { .. }
            | Self::OtherAttempt { .. }
            | Self::SessionExpired
            | Self::AnswerForgotten => Class::FailedPrecondition,
        }
    }
}
