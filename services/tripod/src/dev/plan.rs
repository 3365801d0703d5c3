//! Which node listens where. The port numbers are a contract that scripts rely on.

use std::net::TcpListener;

use tripod_proto::code::Code;
use tripod_raft::InitialMember;
use tripod_state::ids::NodeId;

use crate::args::initial::InitialMembers;
use crate::args::port_range::PortRange;
use crate::failure::Failure;

const HOST: &str = "127.0.0.1";
/// From the first client port to the first peer port.
const PEER_OFFSET: u32 = 100;
const HTTP_OFFSET: u32 = 200;
const JOB_OFFSET: u32 = 300;
/// Job ports of one node.
const JOB_PORTS: u32 = 100;
/// To the first port for nodes of MindSpore, and how many of these a node has: between the client and the peer ports.
const MINDSPORE_OFFSET: u32 = 10;
const MINDSPORE_PORTS: u32 = 10;
/// More processes than this only slow each other down.
const NODES_MAX: u16 = 9;

/// The addresses of all nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) port: u16,
    pub(crate) nodes: Vec<NodePlan>,
}

/// The addresses of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodePlan {
    pub(crate) id: u64,
    pub(crate) client: String,
    pub(crate) peer: String,
    pub(crate) http: String,
    pub(crate) job_ports: PortRange,
    /// Where nodes of MindSpore find the first jobs.
    pub(crate) mindspore_ports: PortRange,
}

impl Plan {
    /// `nodes` nodes, the first one's client port being `port`.
    pub(crate) fn new(nodes: u16, port: u16) -> Result<Self, Failure> {
        if !(1..=NODES_MAX).contains(&nodes) {
            return Err(Failure::new(
                Code::ValueIllegal,
                format!("--nodes {nodes}: between 1 and {NODES_MAX}"),
            ));
        }
        let too_high = || {
            let needed = JOB_OFFSET + JOB_PORTS * u32::from(nodes) - 1;
            let highest = u32::from(u16::MAX) - needed;
            Failure::new(
                Code::ValueIllegal,
                format!("--port {port}: {nodes} nodes need ports up to PORT+{needed}; at most {highest}"),
            )
        };
        let plan = |place: u16| NodePlan::at(u32::from(port), u32::from(place)).ok_or_else(too_high);
        let nodes = (0..nodes).map(plan).collect::<Result<_, _>>()?;
        Ok(Self { port, nodes })
    }

    /// The list that every node is started with.
    pub(crate) fn initial(&self) -> InitialMembers {
        let member = |node: &NodePlan| InitialMember { node: NodeId(node.id), peer: node.peer.clone() };
        self.nodes.iter().map(member).collect()
    }

    pub(crate) fn clients(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.client.clone()).collect()
    }

    /// Refuses to start when a port that a node cannot do without is taken: it would be told by one
    /// child of several, and late. Job ports are not needed before there are jobs.
    pub(crate) fn check_ports(&self) -> Result<(), Failure> {
        for node in &self.nodes {
            for (what, address) in [("client", &node.client), ("peer", &node.peer), ("http", &node.http)] {
                TcpListener::bind(address).map_err(|error| {
                    Failure::new(Code::ListenFailed, format!(
                        "cannot use {address}, the {what} port of node {}: {error}; end what listens there or choose \
                         another --port",
                        node.id
                    ))
                })?;
            }
        }
        Ok(())
    }
}

impl NodePlan {
    fn at(port: u32, place: u32) -> Option<Self> {
        let number = |offset: u32| u16::try_from(port + offset + place).ok();
        let address = |offset: u32| Some(format!("{HOST}:{}", number(offset)?));
        let range = |first: u32, count: u32| {
            Some(PortRange {
                first: u16::try_from(first).ok()?,
                last: u16::try_from(first + count - 1).ok()?,
            })
        };
        Some(Self {
            id: u64::from(place) + 1,
            client: address(0)?,
            peer: address(PEER_OFFSET)?,
            http: address(HTTP_OFFSET)?,
            job_ports: range(port + JOB_OFFSET + JOB_PORTS * place, JOB_PORTS)?,
            mindspore_ports: range(port + MINDSPORE_OFFSET + MINDSPORE_PORTS * place, MINDSPORE_PORTS)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_follow_the_contract() {
        let plan = Plan::new(3, 7700).expect("legal");
        assert_eq!(plan.clients(), ["127.0.0.1:7700", "127.0.0.1:7701", "127.0.0.1:7702"]);
        let last = &plan.nodes[2];
        assert_eq!(
            (last.id, last.peer.as_str(), last.http.as_str()),
            (3, "127.0.0.1:7802", "127.0.0.1:7902")
        );
        assert_eq!(plan.nodes[0].job_ports.to_string(), "8000-8099");
        assert_eq!(last.job_ports.to_string(), "8200-8299");
        assert_eq!(plan.nodes[0].mindspore_ports.to_string(), "7710-7719");
        let nine = Plan::new(NODES_MAX, 7700).expect("legal");
        assert_eq!(nine.nodes[8].mindspore_ports.to_string(), "7790-7799", "below the peer ports");
        assert_eq!(plan.initial().to_flag(), "1=127.0.0.1:7800,2=127.0.0.1:7801,3=127.0.0.1:7802");
    }

    #[test]
    fn ports_beyond_the_last_one_are_refused_before_anything_starts() {
        let text = Plan::new(3, 65_000).expect_err("refused").to_string();
        assert_eq!(
            text,
            "T1103 value-illegal: --port 65000: 3 nodes need ports up to PORT+599; at most 64936"
        );
        assert!(Plan::new(3, 64_936).is_ok());
        assert!(Plan::new(3, 64_937).is_err());
        assert!(Plan::new(0, 7700).is_err());
        assert!(Plan::new(10, 7700).is_err());
    }

    #[test]
    fn a_taken_port_is_named_with_its_node_and_use() {
        let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = taken.local_addr().expect("bound").to_string();
        let mut plan = Plan::new(1, 7700).expect("legal");
        plan.nodes[0].client = "127.0.0.1:0".into();
        plan.nodes[0].peer.clone_from(&address);
        let text = plan.check_ports().expect_err("taken").to_string();
        assert!(
            text.starts_with(&format!(
                "T1401 listen-failed: cannot use {address}, the peer port of node 1: "
            )),
            "{text}"
        );
    }
}
