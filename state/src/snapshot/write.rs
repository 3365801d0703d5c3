//! A state as records.

use std::sync::Arc;

use crate::barrier::instance::{Barrier, Instance};
use crate::fault::Fault;
use crate::identity::Floor;
use crate::ids::BarrierName;
use crate::job::domains::{self, SnapshotSection};
use crate::job::record::Job;
use crate::level;
use crate::member::Registry;
use crate::runtime::record::{Barrier as RuntimeBarrier, Runtime};
use crate::snapshot::record::{
    AliveRecord, BarrierRecord, InstanceRecord, JobRecord, LifeRecord, Piece, Record, RuntimeBarrierRecord,
    RuntimeRecord, TaskRecord,
};
use crate::state::State;
use crate::task::record::{Life, Task};
use crate::token::Tokens;

/// What follows in a snapshot. In boxes: one iterator of all of them by value is moved from frame to frame of the stack
/// whenever it is folded, and had outgrown the stack of a thread.
pub(crate) type Section<'a> = Box<dyn Iterator<Item = Piece> + Send + 'a>;

impl State {
    /// Every record of this state, in order. Cloning a state is O(1), so this can run elsewhere
    /// while the original goes on.
    pub fn records(&self) -> impl Iterator<Item = Record> + '_ {
        let header = Piece::Header {
            now_ms: self.now_ms,
            jobs: self.jobs.len() as u64,
            sessions: self.sessions.len() as u64,
            members: self.members.len() as u64,
        };
        let members = self
            .members
            .iter()
            .map(|(node, addresses)| Piece::Member { node: *node, addresses: addresses.clone() });
        let sessions = self.sessions.iter().flat_map(|(id, session)| {
            let head = Piece::Session {
                id: *id,
                last_used: session.last_used,
                floor: session.floor,
                replies: session.replies.len() as u64,
            };
            let replies = session.replies.iter();
            let replies =
                replies.map(|(sequence, reply)| Piece::Reply { sequence: *sequence, reply: reply.clone() });
            std::iter::once(head).chain(replies)
        });
        let owned = self.sessions.owned().map(|(id, owned)| Piece::Owned {
            id: *id,
            owner: owned.owner,
            commands: owned.marks().collect(),
        });
        let registry = Some(&self.registry).filter(|registry| **registry != Registry::default());
        let registry = registry.map(|registry| Piece::Registry(Box::new(registry.clone())));
        let level = Some(self.level()).filter(|level| *level != level::FIRST).map(Piece::Level);
        let floor = Some(&self.floor).filter(|floor| **floor != Floor::default());
        let floor = floor.map(|floor| Piece::Floor(Box::new(floor.clone())));
        let openers = self.sessions.openers();
        let openers = openers.map(|(session, by)| Piece::Opener { session, identity: by.clone() });
        let names = self.names.iter().map(|(node, name)| Piece::Named { node: *node, name: name.clone() });
        let notes = self.notes.iter().map(|(job, note)| Piece::Note { job: *job, note: note.clone() });
        let drained = self.drained.iter().map(|node| Piece::Drained { node: *node });
        let sections: [Section<'_>; _] = [
            Box::new(std::iter::once(header)),
            Box::new(members),
            Box::new(sessions),
            Box::new(self.jobs.iter().flat_map(job_records)),
            Box::new(registry.into_iter()),
            Box::new(level.into_iter()),
            Box::new(notes),
            Box::new(drained),
            Box::new(domains::records(&self.jobs, SnapshotSection::BeforeSessionOwners)),
            Box::new(owned),
            Box::new(domains::records(&self.jobs, SnapshotSection::BehindSessionOwners)),
            Box::new(tokens(&self.tokens)),
            Box::new(self.events.records()),
            Box::new(names),
            Box::new(openers),
            Box::new(floor.into_iter()),
            Box::new(std::iter::once(Piece::End)),
        ];
        sections.into_iter().flatten().map(Record)
    }
}

fn tokens(tokens: &Tokens) -> impl Iterator<Item = Piece> + '_ {
    let head = Piece::Tokens { revision: tokens.revision(), tokens: tokens.len() as u64 };
    let each = tokens.iter().map(|(id, token)| Piece::Token { id, token: Box::new(token.clone()) });
    let is_empty = *tokens == Tokens::default();
    (!is_empty).then(|| std::iter::once(head).chain(each)).into_iter().flatten()
}

