//! What is known of a job, by the state, the leader and all members, as plain facts.

use std::collections::BTreeMap;
use std::time::Duration;

use tripod_gateway::{
    CallKind, CallOutcome, HeartbeatAges, HeldProcess, HeldState, JobCalls, MemberStatus, NodeSight,
    NodeSilence, ShownCall,
};
use tripod_sight as sight;
use tripod_state::barrier::{Gathering, What};
use tripod_state::ids::{JobId, NodeId, TaskId, TimeMs};
use tripod_state::task::{self, How, Standing};
use tripod_state::{Fault, Scope, State, job};

use crate::resolve;

/// Open barriers of a job that are looked at.
const PLACES_MAX: usize = 32;
/// Keys that somebody waits for, of which it is looked up whether they are there.
const KEYS_MAX: usize = 256;
/// Bytes of a task's error that are told: every task of a large job may have one.
const ERROR_BYTES_MAX: usize = 256;
/// How the name of a barrier or a key begins of which only the end is kept.
const CUT: &str = "...";
/// Keys beside one that are counted.
const SIBLINGS_MAX: usize = 64;

/// What others have said.
pub(crate) struct Gathered {
    pub(crate) told_by: NodeId,
    pub(crate) members: Vec<MemberStatus>,
    pub(crate) sights: Vec<(NodeId, Result<NodeSight, NodeSilence>)>,
    pub(crate) ages: Option<HeartbeatAges>,
    /// The time of the log.
    pub(crate) now: TimeMs,
}

/// Everything that is judged, but for the memory of a node and the patience of whoever asks. `None`: there is no such job.
pub(crate) fn of(state: &State, job: JobId, gathered: Gathered) -> Option<sight::Facts> {
    let summary = state.job(job)?;
    let scope = resolve::scope(job);
    let Gathered { told_by, members, sights, ages, now } = gathered;
    let mut facts = sight::Facts {
        // Something may have happened since it was asked for.
        now_ms: now.max(state.now_ms()).0,
        job: sight::Job {
            name: summary.name.to_string(),
            heartbeat_timeout_ms: summary.spec.heartbeat_timeout_ms.0,
        },
        places: state.gatherings(scope, PLACES_MAX).ok()?.into_iter().map(place).collect(),
        places_left_out: places_left_out(&summary),
        ages_told: ages.is_some(),
        ..sight::Facts::default()
    };
    let ages = ages.unwrap_or_default();
    let infos = state.tasks(scope, &[]).ok()?.tasks;
    facts.tasks = infos.iter().map(|info| of_task(state, job, info, &ages)).collect();
    for (node, said) in &sights {
        if let Ok(said) = said {
            add_calls(&mut facts, *node, &said.calls);
            add_held(&mut facts, &said.held);
        }
    }
    for calls in facts.calls.values_mut() {
        calls.open.sort_by_key(|call| std::cmp::Reverse(call.since_ago_ms));
        calls.last.sort_by_key(|call| call.ended.map(|(_, ago)| ago));
    }
    facts.keys = keys(state, scope, &facts.calls);
    let nodes = sights.into_iter().map(|(id, said)| {
        let voter = members.iter().any(|member| member.node == id && member.voter);
        sight::Node { node: id.0, voter, said: said_of(said) }
    });
    facts.cluster = sight::Cluster {
        told_by: told_by.0,
        nodes: nodes.collect(),
        is_changing: state.registry().open().is_some(),
    };
    Some(facts)
}

/// Open barriers beyond those that are looked at.
fn places_left_out(summary: &job::Summary) -> u64 {
    u64::from(summary.barriers_open).saturating_sub(PLACES_MAX as u64)
}

fn of_task(state: &State, job: JobId, info: &task::Info, ages: &HeartbeatAges) -> sight::Task {
    let (id, incarnation) = (info.task, info.incarnation);
    let heard = ages.get(&id).filter(|(of, _)| *of == incarnation);
    let end = state.end_of(job, id, incarnation).map(|end| sight::End {
        how: end.how.to_string(),
        out_of_memory: matches!(end.how, How::Signalled { out_of_memory: true, .. }),
        at_ms: end.at.0,
        last_line: end.tail.lines().next_back().unwrap_or_default().to_owned(),
    });
    sight::Task {
        standing: match state.standing(job, id) {
            None | Some(Standing::NeverCame) => sight::Standing::NeverCame,
            Some(Standing::Registering) => sight::Standing::Registering,
            Some(Standing::Connected) => sight::Standing::Connected,
            Some(Standing::Left) => sight::Standing::Left,
            Some(Standing::Lost) => sight::Standing::Lost,
            Some(Standing::Ended) => sight::Standing::Ended,
            Some(Standing::Failed) => sight::Standing::Failed,
        },
        incarnation: incarnation.0,
        host: state.host(job, id, incarnation).to_owned(),
        origin: origin(state, job, info),
        silence_limit_ms: state
            .silence(job, id, incarnation, None)
            .map_or(0, |silence| silence.tolerated_ms.0),
        beat_age_ms: heard.map(|(_, age)| age.0),
        held: None,
        end,
        error: info.error.as_ref().map(error),
    }
}

fn origin(state: &State, job: JobId, info: &task::Info) -> sight::Origin {
    let origin = state.origin(job, info.task, info.incarnation).cloned().unwrap_or_default();
    let task::Origin { host: _, pid, client, agent, launcher } = origin;
    sight::Origin { pid, client, agent, launcher }
}

fn error(fault: &Fault) -> sight::TaskError {
    let mut text = fault.text();
    text.truncate(text.floor_char_boundary(ERROR_BYTES_MAX));
    sight::TaskError { text, is_own: !fault.comes_of_others() }
}

