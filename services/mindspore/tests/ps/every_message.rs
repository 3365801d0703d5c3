//! The whole life of a cluster by what its nodes and operators say, in which the leader dies at one of their messages: at each
//! of them once, in each way. Nobody hears anything else than without that.

use std::collections::{BTreeMap, BTreeSet};

use tripod_proto::mindspore::ps_core::NodeCommand;
use tripod_state::mindspore::cluster::ClusterState;

use crate::death::{Death, Deaths};
use crate::nodes::Node;
use crate::operator::Operator;
use crate::support::Cluster;

struct Life {
    cluster: Cluster,
    nodes: BTreeMap<&'static str, Node>,
    deaths: Deaths,
    /// How much nodes and operators have said.
    messages: usize,
    generation: u64,
    noted: Vec<String>,
}

/// What a life has come to.
struct Lived {
    noted: Vec<String>,
    messages: usize,
    deaths: usize,
}

impl Life {
    async fn of(death: Option<(usize, Death)>) -> Self {
        let cluster = Cluster::of(1, 1).await;
        let (nodes, noted) = (BTreeMap::new(), Vec::new());
        let deaths = Deaths::of(&cluster.backend, death);
        Self { cluster, nodes, deaths, messages: 0, generation: 0, noted }
    }

    fn next(&mut self) {
        self.messages += 1;
        self.deaths.next_message();
    }

    /// Notes what somebody has heard, and how the cluster is by then.
    fn note(&mut self, heard: &str) {
        let view = self.cluster.view();
        let nodes = self.cluster.backend.state().cluster_nodes(self.cluster.scope).unwrap();
        let given: Vec<_> = nodes.iter().filter_map(|node| Some((node.role.word(), node.rank?))).collect();
        let different: BTreeSet<_> = given.iter().collect();
        assert_eq!(different.len(), given.len(), "no rank twice: {nodes:?}");
        // The end is the begin of another cluster.
        if view.state != ClusterState::Exit && view.present > 0 {
            assert!(view.generation >= self.generation, "{heard}: it has fallen to {}", view.generation);
            self.generation = view.generation;
        }
        let ranks: Vec<String> =
            nodes.iter().map(|node| format!("{} {:?}", node.node.as_str(), node.rank)).collect();
        let (state, generation) = (view.state.word(), view.generation);
        self.noted.push(format!("{heard} | {state} {generation} | {}", ranks.join(", ")));
    }

    fn node(&mut self, name: &str) -> &mut Node {
        self.nodes.get_mut(name).expect("it has come")
    }

    /// A node begins: workers' names begin with a w.
    async fn come(&mut self, name: &'static str) {
        let port = 5_000 + u32::try_from(self.nodes.len()).unwrap();
        let node = if name.starts_with('w') {
            Node::worker(&self.cluster, name, port)
        } else {
            Node::server(&self.cluster, name, port)
        };
        self.nodes.insert(name, node);
        self.register(name).await;
    }

    async fn register(&mut self, name: &str) {
        self.next();
        let rank = self.node(name).register().await;
        self.note(&format!("{name} has rank {rank}"));
    }

    /// They register once more, as scaling asks of them.
    async fn again(&mut self, names: &[&str]) {
        for name in names {
            self.register(name).await;
        }
    }

    async fn event(&mut self, name: &str, event: u32) {
        self.next();
        let node = self.node(name);
        let payload = node.event(event);
        node.report(NodeCommand::SendEvent, payload).await;
        self.note(&format!("event {event} of {name} is noted"));
    }

    async fn done(&mut self, command: NodeCommand, names: &[&str]) {
        for name in names {
            self.next();
            let node = self.node(name);
            let payload = node.done();
            node.report(command, payload).await;
            self.note(&format!("{name} is done"));
        }
    }

    async fn finish(&mut self, names: &[&str]) {
        for name in names {
            self.next();
            self.node(name).finish().await;
            self.note(&format!("{name} has finished"));
        }
    }

