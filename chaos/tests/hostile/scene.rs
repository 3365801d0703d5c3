//! A cluster that is attacked beside a well-behaved client, and what is judged of it.

use std::fmt::Display;
use std::time::Duration;

use tripod_processes::attack::{Aim, Bounds, NODE_ARGS, RESIDENT_BYTES_MAX, Tally, Testimony, Witness};
use tripod_processes::cluster::{Cluster, ClusterOptions};
use tripod_wait::scaled;

/// So many, for which so many seconds are enough on a machine of usual speed.
pub(crate) fn bounds(count: usize, seconds: u64) -> Bounds {
    Bounds { count, time: scaled(Duration::from_secs(seconds)) }
}

/// Three nodes that serve.
pub(crate) struct Scene {
    pub(crate) cluster: Cluster,
    pub(crate) aim: Aim,
    witness: Witness,
}

impl Scene {
    pub(crate) async fn start() -> Self {
        Self::start_with(NODE_ARGS).await
    }

    /// With other flags for the nodes.
    pub(crate) async fn start_with<const N: usize>(args: [&str; N]) -> Self {
        let options = ClusterOptions::tripod().unwrap().with_args(args);
        let cluster = Cluster::start(options).await.unwrap();
        let aim = Aim::at(&cluster).await.unwrap();
        let witness = Witness::start(&cluster.endpoints()).await.unwrap();
        Self { cluster, aim, witness }
    }

    /// Makes an attack, and judges the nodes: none has ended, and none took more memory than it may.
    pub(crate) async fn within_budget(
        &mut self,
        name: impl Display,
        attack: impl AsyncFnOnce(&Aim) -> Tally,
    ) -> Tally {
        let tally = self.attack(&name, attack).await;
        let (most, bound) = (self.resident_max_mib(), RESIDENT_BYTES_MAX >> 20);
        assert!(most.iter().all(|mib| *mib <= bound), "{name}: {most:?} MiB, the bound is {bound}");
        tally
    }

    /// Makes an attack, after which no node may have ended. What the nodes took is printed.
    pub(crate) async fn attack(
        &mut self,
        name: impl Display,
        attack: impl AsyncFnOnce(&Aim) -> Tally,
    ) -> Tally {
        for node in self.cluster.ids() {
            self.cluster.process(node).unwrap().forget_resident_max().unwrap();
        }
        let tally = attack(&self.aim).await;
        let ended: Vec<String> = self
            .cluster
            .take_ended()
            .into_iter()
            .map(|(node, status)| {
                let log = std::fs::read_to_string(self.cluster.log(node)).unwrap_or_default();
                let last: Vec<&str> = log.lines().rev().take(3).collect();
                format!("node {node} ended with {status}; it said last: {last:?}")
            })
            .collect();
        assert!(ended.is_empty(), "{name}: {ended:?}");
        println!("{name}: {tally}; most MiB of the nodes: {:?}", self.resident_max_mib());
        tally
    }

    /// How many writes of the well-behaved client the first node has answered so far.
    pub(crate) fn witnessed(&self) -> u64 {
        self.witness.acknowledged_through(0)
    }

    /// All nodes end as if their power went, and start on the same data.
    pub(crate) async fn restart_all(&mut self, after: &str) {
        self.cluster.kill_all().unwrap();
        for node in self.cluster.ids() {
            self.cluster.restart(node).unwrap();
        }
        if let Err(error) = self.cluster.wait_until_ready().await {
            panic!("after {after}: {error:#}");
        }
    }

    /// Hears the well-behaved client: nothing that it was told is there may be lost.
    pub(crate) async fn end(mut self) -> Testimony {
        let testimony = self.witness.end().await.unwrap();
        println!("witness: {testimony}");
        assert_eq!(testimony.lost, [""; 0]);
        assert!(testimony.acknowledged > 0, "{testimony}");
        let ended = self.cluster.take_ended();
        assert!(ended.is_empty(), "{ended:?}");
        testimony
    }

    fn resident_max_mib(&self) -> Vec<u64> {
        let of = |node| self.cluster.process(node).unwrap().resident_max_bytes().unwrap() >> 20;
        self.cluster.ids().map(of).collect()
    }
}
