//! Every bound of the MindSpore schedulers, with its unit and its reason.

use crate::fault::Fault;
use crate::ids::DurationMs;
use crate::limits::within;

/// Nodes of one cluster: twice the largest that we have heard of.
pub const NODES_MAX: u64 = 16_384;
/// The same with those that leave and are still there.
pub const WITH_LEAVING_MAX: u64 = 2 * NODES_MAX;
/// Characters of a node's id: upstream's own bound.
pub const NODE_ID_CHARS_MAX: usize = 100;
/// Bytes of a host's name; those of the DNS have at most 253.
pub const HOST_NAME_BYTES_MAX: usize = 255;
/// Bytes of an address as text: the longest of IPv6, with a zone.
pub const HOST_IP_BYTES_MAX: usize = 64;
/// Bytes of the name of a metadata entry; those of clients have dozens.
pub const METADATA_NAME_BYTES_MAX: usize = 1 << 10;
/// Bytes of the value of a metadata entry: addresses, and ids of communicators of a few kilobytes.
pub const METADATA_VALUE_BYTES_MAX: usize = 4 << 20;
/// Metadata entries of one job: 16 for each node of the largest cluster.
pub const METADATA_ENTRIES_MAX: u64 = 1 << 18;
/// Bytes of all metadata of one job, names and values.
pub const METADATA_BYTES_MAX: u64 = 256 << 20;
/// How long a dynamic cluster may take until all of its nodes are there: upstream's 10 minutes. A job whose registrations
/// may wait for less gives up sooner.
pub const TOPOLOGY_TIMEOUT_MS: DurationMs = DurationMs(600_000);
/// The first of the ports that are divided among the nodes of one host, as upstream has it.
pub const PORT_FIRST: u32 = 8118;
/// How many there are.
pub const PORTS_PER_HOST: u32 = 4096;

/// The highest port.
pub const PORT_MAX: u32 = 65_535;
/// How long a cluster may take until all of its nodes are there, and until those have come that scaling out is for:
/// upstream's 5 minutes. A job whose registrations may wait for less gives up sooner.
pub const CLUSTER_TIMEOUT_MS: DurationMs = DurationMs(300_000);
/// How long the place of a dead node waits until the others are told that it is lost, which ends most of them: time for a
/// cluster manager to see it and to start another. A job whose registrations may wait for less gives up sooner.
pub const REPLACEMENT_WINDOW_MS: DurationMs = DurationMs(120_000);
/// Events that are kept for nodes that do not have them. Federated learning has two for each iteration.
pub const EVENTS_KEPT_MAX: u64 = 1_024;
/// Bytes of what servers are told at once: parameters as text.
pub const SWITCH_BODY_BYTES_MAX: usize = 1 << 20;

/// Whether a text can be a node's id.
pub(crate) fn check_node_id(node: &str) -> Result<(), Fault> {
    let characters = node.chars().count();
    if characters == 0 {
        let (what, limit) =
            ("characters of a node's id, which has at least one".to_owned(), NODE_ID_CHARS_MAX);
        return Err(Fault::LimitExceeded { what, limit: limit as u64, actual: 0 });
    }
    within("characters of a node's id", characters as u64, NODE_ID_CHARS_MAX as u64)
}