fn place(gathering: Gathering) -> sight::Place {
    let Gathering { report, arrived, missing } = gathering;
    let (kind, name) = match &report.what {
        What::Registration => (sight::PlaceKind::Registration, String::new()),
        What::Shutdown => (sight::PlaceKind::Shutdown, String::new()),
        What::Devices => (sight::PlaceKind::Devices, String::new()),
        What::Called(name) => (sight::PlaceKind::Barrier, name.to_string()),
        What::CalledInRuntime(id) => (sight::PlaceKind::Barrier, String::from_utf8_lossy(&id.0).into_owned()),
    };
    sight::Place {
        kind,
        name,
        opened_ms: report.opened.map(|opened| opened.0),
        timeout_ms: report.timeout.map(|timeout| timeout.0),
        arrived_count: report.arrived.count,
        missing_count: report.missing.count,
        arrived: arrived.iter().map(|task| task.0).collect(),
        missing: missing.iter().map(|task| task.0).collect(),
    }
}

fn add_calls(facts: &mut sight::Facts, node: NodeId, calls: &JobCalls) {
    facts.of_nobody = facts.of_nobody.saturating_add(calls.of_nobody);
    facts.not_entered = facts.not_entered.saturating_add(calls.not_entered);
    for (task, calls) in &calls.tasks {
        let known = facts.calls.entry(task.0).or_default();
        known.open.extend(calls.open.iter().map(|shown| call(shown, node)));
        known.last.extend(calls.last.iter().map(|shown| call(shown, node)));
    }
}

/// What a member was told of processes: each launcher tells one of them. What is not of a task's present life says nothing.
fn add_held(facts: &mut sight::Facts, held: &BTreeMap<TaskId, HeldProcess>) {
    for (task, held) in held {
        let found = usize::try_from(task.0).ok().and_then(|task| facts.tasks.get_mut(task));
        let Some(found) = found.filter(|found| found.incarnation == held.incarnation.0) else { continue };
        let state = match held.state {
            HeldState::Stopped => sight::HeldState::Stopped,
            HeldState::Disk => sight::HeldState::Disk,
        };
        let (waits_in, since_ago_ms) = (held.waits_in.clone(), millis(held.since));
        found.held = Some(sight::Held { state, waits_in, since_ago_ms });
    }
}

fn call(shown: &ShownCall, node: NodeId) -> sight::Call {
    let outcome = |outcome| match outcome {
        CallOutcome::Passed => sight::Outcome::Passed,
        CallOutcome::Refused => sight::Outcome::Refused,
        CallOutcome::HungUp => sight::Outcome::HungUp,
    };
    sight::Call {
        kind: match shown.kind {
            CallKind::Registration => sight::CallKind::Registration,
            CallKind::Barrier => sight::CallKind::Barrier,
            CallKind::Shutdown => sight::CallKind::Shutdown,
            CallKind::Devices => sight::CallKind::Devices,
            CallKind::Key => sight::CallKind::Key,
            CallKind::Alive => sight::CallKind::Alive,
            CallKind::Tasks => sight::CallKind::Tasks,
        },
        subject: shown.subject.clone(),
        since_ago_ms: millis(shown.since),
        ended: shown.ended.map(|(how, ago)| (outcome(how), millis(ago))),
        node: node.0,
    }
}

fn keys(state: &State, scope: Scope, calls: &BTreeMap<i32, sight::Calls>) -> BTreeMap<String, sight::Key> {
    let mut keys = BTreeMap::new();
    let open = calls.values().flat_map(|calls| &calls.open);
    // Of a long name only its end is known, which is another key's name.
    let is_whole = |call: &&sight::Call| !call.subject.starts_with(CUT);
    for call in open.filter(|call| call.kind == sight::CallKind::Key).filter(is_whole) {
        if keys.len() >= KEYS_MAX {
            break;
        }
        keys.entry(call.subject.clone()).or_insert_with(|| key(state, scope, &call.subject));
    }
    keys
}

fn key(state: &State, scope: Scope, asked: &str) -> sight::Key {
    let directory = asked.rsplit_once('/').map(|(directory, _)| format!("{}/", directory.trim_matches('/')));
    let siblings = directory.and_then(|directory| state.list(scope, &directory, None, SIBLINGS_MAX).ok());
    let siblings = siblings.map_or(0, |siblings| siblings.len() as u64);
    sight::Key { exists: state.get(scope, asked).is_ok(), siblings }
}

fn said_of(said: Result<NodeSight, NodeSilence>) -> sight::Said {
    match said {
        Ok(said) => sight::Said::Word(sight::NodeWord {
            leader: said.leader.map(|leader| leader.0),
            committed: said.committed.0,
            applied: said.applied.0,
            contact_ago_ms: said.contact_ago.map(millis),
            held_calls: said.held_calls,
            flush_p99_us: said.flush_p99.map(|p99| u64::try_from(p99.as_micros()).unwrap_or(u64::MAX)),
            flush_under_way_ms: said.flush_under_way.map(millis),
            pause: said.pause.map(|(length, ended)| (millis(length), millis(ended))),
            heard: said.heard.into_iter().map(|(node, ago)| (node.0, millis(ago))).collect(),
        }),
        Err(NodeSilence::PortRefuses) => sight::Said::PortRefuses,
        Err(NodeSilence::Silent) => sight::Said::Silent,
        Err(NodeSilence::Unreachable(why)) => sight::Said::Unreachable(why),
        Err(error @ (NodeSilence::Refuses(_) | NodeSilence::NoMember)) => {
            sight::Said::Refuses(error.to_string())
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
