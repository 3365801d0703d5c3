//! Who is silent for too long, who is heard again, and which times of clusters have run out.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior};
use tripod_gateway::{Deafness, Silence};
use tripod_state::ids::JobId;
use tripod_state::mindspore::cluster::{ClusterState, Incarnation, NodeView};
use tripod_state::mindspore::{Decision, Member};
use tripod_state::{Scope, State};

use super::deadline::LogTime;
use super::leader_term::LeaderTerm;
use crate::pulse::Peer;

/// How long servers may take to answer what an operator tells them all: as long as upstream waits. A new leader gives
/// them the same time anew.
const SWITCH_TIME: Duration = Duration::from_secs(3);
/// How long the dead that have finished are watched when all have. A node waits for 30 s until it is told so, and one that was
/// cut off has to find one of ours first.
const AFTER_END: Duration = Duration::from_secs(60);

/// The nodes of a job's clusters, as the state has them. Those of a dynamic cluster have no process.
#[derive(Default)]
struct Kept {
    peers: Vec<Peer>,
    silent: BTreeSet<Peer>,
    /// What has run out.
    due: Vec<Decision>,
    /// The switch that servers are being told.
    switch: Option<u64>,
}

/// Runs until the job has no nodes any more that are watched.
pub(super) async fn run(led: &LeaderTerm) {
    let mut ticks = tokio::time::interval(led.patience.tick());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut deafness, mut time, mut switching) =
        (Deafness::default(), LogTime::default(), Switching::default());
    let mut ending = Ending::default();
    let liveness = led.heard.liveness();
    liveness.begin(led.job, led.patience);
    // Everybody who is there now has the time that an election takes.
    let mut first = Some(led.patience.failover_min);
    let mut refresh = Instant::now();
    let Some(mut kept) = led.look(|state| look(led, state, &mut time, &mut ending)).await else { return };
    loop {
        ticks.tick().await;
        let mut decisions = Vec::new();
        if Instant::now() >= refresh {
            let now = led.look(|state| look(led, state, &mut time, &mut ending)).await;
            let Some(now) = now else { return };
            kept = now;
            let peers: Vec<_> = kept.peers.iter().map(|peer| (*peer, true)).collect();
            led.heard.note_processes(led.job, &kept.peers);
            liveness.watch(led.job, &peers, first.take());
            refresh = Instant::now() + led.patience.refresh();
            decisions.append(&mut kept.due);
        }
        decisions.extend(switching.over(kept.switch));
        let (paused, silence) = liveness.tick(led.job);
        if let Some(pause) = paused {
            tracing::warn!(job = led.job.0, ?pause, "this process did not run; no node is silent for that");
        }
        decisions.extend(heard_again(led, &kept, &silence));
        let newly = Silence {
            overdue: silence.overdue.into_iter().filter(|peer| !kept.silent.contains(peer)).collect(),
            regular: silence.regular.saturating_sub(kept.silent.len()),
        };
        let nodes = deafness.given_up(liveness, led.job, led.patience, newly);
        decisions.extend(silent(&nodes));
        for decision in decisions {
            tell(led, &decision);
            led.decide(decision).await;
            refresh = Instant::now();
        }
    }
}

/// Whether anybody of a job is to be watched.
pub(super) fn has_peers(state: &State, job: JobId) -> bool {
    !state.topology_members(job).is_empty()
        || !state.cluster_members(job).is_empty()
        || has_dead(state, Scope { job, service: None })
}

/// Whether dead nodes are watched, all of them: when all have finished nobody waits for them.
fn has_dead(state: &State, scope: Scope) -> bool {
    state.cluster(scope).is_ok_and(|view| view.dead > 0 && view.state != ClusterState::Exit)
}

/// A cluster of which all have finished who lived, some of whom count as dead since. Such a node may have been silent only for
/// a moment, and then it waits to be told that all have finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct End {
    generation: u64,
    /// Who they are, in order: one more may be silent just when another one is heard again.
    dead: Vec<Peer>,
}

