//! Records as a state.

use std::sync::Arc;

use imbl::OrdSet;

use crate::barrier::instance::{Barrier, Instance};
use crate::barrier::report::Failed;
use crate::events::OfCluster;
use crate::fault::Fault;
use crate::identity::Floor;
use crate::ids::{LogIndex, Sequence, SessionId, TaskId, TimeMs};
use crate::job::domains::{self, SnapshotSection};
use crate::job::record::{Job, Polls};
use crate::level;
use crate::level::{Kind, Rule};
use crate::limits::TOKEN_BY_BYTES_MAX;
use crate::member::names;
use crate::memory::Weighed;
use crate::ray::Ray;
use crate::ray::part::Head;
use crate::runtime::record::{Barrier as RuntimeBarrier, Runtime};
use crate::session::table::Session;
use crate::snapshot::Malformed;
use crate::snapshot::record::{
    BarrierRecord, InstanceRecord, JobRecord, LifeRecord, Piece, Record, RuntimeBarrierRecord, RuntimeRecord,
    TaskRecord,
};
use crate::state::State;
use crate::task::record::{Life, Task};
use crate::token::Tokens;

impl State {
    /// The state that [`Self::records`] came from. Reads up to the end record.
    ///
    /// # Errors
    /// [`Malformed`] when a record is out of place, missing or one too many.
    pub fn from_records(records: impl Iterator<Item = Record>) -> Result<Self, Malformed> {
        Reader { records, position: 0 }.state()
    }
}

/// Reads records in order.
pub(crate) struct Reader<I> {
    records: I,
    /// Records read so far.
    position: u64,
}

impl<I: Iterator<Item = Record>> Reader<I> {
    fn state(mut self) -> Result<State, Malformed> {
        let mut state = State::default();
        let Piece::Header { now_ms, jobs, sessions, members } = self.next()? else {
            return self.refuse("not a header");
        };
        state.now_ms = now_ms;
        for _ in 0..members {
            let Piece::Member { node, addresses } = self.next()? else { return self.refuse("not a member") };
            self.check(state.members.get_max().is_none_or(|(last, _)| *last < node))?;
            state.members.insert(node, addresses);
        }
        for _ in 0..sessions {
            let Piece::Session { id, last_used, floor, replies } = self.next()? else {
                return self.refuse("not a session");
            };
            let session = self.session(last_used, floor, replies)?;
            self.restore_session(&mut state, id, session)?;
        }
        for _ in 0..jobs {
            let Piece::Job(head) = self.next()? else { return self.refuse("not a job") };
            let job = self.job(*head)?;
            let ascending = state.jobs.iter().last().is_none_or(|last| last.id < job.id);
            self.check(ascending && state.jobs.add(job))?;
        }
        let mut last = self.next()?;
        if let Piece::Registry(registry) = last {
            state.registry = *registry;
            last = self.next()?;
        }
        if let Piece::Level(level) = last {
            self.check(level > level::FIRST)?;
            state.levels.level = level;
            last = self.next()?;
        }
        while let Piece::Note { job, note } = last {
            let ascending = state.notes.get_max().is_none_or(|(last, _)| *last < job);
            self.check(ascending && state.jobs.get(job).is_some())?;
            state.notes.insert(job, note);
            last = self.next()?;
        }
        while let Piece::Drained { node } = last {
            self.check(state.drained.insert(node).is_none())?;
            last = self.next()?;
        }
        last = domains::restore(&mut state, SnapshotSection::BeforeSessionOwners, last, &mut self)?;
        while let Piece::Owned { id, owner, commands } = last {
            let known = Rule::OwnedSessions.holds_at(state.level());
            self.check(known && state.sessions.restore_owner(id, owner, &commands))?;
            last = self.next()?;
        }
        last = domains::restore(&mut state, SnapshotSection::BehindSessionOwners, last, &mut self)?;
        last = self.level_11(&mut state, last)?;
        if state.fits(state.level()).is_err() {
            return self.refuse("the end of a state that needs a higher level");
        }
        let Piece::End = last else { return self.refuse("not the end") };
        match self.records.next() {
            None => Ok(state),
            Some(_) => self.refuse("behind the end"),
        }
    }

