//! What a cluster of a test needs before it can be used.

use tripod_gateway::Gateway;
use tripod_state::ids::{JobId, NodeId, ServiceIncarnation};
use tripod_state::member::Addresses;
use tripod_state::{Answer, Command, job, level, member};

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
pub(super) async fn announce(gateway: &Gateway, address: &str) {
    let (host, port) = address.split_once(':').expect("HOST:PORT");
    let addresses = Addresses {
        client: address.to_owned(),
        http: address.to_owned(),
        job_host: host.to_owned(),
        job_port_first: port.parse().expect("a port"),
        job_port_count: 1,
    };
    let command = member::Command::Announce { node: NodeId(1), addresses };
    gateway.submit(Command::Member(command)).await.expect("in memory").expect("announced");
}
