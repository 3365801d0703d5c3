//! Everything that can change the state, and what comes of it.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::identity::{By, IdentityCommand};
use crate::ids::{
    BarrierCounter, BarrierName, Incarnation, JobId, Key, NodeId, Sequence, ServiceIncarnation, SessionId,
    TaskId, TimeMs, TokenId,
};
use crate::wait::{DomainId, Ticket};
use crate::{barrier, job, kv, level, mars, member, mindspore, ray, runtime, session, task, token};

/// A command as it stands in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// Makes the command exactly-once: a second one with the same stamp gets the first one's reply.
    pub stamp: Option<Stamp>,
    pub command: Command,
}

/// A command's place in its client's session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    pub session: SessionId,
    pub sequence: Sequence,
    /// The client has the replies of all sequence numbers below this one; they may be forgotten.
    pub acknowledged_below: Sequence,
}

/// One variant per domain; each domain owns its commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    Job(job::Command),
    Task(task::Command),
    Kv(kv::Command),
    Barrier(barrier::Command),
    Session(session::Command),
    Member(member::Command),
    Runtime(runtime::Command),
    /// A command whose caller's transport says that an earlier attempt of the same call was sent: it may
    /// have taken effect. Where a domain can recognise that, the reply is the one that was lost.
    Retried(#[serde(deserialize_with = "crate::nesting::deserialize")] Box<Command>),
    Level(level::Command),
    Ray(ray::Command),
    Mindspore(mindspore::Command),
    Mars(mars::Command),
    Token(token::Command),
    /// A command of a caller of whom a port has proved who it is. Needs feature level 11.
    By(Box<By>),
    Identity(IdentityCommand),
}

/// Which job a call is about, and which life of its service the caller believes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Scope {
    pub job: JobId,
    /// `None` where the protocol carries none (dialect T, our own API).
    pub service: Option<ServiceIncarnation>,
}

/// The outcome of a command or of a wait. A refusal is a reply.
pub type Reply = Result<Answer, Fault>;

/// What a command that was not refused gives back.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Answer {
    /// Done; there is nothing to tell.
    Done,
    /// The arrival is recorded; the outcome comes when the ticket can be resolved.
    Waiting(Ticket),
    /// The task is connected.
    Registered { service: ServiceIncarnation },
    /// The barrier instance passed.
    BarrierPassed { counter: BarrierCounter },
    /// The connected tasks of a set and their incarnations, in ascending order of task id.
    Alive(Vec<(TaskId, Incarnation)>),
    /// What every task reported of its devices, in order of task id, opaque.
    Devices { service: ServiceIncarnation, devices: Vec<Bytes> },
    /// A key's value. `version` counts the writes since the key was created, from 1. In the answer to
    /// an insert or a compare-and-set the value is empty: the caller has it.
    Value { key: Key, value: Bytes, version: u64, modified: crate::ids::LogIndex },
    /// How many keys a delete removed.
    Deleted { keys: u64 },
    /// The states of a job's tasks.
    Tasks(task::Report),
    /// A session was opened.
    Session(SessionId),
    /// A job was created, or is described.
    Job(Box<job::Summary>),
    /// The change of the members that is under way now.
    Change(Box<member::Open>),
    /// The id of a node that asked for one.
    Node(NodeId),
    /// What a scheduler answers.
    Ray(ray::Answer),
    /// What a scheduler of MindSpore answers.
    Mindspore(mindspore::Answer),
    /// What sessions and graphs answer.
    Mars(mars::Answer),
    /// A token was made.
    Token { token: TokenId, expires: TimeMs },
}

/// Something that happened, in order, for whoever runs the state machine: wake waiters, arm timers,
/// open ports. Never needed for correctness of the state itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    JobCreated {
        job: JobId,
    },
    JobDeleted {
        job: JobId,
    },
    /// A key was written (not deleted).
    KeyWritten {
        job: JobId,
        key: Key,
    },
    /// A task is connected: its heartbeat timer starts.
    TaskConnected {
        job: JobId,
        task: TaskId,
        incarnation: Incarnation,
    },
    /// The version of the job's task states rose.
    TasksChanged {
        job: JobId,
    },
    /// A barrier instance opened and expires `timeout` from now.
    BarrierOpened {
        job: JobId,
        barrier: BarrierName,
        counter: BarrierCounter,
        timeout: crate::ids::DurationMs,
    },
    /// A barrier instance ended, or one of its waiting calls was replaced or cancelled.
    BarrierChanged {
        job: JobId,
        barrier: BarrierName,
    },
    /// A poll ended, or an error was latched.
    PollsChanged {
        job: JobId,
    },
    /// A group of callers that ask who is alive was answered.
    AliveAnswered {
        job: JobId,
    },
    /// A task speaks another protocol than those before it.
    ProtocolsMixed {
        job: JobId,
        protocol: task::Protocol,
    },
    /// A node announced itself, its addresses changed, it came or went, or a change of the members began or
    /// ended.
    MemberChanged,
    /// A token was made, used or revoked, or all were forgotten.
    TokensChanged,
    /// Something happened in a domain that has one topic for each job: calls may wait for it, and of a scheduler there may be
    /// something to plan or to order.
    DomainChanged {
        domain: DomainId,
        job: JobId,
    },
}