    async fn operate(&mut self, path: &str, body: &str) {
        self.next();
        let (status, text) = Operator::on(self.cluster.dial()).post(path, body).await;
        self.note(&format!("{path}: {status} {text}"));
    }

    /// All are told what there is to tell.
    async fn told(&mut self) {
        let told = self.cluster.tell().await;
        self.note(&told.join(", "));
    }
}

const ONE_MORE: &str = r#"{"worker_num": 0, "server_num": 1}"#;
const TWO_MORE: &str = r#"{"worker_num": 0, "server_num": 2}"#;

async fn lived(death: Option<(usize, Death)>) -> Lived {
    let mut life = Life::of(death).await;
    life.come("wrk").await;
    life.come("srv-0").await;
    life.told().await;
    life.event("wrk", 7).await;
    life.event("srv-0", 8).await;
    life.told().await;
    // One server becomes three.
    life.operate("/scaleout", TWO_MORE).await;
    life.told().await;
    life.come("srv-1").await;
    life.again(&["wrk"]).await;
    life.come("srv-2").await;
    life.again(&["srv-0"]).await;
    life.told().await;
    life.done(NodeCommand::ScaleOutDone, &["srv-2", "wrk", "srv-0", "srv-1"]).await;
    life.told().await;
    // The one in the middle leaves.
    life.operate("/scalein", r#"{"node_ids": ["srv-1"]}"#).await;
    life.told().await;
    life.again(&["wrk", "srv-0", "srv-2"]).await;
    life.told().await;
    life.done(NodeCommand::ScaleInDone, &["srv-1", "wrk", "srv-0", "srv-2"]).await;
    life.told().await;
    life.finish(&["srv-1"]).await;
    // The second time, which upstream does not manage.
    life.operate("/scaleout", ONE_MORE).await;
    life.told().await;
    life.again(&["srv-2", "srv-0", "wrk"]).await;
    life.come("srv-3").await;
    life.told().await;
    life.done(NodeCommand::ScaleOutDone, &["srv-3", "srv-2", "srv-0", "wrk"]).await;
    life.told().await;
    // One that never comes.
    life.operate("/scaleout", ONE_MORE).await;
    life.told().await;
    life.operate("/scaleoutRollback", "").await;
    life.again(&["wrk", "srv-0", "srv-2", "srv-3"]).await;
    life.told().await;
    // One that dies and is replaced, and one that is dead when the others finish.
    life.cluster.lose("srv-3").await;
    life.come("srv-4").await;
    life.told().await;
    life.cluster.lose("srv-2").await;
    life.event("srv-4", 9).await;
    life.told().await;
    life.finish(&["wrk", "srv-0", "srv-4"]).await;
    life.told().await;
    let Life { noted, messages, deaths, .. } = life;
    Lived { noted, messages, deaths: deaths.count() }
}

#[tokio::test(start_paused = true)]
async fn whichever_message_the_leader_dies_at_nobody_hears_anything_else() {
    let undisturbed = lived(None).await;
    let noted = &undisturbed.noted;
    let has = |words: &str| noted.iter().any(|line| line.contains(words));
    for words in [
        "srv-1 has rank 1",
        "srv-2 has rank 2",
        "srv-3 has rank 2",
        "srv-4 has rank 2",
        "srv-0 hears event 7 as number 1, srv-0 hears event 8 as number 2",
        "wrk hears event 7 as number 1, wrk hears event 8 as number 2",
        "wrk hears event 9 as number 3",
        "srv-4 hears event 9 as number 3",
        "/scalein: 200",
        "/scaleoutRollback: 200",
        "srv-0 may go, srv-4 may go, wrk may go",
    ] {
        assert!(has(words), "{words}: {noted:#?}");
    }
    assert_eq!(undisturbed.deaths, 0);
    for death in [Death::Before, Death::With, Death::After] {
        for at in 0..undisturbed.messages {
            let told = lived(Some((at, death))).await;
            assert_eq!(told.deaths, 1, "{death:?} message {at}");
            assert_eq!(told.noted, undisturbed.noted, "{death:?} message {at}");
        }
    }
}