/// The end of a job's cluster, if it has come and there are such nodes.
pub(super) fn end_of(state: &State, job: JobId) -> Option<End> {
    let scope = Scope { job, service: None };
    let view = state.cluster(scope).ok()?;
    if view.dead == 0 || view.state != ClusterState::Exit {
        return None;
    }
    // One that has not finished is told when it does.
    let mut dead = dead(state, scope, |node| node.is_finished)?;
    dead.sort_unstable();
    (!dead.is_empty()).then_some(End { generation: view.generation, dead })
}

/// Those of the dead nodes.
fn dead(state: &State, scope: Scope, which: impl Fn(&NodeView) -> bool) -> Option<Vec<Peer>> {
    let nodes = state.cluster_nodes(scope).ok()?;
    let dead = nodes.iter().filter(|node| !node.is_alive && which(node));
    Some(dead.map(|node| (node.member, Some(node.incarnation))).collect())
}

fn look(led: &LeaderTerm, state: &State, time: &mut LogTime, ending: &mut Ending) -> Option<Kept> {
    let now = time.at_least(state.now_ms());
    let mut kept = Kept::default();
    let view = state.topology(led.scope()).ok()?;
    kept.peers.extend(state.topology_members(led.job).into_iter().map(|member| (member, None)));
    // Few are, and mostly none: all that is known of the nodes is looked at only then.
    if view.silent > 0 {
        let nodes = state.topology_nodes(led.scope()).ok()?;
        kept.silent.extend(nodes.iter().filter(|node| node.silent).map(|node| (node.member, None)));
    }
    if view.deadline_ms.is_some_and(|deadline| deadline <= now) {
        kept.due.push(Decision::TopologyTimedOut { generation: view.generation });
    }
    let living = state.cluster_members(led.job).into_iter();
    kept.peers.extend(living.map(|(member, process)| (member, Some(process))));
    let mut watched = Vec::new();
    if has_dead(state, led.scope()) {
        // One that finished before its cluster was ever complete has given up its place, and stays away.
        let forming = state.cluster(led.scope()).is_ok_and(|view| view.state == ClusterState::Starting);
        watched = dead(state, led.scope(), |node| !(forming && node.is_finished))?;
    } else if let Some(end) = ending.recent(end_of(state, led.job)) {
        watched = end.dead;
    }
    kept.peers.extend(&watched);
    kept.silent.extend(watched);
    kept.due.extend(state.cluster_due(led.job, now));
    kept.switch = state.cluster_switch(led.job).map(|(number, ..)| number);
    (!kept.peers.is_empty()).then_some(kept)
}

/// Of those who are silent by the state, who spoke since this node leads, and lately.
fn heard_again(led: &LeaderTerm, kept: &Kept, silence: &Silence<Peer>) -> Vec<Decision> {
    if kept.silent.is_empty() {
        return Vec::new();
    }
    let spoke = led.heard.liveness().notes(led.job).into_iter().map(|(peer, ())| peer);
    let is_back = |peer: &Peer| kept.silent.contains(peer) && !silence.overdue.contains(peer);
    let mut peers: Vec<Peer> = spoke.filter(is_back).collect();
    peers.sort_unstable();
    let (nodes, processes) = by_kind(&peers);
    let topology = (!nodes.is_empty()).then_some(Decision::TopologyHeard { nodes });
    let cluster = (!processes.is_empty()).then_some(Decision::ClusterHeard { nodes: processes });
    topology.into_iter().chain(cluster).collect()
}

fn silent(peers: &[Peer]) -> Vec<Decision> {
    let (nodes, processes) = by_kind(peers);
    let topology = (!nodes.is_empty()).then_some(Decision::TopologySilent { nodes });
    let cluster = (!processes.is_empty()).then_some(Decision::ClusterSilent { nodes: processes });
    topology.into_iter().chain(cluster).collect()
}

/// The nodes of a dynamic cluster, and the processes of that of a parameter server.
fn by_kind(peers: &[Peer]) -> (Vec<Member>, Vec<(Member, Incarnation)>) {
    let nodes = peers.iter().filter(|(_, process)| process.is_none()).map(|(member, _)| *member);
    let processes = peers.iter().filter_map(|(member, process)| Some((*member, (*process)?)));
    (nodes.collect(), processes.collect())
}

