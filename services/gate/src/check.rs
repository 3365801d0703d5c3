//! What the gate leaves to be checked: it has read no body, and knows no state.

use std::fmt;

use crate::{Right, Role};

/// Something that is to be checked where a call is applied, by who calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Check {
    /// The job that the call is about is one of the caller's.
    OwnJob,
    /// The task that it names is the caller's.
    OwnTask,
    /// The session that it names was opened by the caller.
    OwnSession,
    /// The worker, store or driver that it names is the caller.
    OwnProcess,
    /// The node that it names is the caller, who has a token to join besides.
    OwnNode,
    /// It registers a driver only if the caller is one, and a worker only if the caller is one.
    AsRegistered,
    /// Each of its parts has the row of the RPC that it stands for.
    EachPart,
    /// It lists what is of the caller's jobs, and nothing else.
    OwnJobsListed,
    /// It asks for no digest of the whole state.
    NoDigest,
}

impl Check {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::OwnJob,
        Self::OwnTask,
        Self::OwnSession,
        Self::OwnProcess,
        Self::OwnNode,
        Self::AsRegistered,
        Self::EachPart,
        Self::OwnJobsListed,
        Self::NoDigest,
    ];

    /// Its word in tables and labels.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::OwnJob => "own_job",
            Self::OwnTask => "own_task",
            Self::OwnSession => "own_session",
            Self::OwnProcess => "own_process",
            Self::OwnNode => "own_node",
            Self::AsRegistered => "as_registered",
            Self::EachPart => "each_part",
            Self::OwnJobsListed => "own_jobs_listed",
            Self::NoDigest => "no_digest",
        }
    }

    /// A sentence for people.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::OwnJob => "the job that the call names is one of the caller's",
            Self::OwnTask => "the task that the call names is the caller's",
            Self::OwnSession => "the session that the call names was opened by the caller",
            Self::OwnProcess => "the worker, store or driver that the call names is the caller",
            Self::OwnNode => {
                "the node that joins is the one of the certificate, and there is a token to join"
            }
            Self::AsRegistered => "a driver registers as a driver, a worker as a worker",
            Self::EachPart => "each part of the message is judged by the row of the RPC that it stands for",
            Self::OwnJobsListed => "only the caller's jobs are listed",
            Self::NoDigest => "the call does not ask for a digest of the state",
        }
    }

    /// Whether whoever has this right by this role must pass it. What a row demands besides concerns those who are confined; a
    /// digest costs much, and only nodes and operators are to have it made.
    pub(crate) const fn concerns(self, role: Role, right: Right) -> bool {
        match self {
            Self::NoDigest => !matches!(role, Role::Node | Role::Operator),
            Self::EachPart | Self::AsRegistered => true,
            _ => matches!(right, Right::Job | Right::Itself),
        }
    }
}

/// Some checks. Cheap to copy.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Checks(u16);

impl Checks {
    /// None of them.
    pub const NONE: Self = Self(0);

    /// These and one more.
    #[must_use]
    pub const fn and(self, check: Check) -> Self {
        Self(self.0 | (1 << check as u8))
    }

    /// These without one.
    #[must_use]
    pub const fn without(self, check: Check) -> Self {
        Self(self.0 & !(1 << check as u8))
    }

    /// Whether it is among them.
    #[must_use]
    pub const fn has(self, check: Check) -> bool {
        self.0 & (1 << check as u8) != 0
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = Check> {
        Check::ALL.into_iter().filter(move |check| self.has(*check))
    }
}

/// Their words, with a comma between them.
impl fmt::Display for Checks {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, check) in self.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            write!(out, "{comma}{}", check.word())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Checks {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "[{self}]")
    }
}
