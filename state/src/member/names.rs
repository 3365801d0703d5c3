//! Which certificate belongs to which id of a node.
//!
//! A certificate has a name and no id. The log binds one to the other, so whoever has a node's key is that node and no
//! other one, wherever it runs.

use crate::command::{Answer, Command, Effect, Reply};
use crate::fault::Fault;
use crate::ids::{CertificateName, NodeId};
use crate::job::spec::check_name;
use crate::member::{self, Refusal};
use crate::state::State;

impl State {
    /// What the certificate of that node calls it, if the log says so.
    #[must_use]
    pub fn certificate_name(&self, node: NodeId) -> Option<&CertificateName> {
        self.names.get(&node)
    }

    /// The same of all nodes, in ascending order of their ids.
    pub fn certificate_names(&self) -> impl Iterator<Item = (NodeId, &CertificateName)> {
        self.names.iter().map(|(node, name)| (*node, name))
    }

    pub(super) fn bind(&mut self, node: NodeId, name: CertificateName, effects: &mut Vec<Effect>) -> Reply {
        check(&name, node)?;
        self.check_known(node)?;
        match self.names.get(&node) {
            Some(bound) if *bound == name => return Ok(Answer::Done),
            Some(bound) => return Err(Refusal::NameBound { node, bound: bound.clone() }.into()),
            None => {}
        }
        // The machine of a node that is replaced may have its certificate again. Both have the name until the change is over.
        let replaces = self.registry.open().is_some_and(|open| open.node == node);
        let taken = self.certificate_names().find(|(other, bound)| {
            let is_replaced = replaces && self.registry.takes_out(*other);
            **bound == name && !is_replaced
        });
        if let Some((other, _)) = taken {
            return Err(Refusal::NameTaken { node: other, name }.into());
        }
        self.names.insert(node, name);
        effects.push(Effect::MemberChanged);
        Ok(Answer::Done)
    }

    /// Ids that were removed never come back, and their names are free.
    pub(super) fn unbind_removed(&mut self) {
        let removed = self.names.keys().copied().filter(|node| self.registry.is_removed(*node));
        for node in removed.collect::<Vec<_>>() {
            self.names.remove(&node);
        }
    }
}

impl Command {
    /// Which node it says the certificate's name of, if it does.
    #[must_use]
    pub fn binds(&self) -> Option<(NodeId, &CertificateName)> {
        match self.plain() {
            Self::Member(member::Command::Bind { node, name }) => Some((*node, name)),
            _ => None,
        }
    }
}

/// Certificates have names by the rule for those of jobs.
pub(crate) fn check(name: &CertificateName, node: NodeId) -> Result<(), Fault> {
    match check_name(name.as_str()) {
        Ok(_) => Ok(()),
        Err(_) => Err(Refusal::NameInvalid { node }.into()),
    }
}