fn job_records(job: &Job) -> impl Iterator<Item = Piece> + '_ {
    let head = Piece::Job(Box::new(JobRecord {
        id: job.id,
        name: job.name.clone(),
        slot: job.slot,
        service: job.service,
        spec: job.spec.clone(),
        version: job.tasks.version(),
        protocols: job.protocols.iter().copied().collect(),
        polls_asked: job.polls.asked,
        latched: job.polls.latched.clone(),
        pushed: job.polls.pushed.iter().copied().collect(),
        tasks: job.tasks.record_count() as u64,
        barriers: job.barriers.len() as u64,
        failed_barriers: job.failed_barriers.iter().cloned().collect(),
        alive_open: job.alive.open().len() as u64,
        alive_answered: job.alive.answered().len() as u64,
        keys: job.store.keys(),
        increments: job.increments.len() as u64,
        runtime: job.runtime.as_deref().map(runtime_record),
    }));
    let answered = job.alive.answered().iter();
    let answered = answered.map(|(id, answer)| Piece::Alive(AliveRecord { id: *id, answer: answer.clone() }));
    let groups = job.alive.open().iter().flat_map(|(set, group)| {
        let called = group.called.len() as u64;
        let head = Piece::AliveGroup { id: group.id, set: set.clone(), called };
        std::iter::once(head).chain(group.called.iter().map(|task| Piece::AliveCall { task: *task }))
    });
    let keys = job.store.iter();
    let keys = keys.map(|(key, entry)| Piece::Key { key: key.clone(), entry: entry.clone() });
    let increments = job.increments.iter();
    let increments = increments
        .map(|(caller, increment)| Piece::Increment { caller: *caller, increment: increment.clone() });
    std::iter::once(head)
        .chain(task_records(job))
        .chain(job.barriers.iter().flat_map(|(name, barrier)| barrier_records(name, barrier)))
        .chain(groups)
        .chain(answered)
        .chain(keys)
        .chain(increments)
        .chain(job.runtime.as_deref().into_iter().flat_map(runtime_records))
}

fn runtime_record(runtime: &Runtime) -> RuntimeRecord {
    RuntimeRecord {
        phase: runtime.phase,
        shutdowns: runtime.shutdowns,
        departed: runtime.departed,
        members: runtime.members().len() as u64,
        barriers: runtime.barriers().len() as u64,
    }
}

fn runtime_records(runtime: &Runtime) -> impl Iterator<Item = Piece> + '_ {
    let members = runtime.members().iter();
    let members = members.map(|(task, member)| Piece::RuntimeMember { task: *task, member: member.clone() });
    let barriers = runtime.barriers().iter().flat_map(|(id, barrier)| {
        let (barrier, arrived) = match barrier {
            RuntimeBarrier::Open(arrived) => {
                (RuntimeBarrierRecord::Open { arrived: arrived.len() as u64 }, Some(arrived))
            }
            RuntimeBarrier::Passed => (RuntimeBarrierRecord::Passed, None),
            RuntimeBarrier::Spoiled => (RuntimeBarrierRecord::Spoiled, None),
        };
        let arrived = arrived.into_iter().flatten().map(|task| Piece::RuntimeArrived { task: *task });
        std::iter::once(Piece::RuntimeBarrier { id: id.clone(), barrier }).chain(arrived)
    });
    members.chain(barriers)
}

/// Tasks, each error once before the tasks that share it: one long text can stop a whole job.
fn task_records(job: &Job) -> impl Iterator<Item = Piece> + '_ {
    let mut shared: Option<Arc<Fault>> = None;
    job.tasks.records().flat_map(move |(id, task)| {
        let mut error = None;
        if let Life::Error(fault) = &task.life
            && shared.as_ref() != Some(fault)
        {
            shared = Some(Arc::clone(fault));
            error = Some(Piece::Error { fault: Fault::clone(fault) });
        }
        error.into_iter().chain(std::iter::once(Piece::Task(Box::new(TaskRecord {
            id: *id,
            life: life_record(task),
            incarnation: task.incarnation,
            since: task.since,
            recoverable: task.recoverable,
            registering: task.registering,
            poll: task.poll,
            devices: task.devices.as_deref().cloned(),
        }))))
    })
}

fn life_record(task: &Task) -> LifeRecord {
    match task.life {
        Life::Disconnected { grace_until } => LifeRecord::Disconnected { grace_until },
        Life::Connected => LifeRecord::Connected,
        Life::Error(_) => LifeRecord::Error,
    }
}

fn barrier_records<'a>(name: &'a BarrierName, barrier: &'a Barrier) -> impl Iterator<Item = Piece> + 'a {
    let head = Piece::Barrier(Box::new(BarrierRecord {
        name: name.clone(),
        members: barrier.members.clone(),
        current: instance_record(&barrier.current),
        previous: barrier.previous.as_deref().map(instance_record),
    }));
    let previous = barrier.previous.as_deref().into_iter().flat_map(call_records);
    std::iter::once(head).chain(call_records(&barrier.current)).chain(previous)
}

fn instance_record(instance: &Instance) -> InstanceRecord {
    InstanceRecord {
        counter: instance.counter,
        opened: instance.opened,
        opened_at: instance.opened_at,
        first: instance.first,
        timeout: instance.timeout,
        end: instance.end.clone(),
        arrived: instance.arrived.len() as u64,
        voided: instance.voided.len() as u64,
    }
}

fn call_records(instance: &Instance) -> impl Iterator<Item = Piece> + '_ {
    let arrived = instance.arrived.iter().map(|(task, call)| Piece::Arrived { task: *task, call: *call });
    let voided =
        instance.voided.iter().map(|(task, voided)| Piece::Voided { task: *task, voided: voided.clone() });
    arrived.chain(voided)
}
