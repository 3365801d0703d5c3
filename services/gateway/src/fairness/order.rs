//! Which of several members is served next, when what they want costs differently.
//!
//! Each member's want has a time at which it would be done if all members were served at one pace from the moment at which
//! they came (self-clocked fair queueing); the earliest is next. So whoever wants something large waits for as many small
//! wants of others as cost the same, and whoever comes late has no arrears to be served first. Nothing but numbers is
//! moved, and every step takes a logarithm of the members.

use std::collections::{BTreeMap, BTreeSet};

/// Members that want something. One that wants nothing is none, and nothing of it is remembered.
#[derive(Debug)]
pub(super) struct Order<K> {
    members: BTreeMap<K, Member>,
    /// The same, by who is next: `done_at`, then `said`.
    queue: BTreeSet<(u64, u64, K)>,
    /// When the want was done that was served last. The unit is that of costs.
    now: u64,
    /// How often a member has said what it wants.
    said: u64,
}

#[derive(Debug, Clone, Copy)]
struct Member {
    begun_at: u64,
    done_at: u64,
    /// Among equals who said so first is first.
    said: u64,
}

impl<K: Copy + Ord> Order<K> {
    pub(super) fn new() -> Self {
        Self { members: BTreeMap::new(), queue: BTreeSet::new(), now: 0, said: 0 }
    }

    /// Who is next.
    pub(super) fn first(&self) -> Option<K> {
        self.queue.first().map(|(_, _, key)| *key)
    }

    /// What a member wants next costs so much. If that is no news, it keeps its place.
    pub(super) fn want(&mut self, key: K, cost: u64) {
        let begun_at = match self.members.get(&key) {
            Some(member) if member.done_at == member.begun_at.saturating_add(cost) => return,
            Some(member) => member.begun_at,
            None => self.now,
        };
        self.put(key, begun_at, cost);
    }

    /// A member has what it wanted, and wants something next that costs so much, or nothing.
    pub(super) fn served(&mut self, key: K, next_cost: Option<u64>) {
        let Some(member) = self.members.get(&key).copied() else { return };
        self.now = self.now.max(member.done_at);
        match next_cost {
            Some(cost) => self.put(key, member.done_at, cost),
            None => self.leave(key),
        }
    }

    /// A member wants nothing any more.
    pub(super) fn leave(&mut self, key: K) {
        if let Some(Member { done_at, said, .. }) = self.members.remove(&key) {
            self.queue.remove(&(done_at, said, key));
        }
    }

    fn put(&mut self, key: K, begun_at: u64, cost: u64) {
        self.leave(key);
        self.said += 1;
        let member = Member { begun_at, done_at: begun_at.saturating_add(cost), said: self.said };
        self.members.insert(key, member);
        self.queue.insert((member.done_at, member.said, key));
    }
}
