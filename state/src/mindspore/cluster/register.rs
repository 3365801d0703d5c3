//! Who may belong to the cluster, and with which rank.

use crate::ids::NodeName;
use crate::job::turn::Turn;
use crate::limits::within;
use crate::mindspore::apply::Answered;
use crate::mindspore::cluster::node::{Life, Node, Told, Work};
use crate::mindspore::cluster::record::{Cluster, Head, Phase};
use crate::mindspore::cluster::{Incarnation, Scaling};
use crate::mindspore::limits::{HOST_IP_BYTES_MAX, NODES_MAX, PORT_MAX};
use crate::mindspore::{Answer, Expected, Member, Refusal, Role};
use crate::planted::{Bug, is_planted};

/// What a node says of itself.
pub(super) struct Candidate {
    pub(super) name: NodeName,
    pub(super) role: Role,
    pub(super) ip: String,
    pub(super) port: u32,
    pub(super) offered_rank: Option<u32>,
    pub(super) recovering: bool,
}

impl Turn<'_> {
    pub(super) fn register_in_cluster(&mut self, candidate: Candidate) -> Answered {
        within("bytes of a node's address", candidate.ip.len() as u64, HOST_IP_BYTES_MAX as u64)?;
        within("port of a node", u64::from(candidate.port), u64::from(PORT_MAX))?;
        let current = self.job.domains.cluster.as_deref();
        if current.is_some_and(|cluster| cluster.is_ending_without(&candidate)) {
            return Err(Refusal::Ending.into());
        }
        let known = current
            .filter(|cluster| !cluster.is_over())
            .and_then(|cluster| cluster.named(candidate.name.as_str()));
        match known {
            Some((_, node)) if node.is_leaving() => Err(Refusal::NodeLeft { node: candidate.name }.into()),
            Some((_, node)) if node.role != candidate.role => {
                Err(Refusal::OtherRole { node: candidate.name, role: node.role }.into())
            }
            Some((member, _)) => Ok(self.register_again(member, &candidate)),
            None => self.register_anew(candidate),
        }
    }

    /// A known id: the same rank, with the address that it has now.
    fn register_again(&mut self, member: Member, candidate: &Candidate) -> Answer {
        let process = Incarnation(self.context.index.0);
        let cluster = self.job.domains.cluster.as_deref_mut().expect("the node belongs to it");
        let takes_back =
            candidate.recovering && cluster.nodes().get(&member).is_some_and(|node| !node.newcomer);
        if takes_back && cluster.can_be_taken_back() {
            cluster.take_back();
        }
        cluster.come_again(member, candidate, process);
        self.joined(member)
    }

    fn register_anew(&mut self, candidate: Candidate) -> Answered {
        let (member, now) = (Member(self.context.index.0), self.context.now_ms);
        let current = self.job.domains.cluster.as_deref();
        let under_way = current.filter(|cluster| !cluster.is_over());
        let expected =
            under_way.map_or_else(|| Expected::of(&self.job.spec), |cluster| cluster.head.expected);
        within("nodes of a MindSpore cluster", u64::from(expected.total()), NODES_MAX)?;
        let (role, places) = (candidate.role, expected.count(candidate.role));
        let place = match under_way {
            Some(cluster) => cluster.place_for(role, candidate.offered_rank),
            None => Vacancy::first(candidate.offered_rank, places),
        };
        let Some(place) = place else { return Err(Refusal::Full { role, places }.into()) };
        if under_way.is_none() {
            let head = Head {
                generation: current.map_or(0, |cluster| cluster.head.generation).saturating_add(1),
                published: 0,
                formed: 0,
                phase: Phase::Starting { deadline: now.plus(self.available_timeout()) },
                expected,
                dirty: false,
                next_event: current.map_or(1, |cluster| cluster.head.next_event),
            };
            self.job.domains.cluster = Some(Box::new(Cluster::new(head)));
        }
        let cluster = self.job.domains.cluster.as_deref_mut().expect("it was just made, if it was not there");
        cluster.come(member, candidate, &place);
        Ok(self.joined(member))
    }

    fn joined(&mut self, member: Member) -> Answer {
        self.cluster_changed();
        let cluster = self.job.domains.cluster.as_deref().expect("a node has just come to it");
        let node = cluster.nodes().get(&member);
        Answer::Joined {
            member,
            incarnation: node.map_or(Incarnation(0), |node| node.incarnation),
            rank: node.and_then(|node| node.rank).unwrap_or(0),
            generation: cluster.head.generation,
        }
    }
}

