//! What happened to the cluster itself, and the last of jobs that are gone.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::context::ApplyContext;
use crate::events::of_job::{pieces_of, read_event};
use crate::events::part::Part;
use crate::events::{
    ENDED_JOBS_KEPT, ENDED_KEPT_MS, ENDED_MILESTONES_KEPT, Head, MILESTONE_BYTES_MAX, Ring, What, what,
};
use crate::ids::{FeatureLevel, JobId, JobName, LogIndex, NodeId, Term, TimeMs};
use crate::job::record::Job;
use crate::level::Rule;
use crate::limits::JOB_NAME_CHARS_MAX;
use crate::member::{Change, Ending};
use crate::memory::{Weigh, Weighed, of_text};
use crate::snapshot::Malformed;
use crate::snapshot::read::Reader;
use crate::snapshot::record::{Piece, Record};
use crate::state::State;

/// The events that are no job's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct OfCluster {
    /// Of the newest entry; 0: none is known.
    term: Term,
    pub(crate) ring: Ring,
    /// By id, which says nothing of when they ended.
    pub(crate) ended: Weighed<JobId, Arc<Ended>>,
}

/// The last milestones of a job that is gone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Ended {
    pub(crate) head: EndedHead,
    pub(crate) milestones: Part,
}

/// What is known of a job that is gone besides.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct EndedHead {
    pub(crate) job: JobId,
    pub(crate) name: JobName,
    /// Where it was deleted, and when.
    pub(crate) index: LogIndex,
    pub(crate) at: TimeMs,
    pub(crate) ring: Head,
}

impl Weigh for Ended {
    fn outside(&self) -> u64 {
        of_text(self.head.name.as_str().len()).saturating_add(self.milestones.weight())
    }
}

impl OfCluster {
    pub(crate) fn is_empty(&self) -> bool {
        self.term == Term(0) && self.ring.is_empty() && self.ended.is_empty()
    }

    pub(crate) fn weight(&self) -> u64 {
        self.ring.weight().saturating_add(self.ended.bytes())
    }

    pub(crate) fn recounted(&self) -> u64 {
        self.ring.recounted_weight().saturating_add(self.ended.recounted())
    }

    /// Keeps the last of a job that is deleted now.
    fn bury(&mut self, job: &Job, (index, now): (LogIndex, TimeMs)) {
        let mut ring = job.domains.events.clone();
        ring.add((index, now), What::JobDeleted, None);
        let Ring { mut head, mut milestones, mut traffic } = ring;
        let (events, until) = milestones.keep(MILESTONE_BYTES_MAX, ENDED_MILESTONES_KEPT);
        head.milestones.events += events;
        head.milestones.until = head.milestones.until.max(until);
        // Of what is no milestone nothing is kept.
        let (events, until) = traffic.keep(0, 0);
        head.traffic.events += events;
        head.traffic.until = head.traffic.until.max(until);
        let head = EndedHead { job: job.id, name: job.name.clone(), index, at: now, ring: head };
        self.ended.insert(job.id, Arc::new(Ended { head, milestones }));
        self.forget_old(now);
        while self.ended.len() > ENDED_JOBS_KEPT {
            let oldest = self.ended.values().min_by_key(|ended| ended.head.index).map(|ended| ended.head.job);
            let Some(oldest) = oldest else { break };
            self.ended.remove(&oldest);
        }
    }

    fn forget_old(&mut self, now: TimeMs) {
        let old = self.ended.values().filter(|ended| ended.is_old(now)).map(|ended| ended.head.job);
        for job in old.collect::<Vec<_>>() {
            self.ended.remove(&job);
        }
    }

    /// As records, unless there is nothing.
    pub(crate) fn records(&self) -> impl Iterator<Item = Piece> {
        let head = Piece::ClusterEvents {
            term: self.term,
            head: Box::new(self.ring.head),
            events: self.ring.count(),
            ended: self.ended.len() as u64,
        };
        let ended = self.ended.values().flat_map(|ended| {
            let events = ended.milestones.len() as u64;
            let head = Piece::EndedJob { head: Box::new(ended.head.clone()), events };
            std::iter::once(head).chain(pieces_of(&ended.milestones))
        });
        (!self.is_empty()).then_some(head).into_iter().chain(self.ring.pieces()).chain(ended)
    }