    /// What stands behind all jobs' domains from level 11 on, of which `last` may be the first record. Gives the record behind it.
    fn level_11(&mut self, state: &mut State, mut last: Piece) -> Result<Piece, Malformed> {
        if let Piece::Tokens { revision, tokens } = last {
            self.check(state.level() >= Kind::TOKEN_CREATE.needs && revision.0 > 0)?;
            state.tokens = self.tokens(revision, tokens)?;
            last = self.next()?;
        }
        (state.events, last) = OfCluster::read(last, state.level(), self)?;
        while let Piece::Named { node, name } = last {
            let ascending = state.names.get_max().is_none_or(|(last, _)| *last < node);
            let is_legal = names::check(&name, node).is_ok();
            self.check(ascending && is_legal && state.level() >= Kind::MEMBER_BIND.needs)?;
            state.names.insert(node, name);
            last = self.next()?;
        }
        let mut before = None;
        while let Piece::Opener { session, identity } = last {
            let ascending = before.is_none_or(|before| before < session);
            self.check(ascending && state.level() >= Kind::BY.needs)?;
            self.check(state.sessions.restore_opener(session, identity))?;
            before = Some(session);
            last = self.next()?;
        }
        if let Piece::Floor(floor) = last {
            let is_one = *floor != Floor::default() && floor.by.len() <= TOKEN_BY_BYTES_MAX;
            self.check(is_one && state.level() >= Kind::SET_FLOOR.needs)?;
            state.floor = *floor;
            last = self.next()?;
        }
        Ok(last)
    }

    fn tokens(&mut self, revision: LogIndex, count: u64) -> Result<Tokens, Malformed> {
        let mut tokens = Tokens { revision, ..Tokens::default() };
        for _ in 0..count {
            let Piece::Token { id, token } = self.next()? else { return self.refuse("not a token") };
            self.check(tokens.all.get_max().is_none_or(|(last, _)| *last < id))?;
            tokens.all.insert(id, *token);
        }
        Ok(tokens)
    }

    fn session(&mut self, last_used: TimeMs, floor: Sequence, replies: u64) -> Result<Session, Malformed> {
        let mut session = Session { last_used, floor, replies: Weighed::default() };
        for _ in 0..replies {
            let Piece::Reply { sequence, reply } = self.next()? else { return self.refuse("not a reply") };
            let last = session.replies.get_max().map(|(last, _)| *last);
            self.check(sequence >= floor && last.is_none_or(|last| last < sequence))?;
            session.replies.insert(sequence, reply);
        }
        Ok(session)
    }

    fn restore_session(
        &mut self,
        state: &mut State,
        id: SessionId,
        session: Session,
    ) -> Result<(), Malformed> {
        let ascending = state.sessions.restore(id, session);
        self.check(ascending)
    }

    fn job(&mut self, head: JobRecord) -> Result<Job, Malformed> {
        let mut job = Job::new(head.id, head.name, head.slot, head.service, head.spec);
        job.tasks.restore_version(head.version);
        job.protocols = head.protocols.into_iter().collect();
        job.polls = Polls {
            asked: head.polls_asked,
            latched: head.latched,
            pushed: head.pushed.into_iter().collect(),
        };
        job.failed_barriers = match Failed::restore(head.failed_barriers) {
            Some(failed) => failed,
            None => return self.refuse("a job with failed barriers that are none"),
        };
        self.tasks(&mut job, head.tasks)?;
        for _ in 0..head.barriers {
            let Piece::Barrier(head) = self.next()? else { return self.refuse("not a barrier") };
            self.barrier(&mut job, *head)?;
        }
        for _ in 0..head.alive_open {
            let Piece::AliveGroup { id, set, called } = self.next()? else {
                return self.refuse("not a group");
            };
            let mut callers = OrdSet::new();
            for _ in 0..called {
                let Piece::AliveCall { task } = self.next()? else {
                    return self.refuse("not a group's call");
                };
                self.check(callers.get_max().is_none_or(|last| *last < task))?;
                callers.insert(task);
            }
            let ascending = job.alive.restore_open(set, id, callers, &job.tasks);
            self.check(ascending)?;
        }
        for _ in 0..head.alive_answered {
            let Piece::Alive(record) = self.next()? else { return self.refuse("not a group's answer") };
            let ascending = job.alive.restore_answered(record.id, record.answer);
            self.check(ascending)?;
        }
        for _ in 0..head.keys {
            let Piece::Key { key, entry } = self.next()? else { return self.refuse("not a key") };
            let ascending = job.store.restore(key, entry);
            self.check(ascending)?;
        }
        for _ in 0..head.increments {
            let Piece::Increment { caller, increment } = self.next()? else {
                return self.refuse("not an increment");
            };
            let ascending = job.increments.restore(caller, increment);
            self.check(ascending)?;
        }
        if let Some(head) = head.runtime {
            job.runtime = Some(Box::new(self.runtime(&job, &head)?));
        }
        Ok(job)
    }

    fn runtime(&mut self, job: &Job, head: &RuntimeRecord) -> Result<Runtime, Malformed> {
        let mut runtime = Runtime::new(head.phase, head.shutdowns, head.departed);
        for _ in 0..head.members {
            let Piece::RuntimeMember { task, member } = self.next()? else {
                return self.refuse("not a member of the runtime");
            };
            let ascending = runtime.restore_member(task, member);
            self.check(ascending && job.tasks.contains(task))?;
        }
        for _ in 0..head.barriers {
            let Piece::RuntimeBarrier { id, barrier } = self.next()? else {
                return self.refuse("not a barrier of the runtime");
            };
            let barrier = match barrier {
                RuntimeBarrierRecord::Open { arrived } => RuntimeBarrier::Open(self.arrived(arrived)?),
                RuntimeBarrierRecord::Passed => RuntimeBarrier::Passed,
                RuntimeBarrierRecord::Spoiled => RuntimeBarrier::Spoiled,
            };
            let ascending = runtime.restore_barrier(id, barrier);
            self.check(ascending)?;
        }
        Ok(runtime)
    }

