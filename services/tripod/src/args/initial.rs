//! `1=HOST:PORT,2=HOST:PORT,...`: the voters of the first start.

use std::str::FromStr;

use tripod_raft::InitialMember;
use tripod_state::ids::NodeId;
use xxhash_rust::xxh3::xxh3_64;

use crate::args::host_port::host_port;

/// The initial voters, in ascending order of node id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InitialMembers(Vec<InitialMember>);

impl InitialMembers {
    pub(crate) fn as_slice(&self) -> &[InitialMember] {
        &self.0
    }

    /// The peer address of a node.
    pub(crate) fn peer(&self, node: NodeId) -> Option<&str> {
        self.0.iter().find(|member| member.node == node).map(|member| member.peer.as_str())
    }

    /// A cluster id that all nodes derive from the same list, whatever the order they were given it in.
    pub(crate) fn cluster_id(&self) -> String {
        format!("c-{:016x}", xxh3_64(self.to_flag().as_bytes()))
    }

    /// As it is written on a command line.
    pub(crate) fn to_flag(&self) -> String {
        let members = self.0.iter().map(|member| format!("{}={}", member.node, member.peer));
        members.collect::<Vec<_>>().join(",")
    }
}

impl FromIterator<InitialMember> for InitialMembers {
    fn from_iter<I: IntoIterator<Item = InitialMember>>(members: I) -> Self {
        let mut members: Vec<_> = members.into_iter().collect();
        members.sort_by_key(|member| member.node);
        Self(members)
    }
}

impl FromStr for InitialMembers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let members: Self = text.split(',').map(member).collect::<Result<_, _>>()?;
        for pair in members.0.windows(2) {
            if pair[0].node == pair[1].node {
                return Err(format!("node {} is named twice", pair[0].node));
            }
        }
        Ok(members)
    }
}

fn member(text: &str) -> Result<InitialMember, String> {
    let (node, peer) = text.split_once('=').ok_or_else(|| format!("`{text}` is not ID=HOST:PORT"))?;
    let node =
        node.trim().parse().ok().filter(|id| *id > 0).ok_or_else(|| format!("`{node}` is no node id"))?;
    let peer = host_port(peer.trim())?;
    Ok(InitialMember { node: NodeId(node), peer })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_the_list_does_not_change_the_cluster_id() {
        let one: InitialMembers = "1=a:1,2=b:1,3=c:1".parse().expect("legal");
        let other: InitialMembers = "3=c:1,1=a:1,2=b:1".parse().expect("legal");
        assert_eq!(one.cluster_id(), other.cluster_id());
        assert_eq!(one.peer(NodeId(2)), Some("b:1"));
        let moved: InitialMembers = "1=a:1,2=b:1,3=c:2".parse().expect("legal");
        assert_ne!(one.cluster_id(), moved.cluster_id());
    }

    #[test]
    fn the_derived_cluster_id_never_changes_between_versions() {
        let members: InitialMembers =
            "1=10.0.0.1:7800,2=10.0.0.2:7800,3=10.0.0.3:7800".parse().expect("legal");
        assert_eq!(members.cluster_id(), "c-d284de0bccf3982d");
    }

    #[test]
    fn what_is_no_list_is_refused_with_the_reason() {
        let refusal = |text: &str| text.parse::<InitialMembers>().expect_err("refused");
        assert_eq!(refusal("1=a:1,1=b:1"), "node 1 is named twice");
        assert_eq!(refusal("a:1"), "`a:1` is not ID=HOST:PORT");
        assert_eq!(refusal("0=a:1"), "`0` is no node id");
        assert_eq!(refusal("1=a"), "`a` is not HOST:PORT");
    }
}
