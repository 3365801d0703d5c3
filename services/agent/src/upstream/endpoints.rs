//! The nodes, in the order in which they are tried.

use std::collections::BTreeMap;

/// Addresses of nodes: those that were configured, and the members as the cluster last told them.
#[derive(Debug)]
pub(crate) struct Endpoints {
    configured: Vec<String>,
    members: Vec<String>,
    /// The last failure of each address.
    failures: BTreeMap<String, String>,
}

impl Endpoints {
    pub(crate) fn new(configured: Vec<String>) -> Self {
        Self { configured, members: Vec::new(), failures: BTreeMap::new() }
    }

    /// Takes the members as the cluster tells them; `true` if they are others than before.
    pub(crate) fn learn(&mut self, members: Vec<String>) -> bool {
        let changed = self.members != members;
        self.members = members;
        let known = self.order();
        self.failures.retain(|address, _| known.contains(address));
        changed
    }

    /// Notes why an address failed.
    pub(crate) fn failed(&mut self, address: &str, cause: String) {
        self.failures.insert(address.to_owned(), cause);
    }

    /// Forgets why an address failed.
    pub(crate) fn succeeded(&mut self, address: &str) {
        self.failures.remove(address);
    }

    /// Every address once. The configured order counts, but a configured node that is no member any more
    /// is only a fall-back. If no configured address is a member's, they are written in another way
    /// (as names, say), and nothing speaks against them.
    pub(crate) fn order(&self) -> Vec<String> {
        let is_member = |address: &&String| self.members.contains(address);
        let (current, former): (Vec<&String>, Vec<&String>) = self.configured.iter().partition(is_member);
        let (first, last) = if current.is_empty() { (former, Vec::new()) } else { (current, former) };
        let mut order: Vec<String> = Vec::new();
        for address in first.into_iter().chain(&self.members).chain(last) {
            if !order.contains(address) {
                order.push(address.clone());
            }
        }
        order
    }

    /// What was wrong with each, for people.
    pub(crate) fn failures(&self) -> String {
        let of = |address: &String| {
            let cause = self.failures.get(address).map_or("no answer", String::as_str);
            format!("{address}: {cause}")
        };
        self.order().iter().map(of).collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(addresses: &[&str]) -> Vec<String> {
        addresses.iter().map(|address| (*address).to_owned()).collect()
    }

    #[test]
    fn configured_members_come_first_and_former_members_last() {
        let mut endpoints = Endpoints::new(owned(&["c:1", "a:1", "x:1"]));
        assert_eq!(endpoints.order(), ["c:1", "a:1", "x:1"]);
        assert!(endpoints.learn(owned(&["a:1", "b:1", "c:1"])));
        assert_eq!(endpoints.order(), ["c:1", "a:1", "b:1", "x:1"]);
        assert!(!endpoints.learn(owned(&["a:1", "b:1", "c:1"])));
    }

    #[test]
    fn addresses_written_in_another_way_keep_their_place() {
        let mut endpoints = Endpoints::new(owned(&["node-2:1", "node-1:1"]));
        endpoints.learn(owned(&["10.0.0.1:1", "10.0.0.2:1"]));
        assert_eq!(endpoints.order(), ["node-2:1", "node-1:1", "10.0.0.1:1", "10.0.0.2:1"]);
    }

    #[test]
    fn failures_are_told_in_order_and_forgotten_with_their_node() {
        let mut endpoints = Endpoints::new(owned(&["a:1"]));
        endpoints.learn(owned(&["b:1"]));
        endpoints.failed("b:1", "connection refused".into());
        assert_eq!(endpoints.failures(), "a:1: no answer; b:1: connection refused");
        endpoints.learn(owned(&["a:1"]));
        assert_eq!(endpoints.failures(), "a:1: no answer");
        endpoints.failed("a:1", "no route".into());
        endpoints.succeeded("a:1");
        assert_eq!(endpoints.failures(), "a:1: no answer");
    }
}
