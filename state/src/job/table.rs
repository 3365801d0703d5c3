//! All jobs of the cluster.

use std::sync::Arc;

use imbl::OrdMap;

use crate::command::{Answer, Effect, Reply, Scope};
use crate::context::ApplyContext;
use crate::fault::Fault;
use crate::identity::registrants::Registrants;
use crate::ids::{FeatureLevel, JobId, JobName, JobSlot, ServiceIncarnation};
use crate::job::domains::Domain as _;
use crate::job::record::Job;
use crate::job::turn::Turn;
use crate::job::{DEFAULT_JOB, Spec, spec};
use crate::limits::JOB_SLOTS_MAX;
use crate::memory::{Edit, Weighed};
use crate::ray::Ray;

/// The jobs, by id, by name and by slot. The last two are derived from the first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Table {
    jobs: Weighed<JobId, Arc<Job>>,
    names: OrdMap<JobName, JobId>,
    slots: OrdMap<JobSlot, JobId>,
}

impl Table {
    pub(crate) fn get(&self, job: JobId) -> Option<&Job> {
        self.jobs.get(&job).map(Arc::as_ref)
    }

    /// The job of a scope, if the caller believes in its service.
    pub(crate) fn scoped(&self, scope: Scope) -> Result<&Job, Fault> {
        let job = self.get(scope.job).ok_or(Fault::JobUnknown { name: None })?;
        job.check(scope)?;
        Ok(job)
    }

    pub(crate) fn named(&self, name: &str) -> Option<JobId> {
        self.names.get(name).copied()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Job> {
        self.jobs.values().map(Arc::as_ref)
    }

    pub(crate) fn slots(&self) -> impl Iterator<Item = (JobSlot, JobId)> {
        self.slots.iter().map(|(slot, job)| (*slot, *job))
    }

    pub(crate) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Adds a job and its places in the derived maps; `false` if one of them is taken.
    pub(crate) fn add(&mut self, job: Job) -> bool {
        let fresh_name = self.names.insert(job.name.clone(), job.id).is_none();
        let fresh_slot = job.slot.is_none_or(|slot| self.slots.insert(slot, job.id).is_none());
        let fresh_id = self.jobs.insert(job.id, Arc::new(job)).is_none();
        fresh_name && fresh_slot && fresh_id
    }

    /// From now on no job knows what a state of that level does not keep.
    pub(crate) fn forget_above(&mut self, level: FeatureLevel) {
        let with: Vec<JobId> =
            self.iter().filter(|job| job.domains.is_above(level)).map(|job| job.id).collect();
        for job in with {
            self.edit(job).expect("it was just found").domains.forget_above(level);
        }
    }

    /// From now on nobody is known to have registered any task.
    pub(crate) fn forget_registrants(&mut self) {
        let with: Vec<JobId> =
            self.iter().filter(|job| !job.domains.registrants.is_empty()).map(|job| job.id).collect();
        for job in with {
            self.edit(job).expect("it was just found").domains.registrants = Registrants::default();
        }
    }

    /// Does something to the schedulers of all jobs that have one; those for which it says that it changed something.
    pub(crate) fn change_schedulers(&mut self, change: impl Fn(&mut Ray) -> bool) -> Vec<JobId> {
        let with: Vec<JobId> =
            self.iter().filter(|job| job.domains.ray.is_some()).map(|job| job.id).collect();
        let changed = with.into_iter().filter(|job| {
            let mut job = self.edit(*job).expect("it was just found");
            job.domains.ray.as_deref_mut().is_some_and(&change)
        });
        changed.collect()
    }

    /// `wanted`: name, spec and service incarnation.
    pub(crate) fn create(
        &mut self,
        context: &ApplyContext,
        (name, spec, service): (&str, Spec, ServiceIncarnation),
        effects: &mut Vec<Effect>,
    ) -> Reply {
        let name = spec::check_name(name)?;
        spec.check()?;
        if self.named(name.as_str()).is_some() {
            return Err(Fault::JobExists { name });
        }
        let slot = self.free_slot(&name)?;
        let id = JobId(context.index.0);
        let job = Job::new(id, name, slot, service, spec);
        let summary = job.summary();
        let fresh = self.add(job);
        assert!(fresh, "a log index makes one job, and its name and slot were free");
        effects.push(Effect::JobCreated { job: id });
        Ok(Answer::Job(Box::new(summary)))
    }

    pub(crate) fn delete(&mut self, name: &str, effects: &mut Vec<Effect>) -> Reply {
        let Some(id) = self.names.remove(name) else {
            return Err(Fault::JobUnknown { name: Some(JobName::from(spec::shown(name).as_str())) });
        };
        let job = self.jobs.remove(&id).expect("every name belongs to a job");
        if let Some(slot) = job.slot {
            self.slots.remove(&slot);
        }
        effects.push(Effect::JobDeleted { job: id });
        Ok(Answer::Done)
    }

    /// Lets a command work on its job.
    pub(crate) fn turn(
        &mut self,
        scope: Scope,
        (level, context): (FeatureLevel, &ApplyContext),
        effects: &mut Vec<Effect>,
        work: impl FnOnce(&mut Turn<'_>) -> Reply,
    ) -> Reply {
        self.scoped(scope)?;
        let mut job = self.edit(scope.job).expect("it was just found");
        let mut turn = Turn::new(&mut job, level, *context, effects);
        let reply = work(&mut turn);
        turn.finish();
        reply
    }

    /// What they take of memory, roughly.
    pub(crate) fn bytes(&self) -> u64 {
        self.jobs.bytes()
    }

    /// A job, to be changed.
    pub(crate) fn edit(&mut self, job: JobId) -> Option<Edit<'_, Job>> {
        let (job, total) = self.jobs.slot(&job)?;
        Some(Edit::new(Arc::make_mut(job), total))
    }

    /// The lowest free slot. The default job lives on the client port and needs none.
    fn free_slot(&self, name: &JobName) -> Result<Option<JobSlot>, Fault> {
        if name.as_str() == DEFAULT_JOB {
            return Ok(None);
        }
        (0..JOB_SLOTS_MAX)
            .map(JobSlot)
            .find(|slot| !self.slots.contains_key(slot))
            .map(Some)
            .ok_or(Fault::JobSlotsTaken { slots: JOB_SLOTS_MAX })
    }
}
