//! The key-value load against a service that keeps its keys in a map.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic, its helpers too")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};
use tripod_load::closed_loop::Plan;
use tripod_load::kv::{self, Op, Options, Target};
use tripod_load::report::Report;
use tripod_load::system::System;
use tripod_proto::tripod::v1::cluster_server::{Cluster, ClusterServer};
use tripod_proto::tripod::v1::kv_server::{Kv, KvServer};
use tripod_proto::tripod::v1::{
    CancelChangeRequest, CancelChangeResponse, ChangeMembersRequest, ChangeMembersResponse, DeleteRequest,
    DeleteResponse, DrainNodeRequest, DrainNodeResponse, GetRequest, GetResponse, JoinRequest, JoinResponse,
    ListMembersRequest, ListMembersResponse, ListRequest, ListResponse, PutRequest, PutResponse,
    StatusRequest, StatusResponse, TransferLeaderRequest, TransferLeaderResponse,
};

const JOB: &str = "load";

/// One node; nodes share `keys` but not the counts.
#[derive(Clone, Default)]
struct Node {
    id: u64,
    leader: u64,
    keys: Arc<Mutex<BTreeMap<String, Bytes>>>,
    puts: Arc<Mutex<u64>>,
}

#[tonic::async_trait]
impl Kv for Node {
    async fn put(&self, request: Request<PutRequest>) -> Result<Response<PutResponse>, Status> {
        let request = request.into_inner();
        if request.job != JOB {
            return Err(Status::not_found(format!("no job {}", request.job)));
        }
        *self.puts.lock().unwrap() += 1;
        self.keys.lock().unwrap().insert(request.key, request.value);
        Ok(Response::new(PutResponse::default()))
    }

    async fn get(&self, request: Request<GetRequest>) -> Result<Response<GetResponse>, Status> {
        let found = self.keys.lock().unwrap().get(&request.get_ref().key).cloned();
        let answer = GetResponse {
            found: found.is_some(),
            value: found.unwrap_or_default(),
            ..GetResponse::default()
        };
        Ok(Response::new(answer))
    }

    async fn delete(&self, _: Request<DeleteRequest>) -> Result<Response<DeleteResponse>, Status> {
        Err(Status::unimplemented("not part of the load"))
    }

    async fn list(&self, _: Request<ListRequest>) -> Result<Response<ListResponse>, Status> {
        Err(Status::unimplemented("not part of the load"))
    }
}

#[tonic::async_trait]
impl Cluster for Node {
    async fn status(&self, _: Request<StatusRequest>) -> Result<Response<StatusResponse>, Status> {
        let answer = StatusResponse { node_id: self.id, leader_id: self.leader, ..StatusResponse::default() };
        Ok(Response::new(answer))
    }

    async fn transfer_leader(
        &self,
        _: Request<TransferLeaderRequest>,
    ) -> Result<Response<TransferLeaderResponse>, Status> {
        Err(Status::unimplemented("not part of the load"))
    }

    async fn list_members(
        &self,
        _: Request<ListMembersRequest>,
    ) -> Result<Response<ListMembersResponse>, Status> {
        Err(Status::unimplemented("not part of the load"))
    }

    async fn change_members(
        &self,
        _: Request<ChangeMembersRequest>,
    ) -> Result<Response<ChangeMembersResponse>, Status> {
        Err(Status::unimplemented("not part of the load"))
    }

    async fn cancel_change(
        &self,
        _: Request<CancelChangeRequest>,
    ) -> Result<Response<CancelChangeResponse>, Status> {
        Err(Status::unimplemented("not part of the load"))
    }

    async fn drain_node(&self, _: Request<DrainNodeRequest>) -> Result<Response<DrainNodeResponse>, Status> {
        Err(Status::unimplemented("not part of the load"))
    }

    async fn join(&self, _: Request<JoinRequest>) -> Result<Response<JoinResponse>, Status> {
        Err(Status::unimplemented("not part of the load"))
    }
}

