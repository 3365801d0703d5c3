//! What a job holds besides its own record: domains that came after it, each of which is there only where it is used.
//!
//! An older build reads jobs' records, so what came later does not lie in them. A domain of which nothing is known counts
//! for nothing, in the digest as in a snapshot: a job without it is the same to a program that does not know it.

use std::hash::{Hash, Hasher};

use crate::events::Ring;
use crate::identity::registrants::Registrants;
use crate::ids::{FeatureLevel, JobId};
use crate::job::record::Job;
use crate::job::table::Table;
use crate::level;
use crate::mars::Mars;
use crate::mindspore::cluster::record::Cluster;
use crate::mindspore::topology::record::Topology;
use crate::ray::Ray;
use crate::snapshot::Malformed;
use crate::snapshot::read::Reader;
use crate::snapshot::record::{Piece, Record};
use crate::snapshot::write::Section;
use crate::state::State;
use crate::task::ended::Ends;
use crate::task::interval::Intervals;
use crate::task::origin::Origins;
use crate::task::process::Processes;
use crate::task::returned::Returned;
use crate::task::table::Table as Tasks;

/// The section of a snapshot in which the records of a domain stand. Nothing can be added but behind the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SnapshotSection {
    BeforeSessionOwners,
    BehindSessionOwners,
}

/// One domain of one job.
pub(crate) trait Domain: Default {
    const SECTION: SnapshotSection;
    /// The lowest level at which a state keeps it: when the level is lowered below, it is forgotten. What must not be
    /// forgotten keeps the level from being lowered: see [`State::fits`].
    const KEPT_SINCE: FeatureLevel;

    /// Whether nothing is known.
    fn is_empty(&self) -> bool;

    /// What it counts for in the digest, unless it is empty.
    fn digest<H: Hasher>(&self, hasher: &mut H);

    /// Bytes of memory that it takes outside of itself. O(1).
    fn bytes(&self) -> u64;

    /// The same from every single element.
    fn recounted(&self) -> u64 {
        self.bytes()
    }

    /// What a snapshot holds of it: any number of records, each of which names the job, or is followed by others that
    /// belong to it.
    fn records(&self, job: JobId) -> impl Iterator<Item = Piece>;

    /// The job of a record, if it is one of this domain.
    fn job_of(record: &Piece) -> Option<JobId>;

    /// Puts back one record, which [`Self::job_of`] has found to be of this domain, and those that follow it.
    ///
    /// # Errors
    /// It is out of place.
    fn restore<I: Iterator<Item = Record>>(
        &mut self,
        tasks: &Tasks,
        record: Piece,
        reader: &mut Reader<I>,
    ) -> Result<(), Malformed>;
}