/// Where an unknown node belongs.
pub(super) struct Vacancy {
    rank: u32,
    /// The dead node whose place it is.
    of: Option<Member>,
}

impl Vacancy {
    /// In a cluster without nodes.
    fn first(offered: Option<u32>, places: u32) -> Option<Self> {
        let rank = offered.filter(|rank| *rank < places).unwrap_or(0);
        (places > 0).then_some(Self { rank, of: None })
    }
}

impl Cluster {
    /// All nodes have finished, and others than this one are still to be told. Of a node that begins as another process
    /// there is nobody left to be told.
    fn is_ending_without(&self, candidate: &Candidate) -> bool {
        let known = self.named(candidate.name.as_str()).filter(|(_, node)| {
            let is_another = *node.ip != *candidate.ip || node.port != candidate.port;
            is_another && node.is_alive() && !node.is_leaving() && !node.told.finish
        });
        self.head.phase == Phase::Exit && self.tally().unreleased > u32::from(known.is_some())
    }

    /// Whether the next registration begins another cluster.
    pub(super) fn is_over(&self) -> bool {
        match self.head.phase {
            Phase::Exit => true,
            Phase::TimedOut => self.tally().alive == 0,
            Phase::Starting { .. } | Phase::Ready | Phase::Scaling(_) | Phase::Switching { .. } => false,
        }
    }

    /// The place of the dead node of the lowest rank, or the rank that is offered if nobody has it, or the lowest free
    /// one.
    fn place_for(&self, role: Role, offered: Option<u32>) -> Option<Vacancy> {
        let places = self.head.expected.count(role);
        if self.tally().dead + self.tally().given_up > 0 {
            let is_dead = |member: &Member| self.nodes().get(member).is_some_and(|node| !node.is_alive());
            if let Some((rank, member)) = self.ranks().of(role).find(|(_, member)| is_dead(member)) {
                return Some(Vacancy { rank, of: Some(member) });
            }
        }
        if is_planted(Bug::RankTwice)
            && let Some((rank, _)) = self.ranks().of(role).next_back()
        {
            return Some(Vacancy { rank, of: None });
        }
        let offered = offered.filter(|rank| *rank < places && self.with_rank(role, *rank).is_none());
        let rank = offered.unwrap_or_else(|| self.ranks().free(role));
        (rank < places).then_some(Vacancy { rank, of: None })
    }

    fn come(&mut self, member: Member, candidate: Candidate, place: &Vacancy) {
        let replaced = place.of.and_then(|dead| self.remove(dead));
        let node = Node {
            name: candidate.name,
            role: candidate.role,
            rank: Some(place.rank),
            ip: candidate.ip.into(),
            port: candidate.port,
            incarnation: Incarnation(member.0),
            life: Life::Alive,
            registered: true,
            entered: false,
            newcomer: replaced.map_or_else(|| self.can_be_taken_back(), |dead| dead.newcomer),
            work: self.work_of_arrivals(),
            finished: false,
            told: Told::nothing(self.head.next_event),
        };
        self.head.dirty = true;
        self.put(member, node);
    }

    /// A process that begins while the cluster scales out does what those do that were there; one that begins while it
    /// scales in has nothing to undo.
    fn work_of_arrivals(&self) -> Work {
        match &self.head.phase {
            Phase::Scaling(scale) if scale.scaling == Scaling::Out && scale.published == 0 => Work::Asked,
            _ => Work::Nothing,
        }
    }

    /// What a process that lives already says again changes nothing, but that it registered.
    fn come_again(&mut self, member: Member, candidate: &Candidate, process: Incarnation) {
        let (next_event, work) = (self.head.next_event, self.work_of_arrivals());
        let (scaling, begun) = match &self.head.phase {
            Phase::Scaling(scale) => (true, scale.begun),
            _ => (false, 0),
        };
        let mut is_another = false;
        self.edit(member, |node| {
            is_another = *node.ip != *candidate.ip || node.port != candidate.port || node.finished;
            if is_another {
                node.ip = candidate.ip.as_str().into();
                node.port = candidate.port;
                node.incarnation = process;
                node.entered = false;
                node.work = work;
                node.finished = false;
                node.told = Told::nothing(next_event);
            } else if node.life == Life::GivenUp {
                node.told.event = next_event;
            }
            node.life = Life::Alive;
            node.registered = true;
            if scaling {
                // It would not register if it had not been told.
                node.told.scale = node.told.scale.max(begun);
            } else {
                // It may have lost what it was told of the others.
                node.told.metadata = 0;
            }
        });
        self.head.dirty |= is_another;
    }
}