/// Three nodes that follow node 2, and their addresses.
fn nodes() -> (Vec<Node>, Vec<String>) {
    let first = Node { leader: 2, ..Node::default() };
    let nodes: Vec<Node> = (1..=3).map(|id| Node { id, puts: Arc::default(), ..first.clone() }).collect();
    let addresses = nodes
        .iter()
        .map(|node| {
            let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
            let address = incoming.local_addr().unwrap().to_string();
            let server = Server::builder()
                .add_service(KvServer::new(node.clone()))
                .add_service(ClusterServer::new(node.clone()));
            tokio::spawn(server.serve_with_incoming(incoming));
            address
        })
        .collect();
    (nodes, addresses)
}

fn options(endpoints: Vec<String>, op: Op, target: Target) -> Options {
    Options {
        system: System::Tripod { job: JOB.into() },
        endpoints,
        op,
        target,
        clients: 4,
        connections: 2,
        streams: 0,
        value_bytes: 256,
        keys: 100,
        plan: Plan { warm_up: Duration::from_millis(20), measured: Duration::from_millis(100) },
    }
}

/// The report of a run in which something was measured: on a busy machine nothing may come of a tenth of a second.
async fn run(options: &Options) -> Report {
    tripod_wait::until_async("something to be measured", || async {
        let report = kv::run(options).await.unwrap();
        (report.ops + report.errors > 0).then_some(report)
    })
    .await
}

fn puts(nodes: &[Node]) -> [bool; 3] {
    [0, 1, 2].map(|position: usize| *nodes[position].puts.lock().unwrap() > 0)
}

#[tokio::test]
async fn puts_go_where_the_target_says() {
    for (target, reached) in [(Target::Leader, [false, true, false]), (Target::Follower, [true, false, true])]
    {
        let (nodes, addresses) = nodes();
        let report = run(&options(addresses, Op::Put, target)).await;
        assert_eq!(puts(&nodes), reached, "{target}");
        assert!(report.ops > 0);
        assert_eq!((report.errors, report.clients, report.connections), (0, 4, 2));
    }
}

#[tokio::test]
async fn reads_find_what_the_fill_wrote() {
    let (nodes, addresses) = nodes();
    let options = options(addresses, Op::Get, Target::Any);
    kv::fill(&options).await.unwrap();
    let keys = nodes[0].keys.lock().unwrap().clone();
    assert_eq!(keys.len(), 100);
    assert!(keys.values().all(|value| value.len() == 256));
    let report = run(&options).await;
    assert!(report.ops > 0);
    assert_eq!(report.errors, 0, "{:?}", report.first_errors);
}

#[tokio::test]
async fn a_fresh_read_that_finds_nothing_is_an_error_and_a_local_one_is_not() {
    let (_nodes, addresses) = nodes();
    let fresh = run(&options(addresses.clone(), Op::Get, Target::Leader)).await;
    assert_eq!(fresh.ops, 0);
    assert!(fresh.errors > 0 && fresh.first_errors[0].contains("bench/key/"), "{:?}", fresh.first_errors);
    let local = run(&options(addresses, Op::LocalGet, Target::Leader)).await;
    assert!(local.ops > 0 && local.errors == 0);
}

#[tokio::test]
async fn refusals_are_reported_and_do_not_count() {
    let (_nodes, addresses) = nodes();
    let mut options = options(addresses, Op::Put, Target::Leader);
    options.system = System::Tripod { job: "other".into() };
    let report = run(&options).await;
    assert_eq!(report.ops, 0);
    assert_eq!(report.first_errors, ["NotFound: no job other"]);
}

#[tokio::test]
async fn a_load_without_clients_or_followers_is_refused() {
    let (_nodes, addresses) = nodes();
    let only_leader = vec![addresses[1].clone()];
    let refused = kv::run(&options(only_leader, Op::Put, Target::Follower)).await.unwrap_err();
    assert!(refused.to_string().contains("name a follower"), "{refused}");
    let nobody = Options { clients: 0, ..options(addresses, Op::Put, Target::Any) };
    assert!(kv::run(&nobody).await.is_err());
}
