//! The life of a dynamic cluster by what its workers say, in which the leader dies at one of their messages: at each of them
//! once, in each way. No worker hears anything else than without that.

use crate::death::{Death, Deaths};
use crate::support::{Client, Cluster, of_2_10};

struct Life {
    cluster: Cluster,
    deaths: Deaths,
    /// Of each message, whether it changes something.
    messages: Vec<bool>,
    noted: Vec<String>,
}

/// What a life has come to.
struct Lived {
    noted: Vec<String>,
    messages: Vec<bool>,
    deaths: usize,
}

impl Life {
    fn next(&mut self, is_change: bool) {
        self.messages.push(is_change);
        self.deaths.next_message();
    }

    /// Notes what somebody has heard, and how the cluster is by then.
    fn note(&mut self, heard: &str) {
        let view = self.cluster.view();
        let (state, registered, generation) = (view.state, view.registered, view.generation);
        self.noted.push(format!("{heard} | {state:?} {registered} in {generation}, {} silent", view.silent));
    }

    async fn register(&mut self, worker: &mut Client, node: &str) {
        self.next(true);
        let told = worker.register(&of_2_10(node)).await;
        self.note(&format!("{node}: {} {} of {}", told.success, told.rank_id, told.node_num));
    }

    async fn beat(&mut self, worker: &mut Client, node: &str) {
        self.next(false);
        let told = worker.beat(node).await;
        self.note(&format!("{node} hears state {}, {} abnormal", told.topo_state, told.abnormal_nodes_num));
    }

    async fn read(&mut self, worker: &mut Client, name: &str) {
        self.next(false);
        let (number, value) = worker.read(name).await;
        self.note(&format!("{name}: {number} {value:?}"));
    }

    /// It has no answer: what is read behind it is there.
    async fn write(&mut self, worker: &mut Client, name: &str, value: &str) {
        self.next(true);
        worker.write(name, value).await;
        let (number, value) = worker.read(name).await;
        self.note(&format!("{name} is written: {number} {value:?}"));
    }

    async fn delete(&mut self, worker: &mut Client, name: &str) {
        self.next(true);
        let number = worker.delete(name).await;
        self.note(&format!("{name} is deleted: {number}"));
    }

    async fn unregister(&mut self, worker: &mut Client, node: &str) {
        self.next(true);
        let number = worker.unregister(node).await;
        self.note(&format!("{node} leaves: {number}"));
    }
}

async fn lived(death: Option<(usize, Death)>) -> Lived {
    let cluster = Cluster::of(2).await;
    let deaths = Deaths::of(&cluster.backend, death);
    let mut life = Life { cluster, deaths, messages: Vec::new(), noted: Vec::new() };
    let (mut one, mut of_one) = (life.cluster.connect(), life.cluster.connect());
    let (mut two, mut of_two) = (life.cluster.connect(), life.cluster.connect());
    life.register(&mut one, "uuid-b").await;
    life.beat(&mut one, "uuid-b").await;
    // Not before all are there.
    life.unregister(&mut one, "uuid-b").await;
    life.register(&mut two, "uuid-a").await;
    life.beat(&mut one, "uuid-b").await;
    life.read(&mut of_one, "MS_WORKERuuid-b").await;
    life.read(&mut of_two, "MS_WORKERuuid-a").await;
    life.read(&mut of_two, "node_port_range").await;
    life.write(&mut of_one, "MCCL_COLLECTIVE_RANK_MS_WORKER_1", "127.0.0.1:8118").await;
    life.write(&mut of_one, "START_EXCHANGE_META_x", "1").await;
    life.read(&mut of_two, "START_EXCHANGE_META_x").await;
    life.write(&mut of_two, "START_EXCHANGE_META_x", "2").await;
    // Twice is another answer than once.
    life.delete(&mut of_one, "START_EXCHANGE_META_x").await;
    life.delete(&mut of_one, "START_EXCHANGE_META_x").await;
    // Another process in the place of the first one.
    let mut again = life.cluster.connect();
    life.register(&mut again, "uuid-b").await;
    life.read(&mut again, "MCCL_COLLECTIVE_RANK_MS_WORKER_1").await;
    life.unregister(&mut again, "uuid-b").await;
    life.unregister(&mut two, "uuid-a").await;
    // The job is used again.
    life.register(&mut two, "uuid-a").await;
    life.read(&mut of_two, "MCCL_COLLECTIVE_RANK_MS_WORKER_1").await;
    let Life { noted, messages, deaths, .. } = life;
    Lived { noted, messages, deaths: deaths.count() }
}

#[tokio::test(start_paused = true)]
async fn whichever_message_the_leader_dies_at_no_worker_hears_anything_else() {
    let undisturbed = lived(None).await;
    let noted = &undisturbed.noted;
    let has = |words: &str| noted.iter().any(|line| line.starts_with(words));
    for words in [
        "uuid-b: true 0 of 2",
        "uuid-b leaves: 5",
        "MS_WORKERuuid-b: 11 b\"1\"",
        "MS_WORKERuuid-a: 11 b\"0\"",
        "START_EXCHANGE_META_x: 11 b\"1\"",
        "START_EXCHANGE_META_x is written: 11 b\"2\"",
        "START_EXCHANGE_META_x is deleted: 11",
        "START_EXCHANGE_META_x is deleted: 12",
        "uuid-b: true 1 of 2",
        "MCCL_COLLECTIVE_RANK_MS_WORKER_1: 11 b\"127.0.0.1:8118\"",
        "uuid-a leaves: 3 | Finished",
        "MCCL_COLLECTIVE_RANK_MS_WORKER_1: 12 b\"\"",
    ] {
        assert!(has(words), "{words}: {noted:#?}");
    }
    assert_eq!(undisturbed.deaths, 0);
    for (at, is_change) in undisturbed.messages.iter().enumerate() {
        for death in [Death::Before, Death::With, Death::After] {
            // What only asks is in no log.
            if death != Death::Before && !is_change {
                continue;
            }
            let told = lived(Some((at, death))).await;
            assert_eq!(told.deaths, 1, "{death:?} message {at}");
            assert_eq!(told.noted, undisturbed.noted, "{death:?} message {at}");
        }
    }
}