    /// The scheduler whose head was read last.
    pub(crate) fn scheduler(&mut self, head: &Head) -> Result<Ray, Malformed> {
        let mut ray = Ray::from_head(head);
        let mut last_rank = 0;
        for _ in 0..head.parts {
            let Piece::SchedulerPart(part) = self.next()? else {
                return self.refuse("not part of a scheduler");
            };
            let rank = part.rank();
            let in_place = ray.add(*part);
            self.check(in_place && last_rank <= rank)?;
            last_rank = rank;
        }
        match ray.derive() {
            Ok(()) => Ok(ray),
            Err(problem) => self.refuse(&format!("the last part of a scheduler in which {problem}")),
        }
    }

    fn arrived(&mut self, count: u64) -> Result<OrdSet<TaskId>, Malformed> {
        let mut arrived = OrdSet::new();
        for _ in 0..count {
            let Piece::RuntimeArrived { task } = self.next()? else {
                return self.refuse("not an arrival in the runtime");
            };
            self.check(arrived.get_max().is_none_or(|last| *last < task))?;
            arrived.insert(task);
        }
        Ok(arrived)
    }

    fn tasks(&mut self, job: &mut Job, count: u64) -> Result<(), Malformed> {
        let mut error = None;
        for _ in 0..count {
            let mut record = self.next()?;
            if let Piece::Error { fault } = record {
                error = Some(Arc::new(fault));
                record = self.next()?;
            }
            let Piece::Task(record) = record else { return self.refuse("not a task") };
            let id = record.id;
            let task = self.task(*record, error.as_ref())?;
            let fits = job.tasks.restore(id, task);
            self.check(fits)?;
        }
        Ok(())
    }

    fn task(&mut self, record: TaskRecord, error: Option<&Arc<Fault>>) -> Result<Task, Malformed> {
        let life = match (record.life, error) {
            (LifeRecord::Disconnected { grace_until }, _) => Life::Disconnected { grace_until },
            (LifeRecord::Connected, _) => Life::Connected,
            (LifeRecord::Error, Some(fault)) => Life::Error(Arc::clone(fault)),
            (LifeRecord::Error, None) => return self.refuse("a failed task without its error"),
        };
        Ok(Task {
            life,
            incarnation: record.incarnation,
            since: record.since,
            recoverable: record.recoverable,
            registering: record.registering,
            poll: record.poll,
            devices: record.devices.map(Arc::new),
        })
    }

    fn barrier(&mut self, job: &mut Job, head: BarrierRecord) -> Result<(), Malformed> {
        let current = self.instance(head.current)?;
        let previous = match head.previous {
            Some(record) => Some(Arc::new(self.instance(record)?)),
            None => None,
        };
        let ascending = job.barriers.restore(head.name, Barrier { members: head.members, current, previous });
        self.check(ascending)
    }

    fn instance(&mut self, record: InstanceRecord) -> Result<Instance, Malformed> {
        let mut instance =
            Instance::new(record.counter, record.opened, record.opened_at, record.first, record.timeout);
        instance.end = record.end;
        for _ in 0..record.arrived {
            let Piece::Arrived { task, call } = self.next()? else { return self.refuse("not an arrival") };
            self.check(instance.arrived.get_max().is_none_or(|(last, _)| *last < task))?;
            instance.arrived.insert(task, call);
        }
        for _ in 0..record.voided {
            let Piece::Voided { task, voided } = self.next()? else {
                return self.refuse("not an ended call");
            };
            self.check(instance.voided.get_max().is_none_or(|(last, _)| *last < task))?;
            instance.voided.insert(task, voided);
        }
        Ok(instance)
    }

    pub(crate) fn next(&mut self) -> Result<Piece, Malformed> {
        match self.records.next() {
            Some(Record(piece)) => {
                self.position += 1;
                Ok(piece)
            }
            None => {
                Err(Malformed { position: self.position, problem: "missing: the stream ends early".into() })
            }
        }
    }

    /// Judges the record that was read last.
    pub(crate) fn check(&self, in_place: bool) -> Result<(), Malformed> {
        if in_place { Ok(()) } else { self.refuse("out of order or a duplicate") }
    }

    /// Refuses the record that was read last.
    pub(crate) fn refuse<T>(&self, problem: &str) -> Result<T, Malformed> {
        Err(Malformed { position: self.position.saturating_sub(1), problem: problem.to_owned() })
    }
}
