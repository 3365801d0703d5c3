//! The cluster of one job.

use bytes::Bytes;
use imbl::{OrdMap, OrdSet};
use serde::{Deserialize, Serialize};

use crate::ids::{NodeName, TimeMs};
use crate::memory::{Weighed, all_inside, of_map, of_set, of_text};
use crate::mindspore::cluster::node::{Life, Node, Work};
use crate::mindspore::cluster::{Scaling, Switch};
use crate::mindspore::ranks::Ranks;
use crate::mindspore::{Expected, Member, Role};

/// From the first registration on; another one begins when it is over.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Cluster {
    pub(crate) head: Head,
    nodes: Weighed<Member, Node>,
    /// By number, without a gap.
    events: Weighed<u64, Event>,
    // Derived from the nodes.
    names: OrdMap<NodeName, Member>,
    ranks: Ranks,
    /// Those that live and are not told of the others yet.
    outside: OrdSet<Member>,
    tally: Tally,
    /// How many nodes that must have the kept events wait for each.
    waiting: OrdMap<u64, u32>,
}

/// What is known besides nodes and events.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Head {
    /// Rises with every change of the members, their addresses, ranks and number; over all clusters of the job.
    pub(crate) generation: u64,
    /// The one in which all were told of each other last; 0: none yet.
    pub(crate) published: u64,
    /// The one in which this was first so; 0: none yet.
    pub(crate) formed: u64,
    pub(crate) phase: Phase,
    pub(crate) expected: Expected,
    /// Something changed of which not all have been told.
    pub(crate) dirty: bool,
    /// The number of the next event, from 1; over all clusters of the job.
    pub(crate) next_event: u64,
}

/// What the cluster is doing.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Phase {
    /// Nodes are waited for until then.
    Starting {
        deadline: TimeMs,
    },
    Ready,
    Scaling(Scale),
    Switching {
        number: u64,
        switch: Switch,
        body: Bytes,
    },
    /// A node was lost for good, or did not come in time.
    TimedOut,
    Exit,
}

/// How far scaling is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Scale {
    pub(crate) scaling: Scaling,
    /// It was taken back.
    pub(crate) rolled_back: bool,
    /// How many were expected before.
    pub(crate) before: Expected,
    /// Until when all must have registered.
    pub(crate) deadline: TimeMs,
    /// The generation that it began in.
    pub(crate) begun: u64,
    /// The one in which all had registered; 0: not yet.
    pub(crate) published: u64,
}

/// Something that a node told all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Event {
    pub(crate) event: u32,
    pub(crate) from: Member,
}

/// How many nodes are in which condition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Tally {
    /// Alive, whether or not they leave.
    pub(crate) alive: u32,
    /// Alive and staying.
    pub(crate) staying: u32,
    /// Of these, registered.
    pub(crate) present: u32,
    /// Of those who stay, finished.
    pub(crate) finished: u32,
    /// Of those who stay, not told that all have finished.
    pub(crate) unreleased: u32,
    /// Alive and not done with scaling.
    pub(crate) undone: u32,
    /// Dead, and not given up.
    pub(crate) dead: u32,
    pub(crate) given_up: u32,
}

impl Tally {
    fn count(&mut self, node: &Node, add: bool) {
        let (alive, staying) = (node.is_alive(), node.is_alive() && !node.is_leaving());
        let counts = [
            (&mut self.alive, alive),
            (&mut self.staying, staying),
            (&mut self.present, node.is_present()),
            (&mut self.finished, staying && node.finished),
            (&mut self.unreleased, staying && !node.told.finish),
            (&mut self.undone, alive && node.work == Work::Asked && !node.finished),
            (&mut self.dead, matches!(node.life, Life::Dead { .. })),
            (&mut self.given_up, node.life == Life::GivenUp),
        ];
        for (count, holds) in counts {
            *count = if add { *count + u32::from(holds) } else { *count - u32::from(holds) };
        }
    }
}

impl Cluster {
    pub(crate) fn new(head: Head) -> Self {
        Self {
            head,
            nodes: Weighed::default(),
            events: Weighed::default(),
            names: OrdMap::new(),
            ranks: Ranks::default(),
            outside: OrdSet::new(),
            tally: Tally::default(),
            waiting: OrdMap::new(),
        }
    }

