//! What must hold after every command, seen from outside.

use std::collections::{BTreeMap, BTreeSet};

use tripod_state::mindspore::cluster::{self, Change, Incarnation, NodeView, Order};
use tripod_state::mindspore::topology::TopoState;
use tripod_state::mindspore::{Answer, Command, Decision, Member, Role};
use tripod_state::{Reply, State};

use super::SCOPE;

type Process = (Member, Incarnation);

/// What was seen so far.
#[derive(Default)]
pub(super) struct Laws {
    generation: u64,
    topology_generation: u64,
    /// The rank of each node in each generation of the cluster, and of the topology once it is final.
    ranks: BTreeMap<(u64, Member), Option<u32>>,
    topology_ranks: BTreeMap<(u64, Member), u32>,
    /// The events that each process is still to be told, in their order.
    owed: BTreeMap<Process, Vec<u64>>,
    /// Those that were given up: nothing is kept for them.
    given_up: BTreeSet<Process>,
    events: u64,
}

impl Laws {
    pub(super) fn check(
        &mut self,
        before: &State,
        command: &Command,
        reply: &Reply,
        after: &State,
    ) -> Result<(), String> {
        self.check_cluster(after)?;
        self.check_topology(after)?;
        self.check_events(before, command, reply, after)?;
        a_plan_is_what_happens(before, command, reply, after)?;
        events_are_kept_while_somebody_lacks_them(after)?;
        all_are_released(before, command, after)
    }

    fn check_cluster(&mut self, state: &State) -> Result<(), String> {
        let view = state.cluster(SCOPE).expect("the job is there");
        if view.generation < self.generation || view.published > view.generation {
            return Err(format!("the generation was {} and is {view:?}", self.generation));
        }
        self.generation = view.generation;
        let mut taken: BTreeSet<(Role, u32)> = BTreeSet::new();
        for node in nodes(state) {
            let known = self.ranks.entry((view.generation, node.member)).or_insert(node.rank);
            if *known != node.rank {
                return Err(format!("the rank of {} was {known:?} in this generation: {node:?}", node.node));
            }
            let Some(rank) = node.rank else { continue };
            if !taken.insert((node.role, rank)) {
                return Err(format!("rank {rank} is given twice: {node:?}"));
            }
            if rank >= view.expected.count(node.role) {
                return Err(format!("rank {rank} is too high: {node:?}"));
            }
        }
        Ok(())
    }

    fn check_topology(&mut self, state: &State) -> Result<(), String> {
        let view = state.topology(SCOPE).expect("the job is there");
        if view.generation < self.topology_generation || view.registered > view.nodes {
            return Err(format!("the generation was {} and is {view:?}", self.topology_generation));
        }
        self.topology_generation = view.generation;
        let mut taken: BTreeSet<(Role, u32)> = BTreeSet::new();
        for node in state.topology_nodes(SCOPE).expect("the job is there") {
            if !taken.insert((node.role.base(), node.rank)) {
                return Err(format!("rank {} is given twice: {node:?}", node.rank));
            }
            let name = format!("{}{}", node.role.name(), node.node);
            let entry = state.topology_metadata(SCOPE, &name).expect("the job is there");
            if view.state == TopoState::Initialized {
                let known = self.topology_ranks.entry((view.generation, node.member)).or_insert(node.rank);
                let told = entry.is_some_and(|entry| *entry == *node.rank.to_string().as_bytes());
                if *known != node.rank || !told {
                    return Err(format!("the rank was {known}: {node:?}"));
                }
            }
        }
        Ok(())
    }

    fn check_events(
        &mut self,
        before: &State,
        command: &Command,
        reply: &Reply,
        after: &State,
    ) -> Result<(), String> {
        if let Ok(tripod_state::Answer::Mindspore(Answer::Accepted { sequence })) = reply {
            if *sequence <= self.events {
                return Err(format!("event {sequence} comes after event {}", self.events));
            }
            self.events = *sequence;
            for node in nodes(before).filter(|node| node.rank.is_some()) {
                self.owed.entry((node.member, node.incarnation)).or_default().push(*sequence);
            }
        }
        if let Command::Lead { decision, .. } = command {
            self.check_decision(decision, after)?;
        }
        // Who is no member any more, begins anew, or leaves, is owed nothing.
        let stay: BTreeSet<Process> =
            nodes(after).filter(|node| node.rank.is_some()).map(|node| process(&node)).collect();
        self.owed.retain(|process, _| stay.contains(process));
        self.given_up.extend(
            nodes(after).filter(|node| node.is_finished && !node.is_alive).map(|node| process(&node)),
        );
        for node in nodes(after).filter(|node| node.rank.is_some() && node.is_alive) {
            if self.given_up.contains(&process(&node)) {
                continue;
            }
            let told = after.cluster_orders_of(SCOPE.job, node.member);
            let order = told.iter().flat_map(|told| &told.orders).find_map(|order| match order {
                Order::Event { sequence, .. } => Some(sequence),
                _ => None,
            });
            let owed = self.owed.get(&process(&node)).and_then(|owed| owed.first());
            // One that does not know of the others is told of them first.
            let next = owed.filter(|_| node.is_entered);
            if order != next {
                return Err(format!("the next event of {} is {order:?}, not {next:?}", node.node));
            }
        }
        Ok(())
    }

