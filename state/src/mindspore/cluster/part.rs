//! A cluster in pieces, for snapshots. What is derived is not in them.

use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

use crate::ids::{FeatureLevel, JobId};
use crate::job::domains::{Domain, SnapshotSection};
use crate::level::Kind;
use crate::mindspore::Member;
use crate::mindspore::cluster::node::Node;
use crate::mindspore::cluster::record::{self, Cluster, Event};
use crate::mindspore::limits::{EVENTS_KEPT_MAX, WITH_LEAVING_MAX};
use crate::snapshot::Malformed;
use crate::snapshot::read::Reader;
use crate::snapshot::record::{Piece, Record};
use crate::task::table::Table as Tasks;

/// The first piece.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    head: record::Head,
    /// How many pieces of each kind follow.
    nodes: u64,
    events: u64,
}

/// One of the others: the nodes by member, then the events by number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Part {
    Node(Member, Node),
    Event(u64, Event),
}

impl Domain for Option<Box<Cluster>> {
    const SECTION: SnapshotSection = SnapshotSection::BehindSessionOwners;
    const KEPT_SINCE: FeatureLevel = Kind::CLUSTER_REGISTER.needs;

    fn is_empty(&self) -> bool {
        self.is_none()
    }

    fn digest<H: Hasher>(&self, hasher: &mut H) {
        if let Some(cluster) = self {
            cluster.hash(hasher);
        }
    }

    fn bytes(&self) -> u64 {
        self.as_ref().map_or(0, |cluster| cluster.bytes())
    }

    fn recounted(&self) -> u64 {
        self.as_ref().map_or(0, |cluster| cluster.recounted())
    }

    fn records(&self, job: JobId) -> impl Iterator<Item = Piece> {
        self.iter().flat_map(move |cluster| {
            let head = Head {
                head: cluster.head.clone(),
                nodes: cluster.nodes().len() as u64,
                events: cluster.events().len() as u64,
            };
            let nodes = cluster.nodes().iter().map(|(member, node)| Part::Node(*member, node.clone()));
            let events = cluster.events().iter().map(|(number, event)| Part::Event(*number, *event));
            let parts = nodes.chain(events).map(|part| Piece::ClusterPart(Box::new(part)));
            std::iter::once(Piece::Cluster { job, head: Box::new(head) }).chain(parts)
        })
    }

    fn job_of(record: &Piece) -> Option<JobId> {
        let Piece::Cluster { job, .. } = record else { return None };
        Some(*job)
    }

    fn restore<I: Iterator<Item = Record>>(
        &mut self,
        _: &Tasks,
        record: Piece,
        reader: &mut Reader<I>,
    ) -> Result<(), Malformed> {
        let Piece::Cluster { head, .. } = record else { return reader.refuse("not a cluster") };
        let Head { head, nodes, events } = *head;
        reader.check(self.is_none() && nodes <= WITH_LEAVING_MAX && events <= EVENTS_KEPT_MAX)?;
        reader.check(head.formed <= head.published && head.published <= head.generation)?;
        let first = head.next_event.checked_sub(events);
        let mut cluster = Cluster::new(head);
        for _ in 0..nodes {
            let Piece::ClusterPart(part) = reader.next()? else { return reader.refuse("not a node") };
            let Part::Node(member, node) = *part else { return reader.refuse("not a node") };
            let ascending = cluster.nodes().get_max().is_none_or(|(last, _)| *last < member);
            let is_new = cluster.named(node.name.as_str()).is_none();
            let free = node.rank.is_none_or(|rank| cluster.with_rank(node.role, rank).is_none());
            reader.check(ascending && is_new && free && node.told.event <= cluster.head.next_event)?;
            cluster.put(member, node);
        }
        for place in 0..events {
            let Piece::ClusterPart(part) = reader.next()? else { return reader.refuse("not an event") };
            let Part::Event(number, event) = *part else { return reader.refuse("not an event") };
            // They end before the next, without a gap.
            reader.check(first.map(|first| first + place) == Some(number))?;
            cluster.restore_event(number, event);
        }
        *self = Some(Box::new(cluster));
        Ok(())
    }
}
