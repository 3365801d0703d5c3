//! The decision, from who calls and what is called alone.

use std::fmt;

use tripod_identity::{JobName, NodeName, TaskNumber};

use crate::caller::Scope;
use crate::{Caller, Check, Checks, Port, Right, Role, Row, Rpc, row};

/// A call, as far as it is known before its body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call<'a> {
    /// What is called.
    pub rpc: Rpc,
    /// Where.
    pub at: Port,
    /// The job that it is about, if that is certain.
    pub job: Option<&'a JobName>,
    /// What it says of whom, if that is known.
    pub subject: Subject<'a>,
}

/// Of whom a call speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Subject<'a> {
    /// It was not read.
    #[default]
    Unread,
    /// A task of the call's job.
    Task(TaskNumber),
    /// A node.
    Node(&'a NodeName),
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It is made.
    Allowed,
    /// It is made if it passes these where it is applied.
    InApply(Checks),
    /// It is not made.
    Refused(Reason),
}

/// Why a call is not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Its path is no RPC.
    UnknownRpc,
    /// The RPC is not served on this port.
    OtherPort,
    /// Nobody proved to be anybody.
    NoIdentity,
    /// Nothing was granted to the name.
    NoGrant,
    /// Nobody of this role may call it.
    Role,
    /// It is about a job that is not the caller's.
    OtherJob,
    /// It speaks of a task that is not the caller's.
    OtherTask,
    /// It speaks of a node that is not the caller.
    OtherNode,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::UnknownRpc,
        Self::OtherPort,
        Self::NoIdentity,
        Self::NoGrant,
        Self::Role,
        Self::OtherJob,
        Self::OtherTask,
        Self::OtherNode,
    ];

    /// The code of gRPC. What is not served is UNIMPLEMENTED, as a router says it: clients ask for newer calls, and go on without.
    #[must_use]
    pub const fn code(self) -> u16 {
        const PERMISSION_DENIED: u16 = 7;
        const UNIMPLEMENTED: u16 = 12;
        const UNAUTHENTICATED: u16 = 16;
        match self {
            Self::UnknownRpc | Self::OtherPort => UNIMPLEMENTED,
            Self::NoIdentity => UNAUTHENTICATED,
            Self::NoGrant | Self::Role | Self::OtherJob | Self::OtherTask | Self::OtherNode => {
                PERMISSION_DENIED
            }
        }
    }

    /// Its word for labels and logs.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::UnknownRpc => "unknown_rpc",
            Self::OtherPort => "other_port",
            Self::NoIdentity => "no_identity",
            Self::NoGrant => "no_grant",
            Self::Role => "role",
            Self::OtherJob => "other_job",
            Self::OtherTask => "other_task",
            Self::OtherNode => "other_node",
        }
    }
}

/// What the caller is told. It says nothing of what there is: another job is told alike whether it exists or not.
impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::UnknownRpc | Self::OtherPort => "no such call is served here",
            Self::NoIdentity => {
                "T1521 not-authorised: who calls must say so; use a certificate of this cluster"
            }
            Self::NoGrant => "T1521 not-authorised: nothing was granted to this name; ask an operator",
            Self::Role => "T1521 not-authorised: nobody of this role may make this call",
            Self::OtherJob => "T1521 not-authorised: the call is about a job that is not the caller's",
            Self::OtherTask => "T1521 not-authorised: the call speaks of a task that is not the caller's",
            Self::OtherNode => "T1521 not-authorised: the call speaks of a node that is not the caller",
        })
    }
}

/// Decides by the table. Pure: the same arguments have the same decision, and nothing is remembered.
#[must_use]
pub fn decide(caller: &Caller, call: &Call<'_>) -> Decision {
    if !call.at.serves(call.rpc) {
        return Decision::Refused(Reason::OtherPort);
    }
    let row = row(call.rpc);
    let nobody = match caller {
        Caller::Legacy => return Decision::Allowed,
        Caller::Ungranted(_) => Reason::NoGrant,
        Caller::Anonymous | Caller::Listener(_) | Caller::Proved { .. } => Reason::NoIdentity,
    };
    match caller.role() {
        None if row.is_for_everybody() => Decision::Allowed,
        None => Decision::Refused(nobody),
        Some(role) => by_role(caller, role, &row, call),
    }
}

fn by_role(caller: &Caller, role: Role, row: &Row, call: &Call<'_>) -> Decision {
    let right = row.right(role, call.at);
    let mut checks = row.checks(role, right);
    match right {
        Right::No => return Decision::Refused(Reason::Role),
        Right::Yes => {}
        Right::Job | Right::Itself => match (caller.scope(), call.job) {
            (Scope::Everywhere, _) => {}
            (Scope::Job(_) | Scope::Jobs(_), None) => checks = checks.and(Check::OwnJob),
            (Scope::Job(own), Some(job)) if own == job => {}
            (Scope::Jobs(own), Some(job)) if own.contains(job) => {}
            (Scope::Job(_) | Scope::Jobs(_), Some(_)) => return Decision::Refused(Reason::OtherJob),
        },
    }
    if right == Right::Itself {
        match (call.subject, caller.task(), caller.node()) {
            (Subject::Task(named), Some(own), _) if named == own => checks = checks.without(Check::OwnTask),
            (Subject::Task(_), Some(_), _) => return Decision::Refused(Reason::OtherTask),
            // That it has a token is still to be checked.
            (Subject::Node(named), _, Some(own)) if named != own => {
                return Decision::Refused(Reason::OtherNode);
            }
            _ => {}
        }
    }
    if checks.is_empty() { Decision::Allowed } else { Decision::InApply(checks) }
}