    fn check_decision(&mut self, decision: &Decision, after: &State) -> Result<(), String> {
        match decision {
            Decision::Echoed { echoes } => {
                for echo in echoes {
                    let Order::Event { sequence, .. } = echo.order else { continue };
                    if self.given_up.contains(&(echo.member, echo.incarnation)) {
                        continue;
                    }
                    let owed = self.owed.entry((echo.member, echo.incarnation)).or_default();
                    if owed.first() != Some(&sequence) {
                        return Err(format!("event {sequence} was told, not the first of {owed:?}"));
                    }
                    owed.remove(0);
                }
            }
            Decision::ClusterGaveUp { nodes: lost } => {
                let alive: BTreeSet<Process> =
                    nodes(after).filter(|node| node.is_alive).map(|node| process(&node)).collect();
                self.given_up.extend(lost.iter().filter(|process| !alive.contains(process)));
            }
            _ => {}
        }
        Ok(())
    }
}

/// Nodes that are to be told that all have finished are not forgotten before that, unless they begin anew themselves.
fn all_are_released(before: &State, command: &Command, after: &State) -> Result<(), String> {
    let begins = match command {
        Command::Cluster { request: cluster::Request::Register { node, .. }, .. } => node.as_str(),
        _ => "",
    };
    let left: BTreeSet<Member> = nodes(after).map(|node| node.member).collect();
    for told in before.cluster_orders(SCOPE.job) {
        let is_waiting = told.orders.contains(&Order::Finish) && told.node.as_str() != begins;
        if is_waiting && !left.contains(&told.member) {
            return Err(format!("{} was never told that all have finished", told.node));
        }
    }
    Ok(())
}

/// Scaling does what was planned just before, and is refused where the plan was.
fn a_plan_is_what_happens(
    before: &State,
    command: &Command,
    reply: &Reply,
    after: &State,
) -> Result<(), String> {
    let change = match command {
        Command::Cluster { request: cluster::Request::ScaleOut { workers: 0, servers }, .. } => {
            Change::Add { servers: *servers }
        }
        Command::Cluster { request: cluster::Request::ScaleIn { nodes }, .. } => {
            Change::Leave { nodes: nodes.clone() }
        }
        _ => return Ok(()),
    };
    let plan = match (before.cluster_plan(SCOPE, &change), reply) {
        (Ok(plan), Ok(_)) => plan,
        (Err(planned), Err(refused)) if planned == *refused => return Ok(()),
        (planned, _) => return Err(format!("{planned:?} was planned, and answered was {reply:?}")),
    };
    let expected = after.cluster(SCOPE).expect("the job is there").expected;
    let ranks: BTreeMap<_, _> = nodes(after).map(|node| (node.node, node.rank)).collect();
    let planned: BTreeMap<_, _> = plan.nodes.iter().map(|node| (node.node.clone(), node.after)).collect();
    if plan.after != expected || planned != ranks {
        return Err(format!("{plan:?} was planned, and there are {expected:?}, {ranks:?}"));
    }
    Ok(())
}

/// And every one that is not is counted.
fn events_are_kept_while_somebody_lacks_them(state: &State) -> Result<(), String> {
    let found = state.cluster_events(SCOPE, 0).expect("the job is there");
    let is_whole = found.missed + found.events.len() as u64 + 1 == found.next;
    if !is_whole || found.events.iter().any(|event| event.untold == 0) {
        return Err(format!("an event is missing, or kept for nobody: {found:?}"));
    }
    Ok(())
}

fn process(node: &NodeView) -> Process {
    (node.member, node.incarnation)
}

fn nodes(state: &State) -> impl Iterator<Item = NodeView> {
    state.cluster_nodes(SCOPE).expect("the job is there").into_iter()
}