    /// Those whose first record was read, if it is one of theirs. Gives what stands behind them.
    pub(crate) fn read<I: Iterator<Item = Record>>(
        record: Piece,
        level: FeatureLevel,
        reader: &mut Reader<I>,
    ) -> Result<(Self, Piece), Malformed> {
        let Piece::ClusterEvents { term, head, events, ended } = record else {
            return Ok((Self::default(), record));
        };
        reader.check(Rule::Events.holds_at(level) && ended <= ENDED_JOBS_KEPT as u64)?;
        let ring = if head.made == 0 { Ring::default() } else { Ring::read(*head, events, reader)? };
        let mut all = Self { term, ring, ended: Weighed::default() };
        for _ in 0..ended {
            let Piece::EndedJob { head, events } = reader.next()? else {
                return reader.refuse("not a job that is gone");
            };
            let ascending = all.ended.get_max().is_none_or(|(last, _)| *last < head.job);
            let name_fits = head.name.as_str().len() <= JOB_NAME_CHARS_MAX;
            reader.check(ascending && name_fits && events <= ENDED_MILESTONES_KEPT as u64)?;
            let mut milestones = Part::default();
            let mut last = 0;
            for _ in 0..events {
                let event = read_event(reader)?;
                reader.check(last < event.number && event.what.is_milestone())?;
                last = event.number;
                milestones.push(event);
            }
            reader.check(milestones.bytes() <= MILESTONE_BYTES_MAX)?;
            all.ended.insert(head.job, Arc::new(Ended { head: *head, milestones }));
        }
        Ok((all, reader.next()?))
    }
}

impl Ended {
    /// Whether it is not to be told of any more.
    pub(crate) fn is_old(&self, now: TimeMs) -> bool {
        now > self.head.at.plus(ENDED_KEPT_MS)
    }
}

impl State {
    /// Whether it is told what happens.
    fn tells(&self) -> bool {
        Rule::Events.holds_at(self.level())
    }

    /// To be called with every command, before it is executed: whose term it is, somebody leads.
    pub(crate) fn follow_term(&mut self, context: &ApplyContext) {
        if !self.tells() || self.events.term == context.term {
            return;
        }
        let is_first = std::mem::replace(&mut self.events.term, context.term) == Term(0);
        if !is_first {
            let term = context.term;
            self.cluster_event(context, What::TermChanged { term });
        }
    }

    fn cluster_event(&mut self, context: &ApplyContext, what: What) {
        if self.tells() {
            self.events.ring.add((context.index, context.now_ms), what, None);
        }
    }

    /// A job was created or written about.
    pub(crate) fn job_event(&mut self, context: &ApplyContext, job: JobId, what: What) {
        if self.tells()
            && let Some(mut job) = self.jobs.edit(job)
        {
            job.domains.events.add((context.index, context.now_ms), what, None);
        }
    }

    /// A job is about to be deleted.
    pub(crate) fn bury_events(&mut self, context: &ApplyContext, job: JobId) {
        if self.tells()
            && let Some(job) = self.jobs.get(job)
        {
            self.events.bury(job, (context.index, context.now_ms));
        }
    }

    pub(crate) fn level_event(&mut self, context: &ApplyContext, from: FeatureLevel) {
        let to = self.level();
        if !self.tells() {
            self.events = OfCluster::default();
        } else if from != to {
            self.events.term = context.term;
            self.cluster_event(context, What::LevelChanged { from, to });
        }
    }

    pub(crate) fn drain_event(&mut self, context: &ApplyContext, node: NodeId, drained: bool) {
        self.cluster_event(context, What::Drained { node, drained });
    }

    /// A change of the members began, or ended.
    pub(crate) fn change_event(&mut self, context: &ApplyContext, change: &Change, how: &Changing<'_>) {
        if self.tells() {
            let said = match how {
                Changing::Began { by } => format!("{change}: begun, wanted by {by}"),
                Changing::GivenUp => format!("{change}: the operator gave it up"),
                Changing::Ended(Ending::Done) => format!("{change}: done"),
                Changing::Ended(Ending::Cancelled) => format!("{change}: cancelled"),
                Changing::Ended(Ending::Failed(why)) => format!("{change}: failed, {why}"),
            };
            self.cluster_event(context, What::MembersChanged { text: what::text(&said) });
        }
    }
}

/// What became of a change of the members.
pub(crate) enum Changing<'a> {
    Began { by: &'a str },
    GivenUp,
    Ended(&'a Ending),
}
