//! The ring of a job, as one of its domains.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::events::part::Part;
use crate::events::{Event, Head, MILESTONE_BYTES_MAX, Ring, TRAFFIC_BYTES_MAX};
use crate::ids::{FeatureLevel, JobId};
use crate::job::domains::{Domain, SnapshotSection};
use crate::level::Rule;
use crate::snapshot::Malformed;
use crate::snapshot::read::Reader;
use crate::snapshot::record::{Piece, Record};
use crate::task::table::Table;

/// Without it nobody knows what happened, and everything goes on.
impl Domain for Ring {
    const SECTION: SnapshotSection = SnapshotSection::BehindSessionOwners;
    const KEPT_SINCE: FeatureLevel = Rule::Events.since();

    fn is_empty(&self) -> bool {
        self.is_empty()
    }

    fn digest<H: Hasher>(&self, hasher: &mut H) {
        self.hash(hasher);
    }

    fn bytes(&self) -> u64 {
        self.weight()
    }

    fn recounted(&self) -> u64 {
        self.recounted_weight()
    }

    fn records(&self, job: JobId) -> impl Iterator<Item = Piece> {
        let head = Piece::Events { job, head: Box::new(self.head), events: self.count() };
        let head = (!self.is_empty()).then_some(head);
        head.into_iter().chain(self.pieces())
    }

    fn job_of(record: &Piece) -> Option<JobId> {
        let Piece::Events { job, .. } = record else { return None };
        Some(*job)
    }

    fn restore<I: Iterator<Item = Record>>(
        &mut self,
        _: &Table,
        record: Piece,
        reader: &mut Reader<I>,
    ) -> Result<(), Malformed> {
        let Piece::Events { head, events, .. } = record else { return reader.refuse("not events of a job") };
        reader.check(self.is_empty())?;
        *self = Self::read(*head, events, reader)?;
        Ok(())
    }
}

impl Ring {
    pub(crate) fn count(&self) -> u64 {
        (self.milestones.len() + self.traffic.len()) as u64
    }

    /// Its events as records.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = Piece> {
        self.events().map(|event| Piece::Event(Box::new(Event::clone(event))))
    }

    /// The ring whose head was read, and whose events follow.
    pub(crate) fn read<I: Iterator<Item = Record>>(
        head: Head,
        events: u64,
        reader: &mut Reader<I>,
    ) -> Result<Self, Malformed> {
        let mut ring = Self { head, ..Self::default() };
        let mut last = 0;
        for _ in 0..events {
            let event = read_event(reader)?;
            reader.check(last < event.number && event.number <= head.made && event.last <= head.last)?;
            last = event.number;
            let part = if event.what.is_milestone() { &mut ring.milestones } else { &mut ring.traffic };
            part.push(event);
            let within =
                ring.milestones.bytes() <= MILESTONE_BYTES_MAX && ring.traffic.bytes() <= TRAFFIC_BYTES_MAX;
            reader.check(within)?;
        }
        reader.check(head.is_legal(events))?;
        Ok(ring)
    }

    pub(crate) fn weight(&self) -> u64 {
        self.milestones.weight().saturating_add(self.traffic.weight())
    }

    pub(crate) fn recounted_weight(&self) -> u64 {
        self.milestones.recounted().saturating_add(self.traffic.recounted())
    }
}

/// The next record, which must be an event.
pub(crate) fn read_event<I: Iterator<Item = Record>>(
    reader: &mut Reader<I>,
) -> Result<Arc<Event>, Malformed> {
    let Piece::Event(event) = reader.next()? else { return reader.refuse("not an event") };
    reader.check(event.is_legal())?;
    Ok(Arc::from(event))
}

/// Those of a part, which have been counted, as records.
pub(crate) fn pieces_of(part: &Part) -> impl Iterator<Item = Piece> {
    part.iter().map(|event| Piece::Event(Box::new(Event::clone(event))))
}