    pub(crate) fn nodes(&self) -> &OrdMap<Member, Node> {
        &self.nodes
    }

    pub(crate) fn events(&self) -> &OrdMap<u64, Event> {
        &self.events
    }

    /// How many nodes that must have the kept events wait for each first: by number, ascending.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (u64, u32)> {
        self.waiting.iter().map(|(number, nodes)| (*number, *nodes))
    }

    pub(crate) fn tally(&self) -> Tally {
        self.tally
    }

    pub(crate) fn named(&self, name: &str) -> Option<(Member, &Node)> {
        let member = *self.names.get(name)?;
        Some((member, self.nodes.get(&member)?))
    }

    pub(crate) fn outside(&self) -> &OrdSet<Member> {
        &self.outside
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.tally.present == self.head.expected.total()
    }

    pub(crate) fn ranks(&self) -> &Ranks {
        &self.ranks
    }

    pub(crate) fn with_rank(&self, role: Role, rank: u32) -> Option<&Node> {
        self.nodes.get(&self.ranks.get(role, rank)?)
    }

    /// Adds a node, or changes one.
    pub(crate) fn put(&mut self, member: Member, node: Node) {
        self.remove(member);
        self.tally.count(&node, true);
        self.names.insert(node.name.clone(), member);
        if let Some(rank) = node.rank {
            self.ranks.insert(node.role, rank, member);
        }
        if node.is_outside() {
            self.outside.insert(member);
        }
        if node.holds_events() {
            *self.waiting.entry(node.told.event).or_default() += 1;
        }
        self.nodes.insert(member, node);
    }

    pub(crate) fn remove(&mut self, member: Member) -> Option<Node> {
        let node = self.nodes.remove(&member)?;
        self.tally.count(&node, false);
        self.names.remove(&node.name);
        self.outside.remove(&member);
        if let Some(rank) = node.rank {
            self.ranks.remove(node.role, rank, member);
        }
        if node.holds_events()
            && let Some(waiting) = self.waiting.get_mut(&node.told.event)
        {
            *waiting -= 1;
            if *waiting == 0 {
                self.waiting.remove(&node.told.event);
            }
        }
        Some(node)
    }

    /// Changes a node, if it is there.
    pub(crate) fn edit(&mut self, member: Member, change: impl FnOnce(&mut Node)) {
        let Some(node) = self.nodes.get(&member) else { return };
        let mut node = node.clone();
        change(&mut node);
        self.put(member, node);
    }

    /// Changes all nodes.
    pub(crate) fn edit_all(&mut self, mut change: impl FnMut(&mut Node)) {
        let members: Vec<Member> = self.nodes.keys().copied().collect();
        for member in members {
            self.edit(member, &mut change);
        }
    }

    /// Keeps another event; its number.
    pub(crate) fn keep(&mut self, event: Event) -> u64 {
        let number = self.head.next_event;
        self.events.insert(number, event);
        self.head.next_event = number.saturating_add(1);
        number
    }

    /// Puts back an event of a snapshot.
    pub(crate) fn restore_event(&mut self, number: u64, event: Event) {
        self.events.insert(number, event);
    }

    /// Forgets the events that everybody has who is to have them.
    pub(crate) fn trim_events(&mut self) {
        let needed = self.waiting.get_min().map_or(self.head.next_event, |(number, _)| *number);
        while let Some(number) =
            self.events.get_min().map(|(number, _)| *number).filter(|first| *first < needed)
        {
            self.events.remove(&number);
        }
    }

    /// What it takes, roughly.
    pub(crate) fn bytes(&self) -> u64 {
        self.nodes.bytes().saturating_add(self.events.bytes()).saturating_add(self.around())
    }

    /// The same from all of it.
    pub(crate) fn recounted(&self) -> u64 {
        self.nodes.recounted().saturating_add(self.events.recounted()).saturating_add(self.around())
    }

    fn around(&self) -> u64 {
        let body = match &self.head.phase {
            Phase::Switching { body, .. } => of_text(body.len()),
            _ => 0,
        };
        of_map::<NodeName, Member>(self.names.len())
            .saturating_add(self.ranks.bytes())
            .saturating_add(of_set::<Member>(self.outside.len()))
            .saturating_add(of_map::<u64, u32>(self.waiting.len()))
            .saturating_add(body)
    }
}

all_inside!(u64, Event);
