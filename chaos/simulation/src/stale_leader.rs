//! A leader that others have replaced, which has not heard of it and can still ask some of them whether it leads.
//!
//! Only then does it matter what they tell it (INV-24). Other faults hardly make one. A link
//! that carries its questions carries its heartbeats too, and whoever hears those elects nobody; and once another node
//! leads, one message of that tells the old leader, before any question that comes later is answered. So its links to
//! all nodes must go and a link to a voter come back, within an election timeout, while none to the new leader does.

use std::sync::Arc;

use tripod_state::ids::Term;

use super::node::Site;
use super::observation::SimTime;

/// One fault of this kind, while it is there.
pub(crate) struct StaleLeader {
    /// The place of the node that led when it began.
    hit: usize,
    /// For how long another one must have led before voters are reached again, in milliseconds.
    replaced_for_ms: u64,
    links: Links,
}

/// What the node can reach.
enum Links {
    /// No other node. Since when another one has led while it believes that it does, if so.
    Nobody { replaced_at: Option<SimTime> },
    /// All but who replaced it.
    Voters,
}

/// Who leads by its own word, by place: the one of the earliest term first. More than one does for a moment at most.
pub(crate) fn leaders(sites: &[Arc<Site>]) -> Vec<(Term, usize)> {
    let leads = |(place, site): (usize, &Arc<Site>)| {
        let leadership = site.running()?.leadership();
        leadership.ready_here.then_some((leadership.term, place))
    };
    let mut leaders: Vec<_> = sites.iter().enumerate().filter_map(leads).collect();
    leaders.sort_unstable();
    leaders
}

impl StaleLeader {
    /// Resets and refuses all links of the node at that place.
    pub(crate) fn begin(sites: &[Arc<Site>], hit: usize, replaced_for_ms: u64) -> Self {
        let name = &sites[hit].name;
        let others = sites.iter().filter(|site| site.name != *name);
        others.for_each(|other| other.silences().refuse(name, &other.name));
        Self { hit, replaced_for_ms, links: Links::Nobody { replaced_at: None } }
    }

    /// Has links come back when it is time. Tells when they do, once.
    pub(crate) fn turn(&mut self, sites: &[Arc<Site>], at: SimTime) -> bool {
        let Links::Nobody { replaced_at } = &mut self.links else { return false };
        let leaders = leaders(sites);
        let (Some((_, oldest)), Some((_, newest))) = (leaders.first(), leaders.last()) else { return false };
        if *oldest != self.hit || newest == oldest {
            *replaced_at = None;
            return false;
        }
        let since = *replaced_at.get_or_insert(at);
        if at.since_ms(since) < self.replaced_for_ms {
            return false;
        }
        let name = &sites[self.hit].name;
        for (_, voter) in sites.iter().enumerate().filter(|(place, _)| place != newest) {
            voter.silences().allow(name, &voter.name);
        }
        self.links = Links::Voters;
        true
    }

    /// All links come back.
    pub(crate) fn end(&self, sites: &[Arc<Site>]) {
        sites[self.hit].silences().allow_all();
    }
}
