//! The pieces of a snapshot. What can be derived from them is not in them.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::barrier::instance::{End, Voided};
use crate::barrier::members::Members;
use crate::command::Reply;
use crate::fault::Fault;
use crate::identity::{Floor, Identity};
use crate::ids::{
    BarrierCounter, BarrierName, CallId, CertificateName, DurationMs, FeatureLevel, Incarnation, JobId,
    JobName, JobSlot, Key, LogIndex, NodeId, Sequence, ServiceIncarnation, SessionId, TaskId, TaskVersion,
    Term, TimeMs, TokenId,
};
use crate::job::record::Latched;
use crate::kv::increments::Increment;
use crate::kv::store::Entry;
use crate::mindspore::{cluster, topology};
use crate::runtime::BarrierId;
use crate::runtime::record::Member;
use crate::task::Protocol;
use crate::task::alive::Answered;
use crate::task::record::Poll;
use crate::{barrier, events, job, mars, member, ray, runtime, session, task, token};

/// One record of a snapshot. Whoever stores it does not look inside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record(pub(crate) Piece);

/// What a record holds.
///
/// The order is: the header; members; sessions, each with its replies; jobs, each with its tasks,
/// barriers, groups, keys, increments and runtime; the registry of nodes; the level; notes of jobs;
/// drained nodes; schedulers with their parts; whose sessions are; intervals, tasks that came back and processes; MindSpore clusters
/// with their parts; sessions with theirs; ends of processes; events of jobs; origins of processes; who registered tasks; tokens; events of the cluster, with jobs that are gone; names of nodes; openers of sessions; the floor; the end. Every head tells how many records follow it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Piece {
    Header {
        now_ms: TimeMs,
        jobs: u64,
        sessions: u64,
        members: u64,
    },
    Member {
        node: NodeId,
        addresses: member::Addresses,
    },
    Session {
        id: SessionId,
        last_used: TimeMs,
        floor: Sequence,
        replies: u64,
    },
    Reply {
        sequence: Sequence,
        reply: Reply,
    },
    Job(Box<JobRecord>),
    /// The error of the tasks that follow, until the next one.
    Error {
        fault: Fault,
    },
    Task(Box<TaskRecord>),
    Barrier(Box<BarrierRecord>),
    Arrived {
        task: TaskId,
        call: CallId,
    },
    Voided {
        task: TaskId,
        voided: Voided,
    },
    AliveGroup {
        id: CallId,
        set: Members,
        called: u64,
    },
    AliveCall {
        task: TaskId,
    },
    Alive(AliveRecord),
    Key {
        key: Key,
        entry: Entry,
    },
    Increment {
        caller: Incarnation,
        increment: Increment,
    },
    End,
    RuntimeMember {
        task: TaskId,
        member: Member,
    },
    RuntimeBarrier {
        id: BarrierId,
        barrier: RuntimeBarrierRecord,
    },
    RuntimeArrived {
        task: TaskId,
    },
    /// Before the end, unless it is empty.
    Registry(Box<member::Registry>),
    /// Behind the registry, unless it is the first. Then the notes.
    Level(FeatureLevel),
    Note {
        job: JobId,
        note: String,
    },
    /// Behind the notes, one for each node that is drained.
    Drained {
        node: NodeId,
    },
    /// Behind the drained nodes, one for each job that has a scheduler, by job. Its parts follow.
    Scheduler {
        job: JobId,
        head: Box<ray::part::Head>,
    },
    SchedulerPart(Box<ray::part::Part>),
    /// Behind the schedulers, one for each session that belongs to somebody, by id. `commands`: the marks of those whose
    /// replies are remembered, ascending.
    Owned {
        id: SessionId,
        owner: session::Owner,
        commands: Vec<(Sequence, u64)>,
    },
    /// Behind the sessions' owners, one for each task whose interval is known, by job and task.
    Interval {
        job: JobId,
        task: TaskId,
        incarnation: Incarnation,
        interval_ms: DurationMs,
    },
    /// Behind the intervals, one for each task that came back, by job and task.
    Returned {
        job: JobId,
        task: TaskId,
        incarnation: Incarnation,
    },
    /// Behind those, one for each task of whose process something was said, by job and task.
    Process {
        job: JobId,
        task: TaskId,
        incarnation: Incarnation,
        host: String,
        ended: bool,
    },
    /// Behind those, one for each job that has a dynamic cluster, by job. Its parts follow.
    Topology {
        job: JobId,
        head: Box<topology::Head>,
    },
    TopologyPart(Box<topology::Part>),
    /// Behind those, one for each job that has a cluster, by job. Its parts follow.
    Cluster {
        job: JobId,
        head: Box<cluster::Head>,
    },
    ClusterPart(Box<cluster::Part>),
    /// Behind those, one for each job that has sessions, by job. Their parts follow.
    Mars {
        job: JobId,
        head: Box<mars::Head>,
    },
    MarsPart(Box<mars::SnapshotPart>),
    /// Behind those, one for each task whose process is known to have ended, by job and task.
    Ended {
        job: JobId,
        task: TaskId,
        incarnation: Incarnation,
        end: task::End,
    },
    /// Behind all jobs' domains, unless there never was a token. The tokens follow, by id.
    Tokens {
        /// The log index of the last change.
        revision: LogIndex,
        tokens: u64,
    },
    Token {
        id: TokenId,
        token: Box<token::Token>,
    },
    /// Behind the ends, one for each job of which it is known what happened, by job. So many events follow.
    Events {
        job: JobId,
        head: Box<events::Head>,
        events: u64,
    },
    Event(Box<events::Event>),
    /// Behind the tokens, unless nothing is known: so many events of the cluster itself, and behind them jobs that are gone.
    ClusterEvents {
        term: Term,
        head: Box<events::Head>,
        events: u64,
        ended: u64,
    },
    /// So many events of it follow.
    EndedJob {
        head: Box<events::EndedHead>,
        events: u64,
    },
    /// Behind the jobs' events, one for each task of which it is known where its process comes from, by job and task.
    Origin {
        job: JobId,
        task: TaskId,
        incarnation: Incarnation,
        origin: Box<task::Origin>,
    },
    /// Behind everything that happened, one for each node whose certificate's name is known, by id.
    Named {
        node: NodeId,
        name: CertificateName,
    },
    /// Behind those, one for each session of which it is known who opened it, by id.
    Opener {
        session: SessionId,
        identity: Identity,
    },
    /// Behind the origins, one for each task of which it is known who registered it, by job and task.
    Registrant {
        job: JobId,
        task: TaskId,
        incarnation: Incarnation,
        identity: Identity,
    },
    /// Behind all others, unless nobody ever said one.
    Floor(Box<Floor>),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct JobRecord {
    pub(crate) id: JobId,
    pub(crate) name: JobName,
    pub(crate) slot: Option<JobSlot>,
    pub(crate) service: ServiceIncarnation,
    pub(crate) spec: job::Spec,
    pub(crate) version: TaskVersion,
    pub(crate) protocols: Vec<Protocol>,
    pub(crate) polls_asked: bool,
    pub(crate) latched: Option<Latched>,
    pub(crate) pushed: Vec<TaskId>,
    pub(crate) tasks: u64,
    pub(crate) barriers: u64,
    pub(crate) failed_barriers: Vec<barrier::Report>,
    pub(crate) alive_open: u64,
    pub(crate) alive_answered: u64,
    pub(crate) keys: u64,
    pub(crate) increments: u64,
    pub(crate) runtime: Option<RuntimeRecord>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TaskRecord {
    pub(crate) id: TaskId,
    pub(crate) life: LifeRecord,
    pub(crate) incarnation: Incarnation,
    pub(crate) since: LogIndex,
    pub(crate) recoverable: bool,
    pub(crate) registering: Option<CallId>,
    pub(crate) poll: Option<Poll>,
    pub(crate) devices: Option<Vec<Bytes>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum LifeRecord {
    Disconnected {
        grace_until: Option<TimeMs>,
    },
    Connected,
    /// With the fault of the last [`Piece::Error`].
    Error,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct BarrierRecord {
    pub(crate) name: BarrierName,
    pub(crate) members: Option<Members>,
    pub(crate) current: InstanceRecord,
    pub(crate) previous: Option<InstanceRecord>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct InstanceRecord {
    pub(crate) counter: BarrierCounter,
    pub(crate) opened: CallId,
    pub(crate) opened_at: TimeMs,
    pub(crate) first: TaskId,
    pub(crate) timeout: DurationMs,
    pub(crate) end: Option<End>,
    pub(crate) arrived: u64,
    pub(crate) voided: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RuntimeRecord {
    pub(crate) phase: runtime::record::Phase,
    pub(crate) shutdowns: u32,
    pub(crate) departed: u32,
    pub(crate) members: u64,
    pub(crate) barriers: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum RuntimeBarrierRecord {
    Open { arrived: u64 },
    Passed,
    Spoiled,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AliveRecord {
    pub(crate) id: CallId,
    pub(crate) answer: Answered,
}
