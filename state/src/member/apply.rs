//! The commands about members.

use crate::command::{Answer, Effect, Reply};
use crate::context::ApplyContext;
use crate::events::Changing;
use crate::fault::Fault;
use crate::ids::{ChangeId, NodeId};
use crate::limits::{self, within};
use crate::member::{
    Addresses, Change, Claim, Command, Ending, Finished, Listed, Open, Refusal, Registry, Suffrage,
};
use crate::state::State;

impl State {
    /// Takes over what a membership entry of the log lists. To be called for every such entry, in its place in
    /// the log, and after the state was read from a snapshot, with the members as of its last entry: an older
    /// program's snapshot holds no registry. A second call with the same list changes nothing.
    pub fn follow_members(&mut self, listed: &[Listed]) -> Vec<Effect> {
        let mut changed = self.registry.follow(listed);
        let gone: Vec<NodeId> =
            self.members.keys().copied().filter(|node| self.registry.is_removed(*node)).collect();
        for node in gone {
            self.members.remove(&node);
            changed = true;
        }
        let removed = self.drained.iter().copied().filter(|node| self.registry.is_removed(*node));
        for node in removed.collect::<Vec<_>>() {
            self.drained.remove(&node);
        }
        self.unbind_removed();
        if changed { vec![Effect::MemberChanged] } else { Vec::new() }
    }

    /// Which ids were given, and the change under way.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Whether the node is to lead nothing and to have no clients.
    #[must_use]
    pub fn is_drained(&self, node: NodeId) -> bool {
        self.drained.contains(&node)
    }

    /// Whether a node is drained while clients have another one to go to.
    #[must_use]
    pub fn stands_aside(&self, node: NodeId) -> bool {
        self.is_drained(node) && self.members.keys().any(|other| !self.is_drained(*other))
    }

    /// Where clients may go: [`Self::members`] without those that are drained, unless all are.
    #[must_use]
    pub fn serving_members(&self) -> Vec<(NodeId, Addresses)> {
        let mut serving = self.members();
        serving.retain(|(node, _)| !self.stands_aside(*node));
        serving
    }

    pub(crate) fn apply_member(
        &mut self,
        context: &ApplyContext,
        command: Command,
        effects: &mut Vec<Effect>,
    ) -> Reply {
        let before = self.registry.clone();
        let reply = match command {
            Command::Announce { node, addresses } => return self.announce(node, addresses, effects),
            Command::Begin { change, by } => self.begin(context, change, by),
            Command::Join { peer, token } => self.join(context, &peer, token),
            Command::Cancel { change } => self.cancel(context, change),
            Command::End { change, ending } => self.end(context, change, ending),
            Command::Drain { node, drained } => return self.drain(context, node, drained, effects),
            Command::Bind { node, name } => return self.bind(node, name, effects),
        };
        if self.registry != before {
            // A node that was to come has no id any more if its change has ended without it.
            self.unbind_removed();
            effects.push(Effect::MemberChanged);
        }
        reply
    }

    fn announce(&mut self, node: NodeId, addresses: Addresses, effects: &mut Vec<Effect>) -> Reply {
        if self.registry.is_removed(node) {
            return Err(Refusal::NodeRemoved { node }.into());
        }
        if self.members.get(&node) != Some(&addresses) {
            self.members.insert(node, addresses);
            effects.push(Effect::MemberChanged);
        }
        Ok(Answer::Done)
    }

    fn drain(
        &mut self,
        context: &ApplyContext,
        node: NodeId,
        drained: bool,
        effects: &mut Vec<Effect>,
    ) -> Reply {
        self.check_known(node)?;
        let changed =
            if drained { self.drained.insert(node).is_none() } else { self.drained.remove(&node).is_some() };
        if changed {
            self.drain_event(context, node, drained);
            effects.push(Effect::MemberChanged);
        }
        Ok(Answer::Done)
    }

    fn begin(&mut self, context: &ApplyContext, change: Change, by: String) -> Reply {
        within(
            "bytes of a peer address",
            len(change.peer().unwrap_or("")),
            limits::ADDRESS_BYTES_MAX as u64,
        )?;
        within("bytes of who wants a change", len(&by), limits::ADDRESS_BYTES_MAX as u64)?;
        if let Some(open) = &self.registry.open {
            if open.change == change {
                return Ok(Answer::Change(Box::new(open.clone())));
            }
            return Err(Refusal::InProgress { open: Box::new(open.clone()) }.into());
        }
        if let Some(node) = change.member() {
            self.check_known(node)?;
        }
        let node = match &change {
            Change::Promote { node } | Change::Demote { node } | Change::Remove { node } => *node,
            Change::Move { node, peer } => {
                self.check_free(peer, Some(*node))?;
                *node
            }
            Change::Add { peer } => {
                self.check_free(peer, None)?;
                self.give(peer, Claim::Reserved)?
            }
            Change::Replace { old, peer } => self.replacement(*old, peer)?,
        };
        let open = Open { id: id_of(context), change, node, by, since: context.now_ms, cancelled: false };
        self.change_event(context, &open.change, &Changing::Began { by: &open.by });
        self.registry.open = Some(open.clone());
        Ok(Answer::Change(Box::new(open)))
    }