macro_rules! domains {
    ($($(#[$doc:meta])* $name:ident: $domain:ty,)*) => {
        /// The domains of one job.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub(crate) struct Domains {
            $($(#[$doc])* pub(crate) $name: $domain,)*
        }

        impl Hash for Domains {
            fn hash<H: Hasher>(&self, hasher: &mut H) {
                $(if !Domain::is_empty(&self.$name) {
                    self.$name.digest(hasher);
                })*
            }
        }

        impl Domains {
            pub(crate) fn bytes(&self) -> u64 {
                0_u64$(.saturating_add(Domain::bytes(&self.$name)))*
            }

            pub(crate) fn recounted(&self) -> u64 {
                0_u64$(.saturating_add(Domain::recounted(&self.$name)))*
            }

            /// Whether there is something that a state of that level does not keep.
            pub(crate) fn is_above(&self, level: FeatureLevel) -> bool {
                $((level < <$domain>::KEPT_SINCE && !Domain::is_empty(&self.$name)) ||)* false
            }

            /// Forgets that.
            pub(crate) fn forget_above(&mut self, level: FeatureLevel) {
                $(if level < <$domain>::KEPT_SINCE {
                    self.$name = Default::default();
                })*
            }
        }

        /// What a section of a snapshot holds, domain by domain.
        pub(crate) fn records(jobs: &Table, section: SnapshotSection) -> impl Iterator<Item = Piece> + '_ {
            let sections = [$(
                (<$domain>::SECTION == section).then(|| -> Section<'_> {
                    Box::new(jobs.iter().flat_map(|job| job.domains.$name.records(job.id)))
                }),
            )*];
            sections.into_iter().flatten().flatten()
        }

        /// Puts back what stands in a section of a snapshot and begins with `record`. Gives what stands behind it.
        pub(crate) fn restore<I: Iterator<Item = Record>>(
            state: &mut State,
            section: SnapshotSection,
            mut record: Piece,
            reader: &mut Reader<I>,
        ) -> Result<Piece, Malformed> {
            $(if <$domain>::SECTION == section {
                record = restore_one(state, record, reader, |domains| &mut domains.$name)?;
            })*
            Ok(record)
        }
    };
}

domains! {
    intervals: Intervals,
    returned: Returned,
    processes: Processes,
    /// Begins with the first worker, driver or store that registers.
    ray: Option<Box<Ray>>,
    /// Begins with the first node that registers, or the first entry.
    topology: Option<Box<Topology>>,
    /// Begins with the first node that registers.
    cluster: Option<Box<Cluster>>,
    /// Begins with the first session.
    mars: Option<Box<Mars>>,
    ends: Ends,
    /// What happened.
    events: Ring,
    /// Where processes come from.
    origins: Origins,
    /// Who registered the lives of tasks.
    registrants: Registrants,
}

fn restore_one<D: Domain, I: Iterator<Item = Record>>(
    state: &mut State,
    mut record: Piece,
    reader: &mut Reader<I>,
    domain: impl Fn(&mut Domains) -> &mut D,
) -> Result<Piece, Malformed> {
    let mut before = None;
    while let Some(id) = D::job_of(&record) {
        let ascending = before.is_none_or(|before| before <= id);
        reader.check(ascending && D::KEPT_SINCE <= state.level())?;
        let Some(mut job) = state.jobs.edit(id) else { return reader.refuse("of a job that is not there") };
        let Job { tasks, domains, .. } = &mut *job;
        domain(domains).restore(tasks, record, reader)?;
        before = Some(id);
        record = reader.next()?;
    }
    Ok(record)
}

impl Domain for Option<Box<Ray>> {
    const SECTION: SnapshotSection = SnapshotSection::BeforeSessionOwners;
    const KEPT_SINCE: FeatureLevel = level::FIRST;

    fn is_empty(&self) -> bool {
        self.is_none()
    }

    fn digest<H: Hasher>(&self, hasher: &mut H) {
        if let Some(ray) = self {
            ray.hash(hasher);
        }
    }

    fn bytes(&self) -> u64 {
        self.as_ref().map_or(0, |ray| ray.bytes())
    }

    fn recounted(&self) -> u64 {
        self.as_ref().map_or(0, |ray| ray.recounted())
    }

    fn records(&self, job: JobId) -> impl Iterator<Item = Piece> {
        self.iter().flat_map(move |ray| {
            let head = Piece::Scheduler { job, head: Box::new(ray.head()) };
            std::iter::once(head).chain(ray.parts().map(|part| Piece::SchedulerPart(Box::new(part))))
        })
    }

    fn job_of(record: &Piece) -> Option<JobId> {
        let Piece::Scheduler { job, .. } = record else { return None };
        Some(*job)
    }

    fn restore<I: Iterator<Item = Record>>(
        &mut self,
        _: &Tasks,
        record: Piece,
        reader: &mut Reader<I>,
    ) -> Result<(), Malformed> {
        let Piece::Scheduler { head, .. } = record else { return reader.refuse("not a scheduler") };
        reader.check(self.is_none())?;
        *self = Some(Box::new(reader.scheduler(&head)?));
        Ok(())
    }
}
