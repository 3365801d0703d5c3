//! Who is silent for too long, who is heard again, and which cluster is not complete in time.

use std::collections::BTreeSet;

use tokio::time::{Instant, MissedTickBehavior};
use tripod_gateway::{Deafness, Silence};
use tripod_state::State;
use tripod_state::ids::TimeMs;
use tripod_state::mindspore::topology::View;
use tripod_state::mindspore::{Decision, Member};

use super::deadline::LogTime;
use super::leader_term::LeaderTerm;

/// The nodes of a cluster, as the state has them.
struct Kept {
    view: View,
    members: Vec<Member>,
    silent: BTreeSet<Member>,
    now: TimeMs,
}

/// Runs until the job has no nodes any more.
pub(super) async fn run(led: &LeaderTerm) {
    let mut ticks = tokio::time::interval(led.patience.tick());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut deafness, mut time) = (Deafness::default(), LogTime::default());
    let liveness = led.heard.liveness();
    liveness.begin(led.job, led.patience);
    // Everybody who is there now has the time that an election takes.
    let mut first = Some(led.patience.failover_min);
    let mut refresh = Instant::now();
    let Some(mut kept) = led.look(|state| look(led, state)).await else { return };
    loop {
        ticks.tick().await;
        let mut decisions = Vec::new();
        if Instant::now() >= refresh {
            let Some(now) = led.look(|state| look(led, state)).await else { return };
            kept = now;
            let peers: Vec<_> = kept.members.iter().map(|member| (*member, true)).collect();
            liveness.watch(led.job, &peers, first.take());
            refresh = Instant::now() + led.patience.refresh();
            decisions.extend(too_late(led, &kept, &mut time));
        }
        let (paused, silence) = liveness.tick(led.job);
        if let Some(pause) = paused {
            tracing::warn!(job = led.job.0, ?pause, "this process did not run; no node is silent for that");
        }
        decisions.extend(heard_again(led, &kept, &silence));
        let newly = Silence {
            overdue: silence.overdue.into_iter().filter(|member| !kept.silent.contains(member)).collect(),
            regular: silence.regular.saturating_sub(kept.silent.len()),
        };
        let nodes = deafness.given_up(liveness, led.job, led.patience, newly);
        if !nodes.is_empty() {
            tracing::info!(job = led.job.0, ?nodes, "nodes of MindSpore were silent for too long");
            decisions.push(Decision::TopologySilent { nodes });
        }
        for decision in decisions {
            led.decide(decision).await;
            refresh = Instant::now();
        }
    }
}

fn look(led: &LeaderTerm, state: &State) -> Option<Kept> {
    let members = state.topology_members(led.job);
    let view = state.topology(led.scope()).ok()?;
    // Few are, and mostly none: all that is known of the nodes is looked at only then.
    let nodes = if view.silent > 0 { state.topology_nodes(led.scope()).ok()? } else { Vec::new() };
    let silent = nodes.into_iter().filter(|node| node.silent).map(|node| node.member).collect();
    (!members.is_empty()).then(|| Kept { view, members, silent, now: state.now_ms() })
}

fn too_late(led: &LeaderTerm, kept: &Kept, time: &mut LogTime) -> Option<Decision> {
    let deadline = kept.view.deadline_ms?;
    if !time.has_passed(deadline, kept.now) {
        return None;
    }
    tracing::warn!(job = led.job.0, "a cluster of MindSpore is not complete in time");
    Some(Decision::TopologyTimedOut { generation: kept.view.generation })
}

/// Of those who are silent by the state, who spoke since this node leads, and lately.
fn heard_again(led: &LeaderTerm, kept: &Kept, silence: &Silence<Member>) -> Option<Decision> {
    if kept.silent.is_empty() {
        return None;
    }
    let spoke = led.heard.liveness().notes(led.job).into_iter().map(|(member, ())| member);
    let is_back = |member: &Member| kept.silent.contains(member) && !silence.overdue.contains(member);
    let mut nodes: Vec<Member> = spoke.filter(is_back).collect();
    nodes.sort_unstable();
    if nodes.is_empty() {
        return None;
    }
    tracing::info!(job = led.job.0, ?nodes, "nodes of MindSpore are heard again");
    Some(Decision::TopologyHeard { nodes })
}