    /// The node at `peer`: a learner that was added before, or a new one.
    fn replacement(&mut self, old: NodeId, peer: &str) -> Result<NodeId, Fault> {
        match self.registry.at(peer) {
            Some((node, known)) if node != old && known.suffrage == Suffrage::Learner => Ok(node),
            Some((node, _)) => Err(Refusal::AddressTaken { node, peer: peer.to_owned() }.into()),
            None => self.give(peer, Claim::Reserved),
        }
    }

    fn join(&mut self, context: &ApplyContext, peer: &str, token: u64) -> Reply {
        within("bytes of a peer address", len(peer), limits::ADDRESS_BYTES_MAX as u64)?;
        let asked_before = self.registry.nodes().find(|(_, known)| known.claim == Claim::Token(token));
        if let Some((node, known)) = asked_before {
            if known.peer != peer {
                return Err(Refusal::AddressTaken { node, peer: known.peer.clone() }.into());
            }
            // It may only have been cut off before it could write its identity. One that voted, or came so far
            // that it announced itself, has lost what it had.
            let had_data = known.suffrage == Suffrage::Voter || self.members.contains_key(&node);
            return if had_data { Err(Refusal::HadData { node }.into()) } else { Ok(Answer::Node(node)) };
        }
        if let Some((node, known)) = self.registry.at(peer) {
            if known.claim != Claim::Reserved {
                return Err(Refusal::AddressTaken { node, peer: peer.to_owned() }.into());
            }
            let mut claimed = known.clone();
            claimed.claim = Claim::Token(token);
            self.registry.nodes.insert(node, claimed);
            return Ok(Answer::Node(node));
        }
        if let Some(open) = &self.registry.open {
            return Err(Refusal::InProgress { open: Box::new(open.clone()) }.into());
        }
        let node = self.give(peer, Claim::Token(token))?;
        let change = Change::Add { peer: peer.to_owned() };
        let (id, by) = (id_of(context), Open::JOINING.to_owned());
        self.change_event(context, &change, &Changing::Began { by: &by });
        self.registry.open = Some(Open { id, change, node, by, since: context.now_ms, cancelled: false });
        Ok(Answer::Node(node))
    }

    fn cancel(&mut self, context: &ApplyContext, change: ChangeId) -> Reply {
        match self.registry.open.as_mut().filter(|open| open.id == change) {
            Some(open) => {
                open.cancelled = true;
                let what = open.change.clone();
                self.change_event(context, &what, &Changing::GivenUp);
                Ok(Answer::Done)
            }
            None => Err(Refusal::NotOpen { change }.into()),
        }
    }

    fn end(&mut self, context: &ApplyContext, change: ChangeId, ending: Ending) -> Reply {
        let Some(open) = self.registry.open.take_if(|open| open.id == change) else {
            return Err(Refusal::NotOpen { change }.into());
        };
        self.change_event(context, &open.change, &Changing::Ended(&ending));
        // A node that was never added will not be: its id is spent.
        self.registry.keep(|_, known| known.suffrage != Suffrage::Expected);
        self.registry.last = Some(Finished { open, ending, at: context.now_ms });
        Ok(Answer::Done)
    }

    pub(super) fn check_known(&self, node: NodeId) -> Result<(), Fault> {
        if self.registry.is_removed(node) {
            return Err(Refusal::NodeRemoved { node }.into());
        }
        match self.registry.node(node) {
            Some(_) => Ok(()),
            None => Err(Refusal::NodeUnknown { node }.into()),
        }
    }

    /// Refuses a peer address at which another node than `except` is reached.
    fn check_free(&self, peer: &str, except: Option<NodeId>) -> Result<(), Fault> {
        match self.registry.at(peer) {
            Some((node, _)) if Some(node) != except => {
                Err(Refusal::AddressTaken { node, peer: peer.to_owned() }.into())
            }
            _ => Ok(()),
        }
    }

    fn give(&mut self, peer: &str, claim: Claim) -> Result<NodeId, Fault> {
        within("nodes of a cluster", self.registry.nodes.len() as u64 + 1, limits::NODES_MAX as u64)?;
        Ok(self.registry.give(peer, claim))
    }
}

fn id_of(context: &ApplyContext) -> ChangeId {
    ChangeId(context.index.0)
}

fn len(text: &str) -> u64 {
    text.len() as u64
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Self::Member(refusal)
    }
}
