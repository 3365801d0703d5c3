//! What a cluster of a test needs before it can be used.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

use tripod_gateway::Gateway;
use tripod_state::ids::{JobId, NodeId, ServiceIncarnation};
use tripod_state::member::Addresses;
use tripod_state::{Answer, Command, job, level, member};

/// So many that no two clusters of a test process, or of several at a time, share an address: workers listen where
/// the scheduler says, which is the same port in each.
static CLUSTERS: AtomicU32 = AtomicU32::new(0);

/// A loopback address that no other cluster has: test processes differ in their ids, clusters of one in their count.
pub(super) fn host() -> Ipv4Addr {
    let cluster = CLUSTERS.fetch_add(1, Ordering::Relaxed);
    let [.., high, low] = std::process::id().to_be_bytes();
    let third = 1 + u8::try_from(cluster % 250).expect("below 250");
    Ipv4Addr::new(127, 16 | (high & 15), low, third)
}

/// A port of such an address for a node or a store. One that the system chose could be that of a worker to come.
pub(super) fn port() -> u16 {
    static PORTS: AtomicU16 = AtomicU16::new(0);
    10_000 + PORTS.fetch_add(1, Ordering::Relaxed) % 20_000
}

/// Schedulers need feature level 3, to which a real cluster is raised by its leader.
pub(super) async fn raise_level(gateway: &Gateway) {
    let raise = level::Command::Raise { to: level::NEWEST, heard: Vec::new() };
    gateway.submit(Command::Level(raise)).await.expect("in memory").expect("raised");
}

pub(super) async fn create_job(gateway: &Gateway) -> JobId {
    let (spec, service) = (job::Spec::of_tasks(1), ServiceIncarnation(7));
    let command = job::Command::Create { name: "default".to_owned(), spec, service };
    match gateway.submit(Command::Job(command)).await.expect("in memory") {
        Ok(Answer::Job(summary)) => summary.id,
        other => panic!("no job: {other:?}"),
    }
}

/// Says where the node serves, as the binary does.
pub(super) async fn announce(gateway: &Gateway, address: SocketAddr) {
    let addresses = Addresses {
        client: address.to_string(),
        http: address.to_string(),
        job_host: address.ip().to_string(),
        job_port_first: address.port(),
        job_port_count: 1,
    };
    let command = member::Command::Announce { node: NodeId(1), addresses };
    gateway.submit(Command::Member(command)).await.expect("in memory").expect("announced");
}