fn tell(led: &LeaderTerm, decision: &Decision) {
    let job = led.job.0;
    match decision {
        Decision::TopologySilent { nodes } => {
            tracing::info!(job, ?nodes, "nodes of MindSpore were silent for too long");
        }
        Decision::ClusterSilent { nodes } => {
            tracing::info!(job, ?nodes, "nodes of MindSpore were silent for too long");
        }
        Decision::TopologyHeard { nodes } => {
            tracing::info!(job, ?nodes, "nodes of MindSpore are heard again");
        }
        Decision::ClusterHeard { nodes } => tracing::info!(job, ?nodes, "nodes of MindSpore are heard again"),
        Decision::TopologyTimedOut { .. } | Decision::ClusterTimedOut { .. } => {
            tracing::warn!(job, "a cluster of MindSpore is not complete in time");
        }
        Decision::ClusterGaveUp { nodes } => {
            tracing::warn!(job, ?nodes, "nobody came in the place of lost nodes of MindSpore in time");
        }
        Decision::ClusterSwitchEnded { switch } => {
            tracing::warn!(job, switch, "not all servers of MindSpore have answered what they were told");
        }
        // So many that nobody would read them.
        Decision::Echoed { .. } => {}
    }
}

/// Since when servers are being told something.
#[derive(Debug, Default)]
struct Switching(Option<(u64, Instant)>);

impl Switching {
    /// Ends what takes too long. `now`: which one it is.
    fn over(&mut self, now: Option<u64>) -> Option<Decision> {
        match (now, self.0) {
            (Some(switch), Some((known, since))) if switch == known => {
                (since.elapsed() >= SWITCH_TIME).then_some(Decision::ClusterSwitchEnded { switch })
            }
            (now, _) => {
                self.0 = now.map(|switch| (switch, Instant::now()));
                None
            }
        }
    }
}

/// Since when this leader knows of the end of a cluster.
#[derive(Debug, Default)]
struct Ending(Option<(End, Instant)>);

impl Ending {
    /// The end that there is, if it was not there for long. One that was heard again and is silent once more makes another.
    fn recent(&mut self, now: Option<End>) -> Option<End> {
        if self.0.as_ref().map(|(known, _)| known) != now.as_ref() {
            self.0 = now.clone().map(|end| (end, Instant::now()));
        }
        let is_recent = self.0.as_ref().is_some_and(|(_, since)| since.elapsed() < AFTER_END);
        now.filter(|_| is_recent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_end_is_recent_for_a_while_and_each_end_for_its_own() {
        let end = |generation, dead: &[u64]| End {
            generation,
            dead: dead.iter().map(|member| (Member(*member), Some(Incarnation(1)))).collect(),
        };
        let mut ending = Ending::default();
        let mut is_recent = |end: &End| ending.recent(Some(end.clone())).is_some();
        let first = end(2, &[1]);
        assert!(is_recent(&first));
        tokio::time::advance(AFTER_END).await;
        assert!(!is_recent(&first));
        assert!(is_recent(&end(2, &[1, 2])), "one more was silent");
        tokio::time::advance(AFTER_END).await;
        assert!(!is_recent(&end(2, &[1, 2])));
        assert!(is_recent(&end(2, &[1, 3])), "one was heard again, and another one was silent");
        assert!(is_recent(&end(4, &[1])), "another cluster");
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_heard_again_and_is_silent_once_more_has_the_time_anew() {
        let end = || Some(End { generation: 2, dead: vec![(Member(1), Some(Incarnation(1)))] });
        let mut ending = Ending::default();
        assert_eq!(ending.recent(end()), end());
        tokio::time::advance(AFTER_END / 2).await;
        assert_eq!(ending.recent(None), None, "it is heard");
        tokio::time::advance(AFTER_END / 2).await;
        assert_eq!(ending.recent(end()), end());
        tokio::time::advance(AFTER_END).await;
        assert_eq!(ending.recent(end()), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_servers_are_told_ends_when_its_time_is_over_and_the_next_one_has_its_own() {
        let mut switching = Switching::default();
        assert_eq!(switching.over(Some(7)), None);
        tokio::time::advance(SWITCH_TIME).await;
        assert_eq!(switching.over(Some(9)), None, "another one");
        tokio::time::advance(SWITCH_TIME).await;
        assert_eq!(switching.over(Some(9)), Some(Decision::ClusterSwitchEnded { switch: 9 }));
        assert_eq!((switching.over(None), switching.over(Some(9))), (None, None));
    }
}
