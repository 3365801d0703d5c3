//! A control plane by itself, for trying clients: `serve LISTEN,LISTEN NODE,NODE` serves xDS on the first
//! addresses and tells clients of job `default` to go to the second ones.

use std::net::SocketAddr;

use tonic::service::Routes;
use tonic::transport::Server;
use tripod_gateway::Gateway;
use tripod_state::ids::{NodeId, ServiceIncarnation};
use tripod_state::{Command, job, member};

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut list = || {
        let text = arguments.next().expect("usage: serve LISTEN,LISTEN NODE,NODE");
        text.split(',').map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    let (listen, nodes) = (list(), list());
    let (gateway, _backend) = Gateway::in_memory();
    for (id, client) in (1..).zip(nodes) {
        let addresses = member::Addresses {
            client,
            http: String::new(),
            job_host: String::new(),
            job_port_first: 0,
            job_port_count: 0,
        };
        let announce = member::Command::Announce { node: NodeId(id), addresses };
        gateway.submit(Command::Member(announce)).await.expect("no outage").expect("accepted");
    }
    let create = job::Command::Create {
        name: "default".to_owned(),
        spec: job::Spec::of_tasks(1),
        service: ServiceIncarnation(1),
    };
    gateway.submit(Command::Job(create)).await.expect("no outage").expect("accepted");
    println!("{}", tripod_xds::bootstrap("default", &listen));
    let serving = listen.into_iter().map(|at| {
        let at: SocketAddr = at.parse().expect("IP:PORT");
        Server::builder().add_routes(tripod_xds::add_to(Routes::default(), &gateway)).serve(at)
    });
    futures::future::try_join_all(serving).await.expect("served");
}
