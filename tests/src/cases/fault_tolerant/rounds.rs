//! Five processes on a cluster whose nodes die too: twenty times in a row some die, alone, together, with the leader, or while
//! the whole cluster is away, and come back.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tripod_processes::cluster::Cluster;

use super::history::now;
use super::program::{PATIENCE, Program, Setup};
use crate::cases::nodes_in;

const TASKS: usize = 5;
/// How long the whole cluster is away: as long as the heartbeat timeout.
const OUTAGE: Duration = Duration::from_secs(10);

/// What happens to the cluster while processes die.
#[derive(Debug, Clone, Copy)]
enum Nodes {
    Live,
    /// The leader is killed in the same moment, and started again when the others have gone on.
    LoseTheirLeader,
    /// All of them are killed right after the processes, and started again after the outage.
    Die,
    /// All of them are stopped right before the processes die, so that nobody hears of it until the outage is over.
    Freeze,
}

use Nodes::{Die, Freeze, Live, LoseTheirLeader};

/// Who is killed, one round after the other.
const ROUNDS: [(&[usize], Nodes); 20] = [
    (&[0], Live),
    (&[1], Live),
    (&[2], Live),
    (&[3], Live),
    (&[4], Live),
    (&[0], LoseTheirLeader),
    (&[1], LoseTheirLeader),
    (&[2], LoseTheirLeader),
    (&[3], LoseTheirLeader),
    (&[4], LoseTheirLeader),
    (&[0, 1], Live),
    (&[2, 4], Live),
    (&[1, 2, 3, 4], Live),
    (&[0, 2, 3, 4], Live),
    (&[0], Die),
    (&[1, 3], Live),
    (&[0, 1, 2, 3], Live),
    (&[0], Freeze),
    (&[0, 4], LoseTheirLeader),
    (&[0], Live),
];

/// After how many seconds the last of those who lived had made their next step.
#[derive(Debug, Default)]
struct Slowest {
    /// After a death.
    alone: f64,
    /// After a death together with the leader's.
    with_leader: f64,
    /// After the nodes were back.
    outage: f64,
}

/// A cluster, and the program on it.
struct Stage {
    // Fields drop in this order: clients go first.
    program: Program,
    cluster: Cluster,
    slowest: Slowest,
}

/// Kills and looks.
pub(super) async fn run(python: &Path, folder: &Path) -> Result<String> {
    let cluster = Cluster::start(nodes_in(folder)?).await?;
    let (endpoints, pause) = (&*cluster.endpoints(), Duration::from_millis(200));
    let setup = Setup { python, folder, endpoints, job: "rounds", tasks: TASKS, pause, patience: PATIENCE };
    let program = Program::start(setup).await?;
    let mut stage = Stage { program, cluster, slowest: Slowest::default() };
    for (round, (victims, nodes)) in ROUNDS.into_iter().enumerate() {
        let happens = format!("round {round}: processes {victims:?} die, nodes {nodes:?}");
        stage.round(victims, nodes).await.context(happens)?;
    }
    let Stage { program, slowest: Slowest { alone, with_leader, outage }, .. } = stage;
    // The cluster is part of the stage no more, and lives until here.
    let steps = program.end().await?;
    Ok(format!(
        "{steps} steps; the others went on within {alone:.1} s of a death, {with_leader:.1} s if the leader died too, and \
         {outage:.1} s after the cluster was back"
    ))
}

impl Stage {
    async fn round(&mut self, victims: &[usize], nodes: Nodes) -> Result<()> {
        let slowest = &mut self.slowest;
        match nodes {
            Live => slowest.alone = slowest.alone.max(self.program.lose(victims).await?),
            LoseTheirLeader => {
                let leader = self.cluster.wait_for_leader().await?;
                let killed = self.program.kill(victims)?;
                self.cluster.kill(leader)?;
                slowest.with_leader = slowest.with_leader.max(self.program.go_on(victims, killed).await?);
                self.cluster.restart(leader)?;
                self.cluster.wait_until_ready().await?;
                self.program.go_on_together(killed).await?;
            }
            Die => {
                let killed = self.program.kill(victims)?;
                self.cluster.kill_all()?;
                // Nothing is waited for here: the length of the outage is the fault.
                tokio::time::sleep(OUTAGE).await;
                for node in self.cluster.ids() {
                    self.cluster.restart(node)?;
                }
                let back = now()?;
                slowest.outage = slowest.outage.max(self.program.go_on(victims, back).await?);
                self.cluster.wait_until_ready().await?;
                self.program.go_on_together(killed).await?;
            }
            Freeze => {
                for node in self.cluster.ids() {
                    self.cluster.pause(node)?;
                }
                let killed = self.program.kill(victims)?;
                tokio::time::sleep(OUTAGE).await;
                for node in self.cluster.ids() {
                    self.cluster.resume(node)?;
                }
                let back = now()?;
                slowest.outage = slowest.outage.max(self.program.go_on(victims, back).await?);
                self.program.go_on_together(killed).await?;
            }
        }
        Ok(())
    }
}
