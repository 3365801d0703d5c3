//! Reads of what happened.

use std::sync::Arc;

use crate::events::ring::Dropped;
use crate::events::{Event, Head, Position, Ring};
use crate::ids::{JobId, JobName, TimeMs};
use crate::state::State;

/// The events of a job, or of the cluster, that are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub kept: Kept,
    /// In the order in which they began.
    pub events: Vec<Arc<Event>>,
}

/// What is kept of a ring, and what is not any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// `None`: the cluster's own.
    pub job: Option<(JobId, JobName)>,
    /// Whether the job is gone.
    pub ended: bool,
    /// When the first one was told; before, nothing was.
    pub began: TimeMs,
    /// Since when milestones, and all events, are there without a gap.
    pub milestones_since: TimeMs,
    pub since: TimeMs,
    /// So many events there were, which is the number of the newest one; so many were told by one that was there; and so many
    /// had to make room for others.
    pub made: u64,
    pub merged: u64,
    pub dropped: u64,
    /// The newest change.
    pub last: Position,
}

impl Kept {
    fn of(job: Option<(JobId, JobName)>, head: &Head) -> Self {
        let since = |dropped: Dropped| head.began.max(dropped.until);
        let milestones_since = since(head.milestones);
        Self {
            job,
            ended: false,
            began: head.began,
            milestones_since,
            since: milestones_since.max(since(head.traffic)),
            made: head.made,
            merged: head.merged,
            dropped: head.milestones.events + head.traffic.events,
            last: head.last,
        }
    }
}

impl State {
    /// The job of that name, or the last one that was deleted of which something is kept.
    #[must_use]
    pub fn job_with_events(&self, name: &str) -> Option<JobId> {
        self.job_named(name).or_else(|| {
            let gone = self.events.ended.values().filter(|ended| !ended.is_old(self.now_ms()));
            let of_name = gone.filter(|ended| ended.head.name.as_str() == name);
            of_name.max_by_key(|ended| ended.head.index).map(|ended| ended.head.job)
        })
    }

    /// Where the events of a job have got to. O(1): whoever follows them asks often.
    #[must_use]
    pub fn events_at(&self, job: JobId) -> Option<(Position, bool)> {
        match self.jobs.get(job) {
            Some(job) => Some((job.domains.events.head.last, false)),
            None => self.events.ended.get(&job).map(|ended| (ended.head.ring.last, true)),
        }
    }

    /// The events of a job that are wanted; of one that is gone, of its last milestones. `None`: nothing is known of it.
    #[must_use]
    pub fn events_of(&self, job: JobId, is_wanted: impl Fn(&Event) -> bool) -> Option<Listed> {
        if let Some(job) = self.jobs.get(job) {
            let kept = Kept::of(Some((job.id, job.name.clone())), &job.domains.events.head);
            return Some(Listed { kept, events: wanted(&job.domains.events, is_wanted) });
        }
        let ended = self.events.ended.get(&job).filter(|ended| !ended.is_old(self.now_ms()))?;
        let kept = Kept::of(Some((job, ended.head.name.clone())), &ended.head.ring);
        // Of what is no milestone nothing is left.
        let kept = Kept { ended: true, since: ended.head.at, ..kept };
        let events = ended.milestones.iter().filter(|event| is_wanted(event)).map(Arc::clone).collect();
        Some(Listed { kept, events })
    }

    /// Those of the cluster itself.
    #[must_use]
    pub fn cluster_rings(&self, is_wanted: impl Fn(&Event) -> bool) -> Listed {
        let ring = &self.events.ring;
        Listed { kept: Kept::of(None, &ring.head), events: wanted(ring, is_wanted) }
    }

    /// Every job of which there are events, by id; those that are gone, too.
    #[must_use]
    pub fn jobs_with_events(&self) -> Vec<JobId> {
        let there = self.jobs.iter().filter(|job| !job.domains.events.is_empty()).map(|job| job.id);
        let gone = self.events.ended.iter().filter(|(_, ended)| !ended.is_old(self.now_ms()));
        let mut all: Vec<JobId> = there.chain(gone.map(|(job, _)| *job)).collect();
        all.sort_unstable();
        all
    }

    /// Bytes of all events, as their bounds count them.
    #[must_use]
    pub fn events_bytes(&self) -> u64 {
        let of_jobs = self.jobs.iter().map(|job| job.domains.events.bytes());
        let of_ended = self.events.ended.values().map(|ended| ended.milestones.bytes());
        of_jobs.chain(of_ended).fold(self.events.ring.bytes(), u64::saturating_add)
    }
}

fn wanted(ring: &Ring, is_wanted: impl Fn(&Event) -> bool) -> Vec<Arc<Event>> {
    ring.events().filter(|event| is_wanted(event)).map(Arc::clone).collect()
}
