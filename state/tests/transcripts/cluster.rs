//! Commands to the cluster of a parameter server, and looks at it, as lines. Nodes are named, and listen at `at=IP:PORT`,
//! or at `NAME:1`. What an operator asks can be `planned=GENERATION`. Whoever plays the leader tells a node its first order, and says with `ps-echo` that it answered.

use std::fmt::Write as _;

use bytes::Bytes;
use tripod_state::mindspore::cluster::{
    Change, Echo, Incarnation, Order, Recipient, Request, Scaling, Switch,
};
use tripod_state::mindspore::{Command, Decision, Member, Role};
use tripod_state::{Scope, State};

use crate::script::Line;
use crate::show;

/// The command of a line.
pub(crate) fn command(scope: Scope, state: &State, line: &Line<'_>) -> Command {
    match decision(scope, state, line) {
        Some(decision) => Command::Lead { scope, decision },
        None => match line.get("planned") {
            Some(generation) => Command::Planned { scope, generation, request: request(line) },
            None => Command::Cluster { scope, request: request(line) },
        },
    }
}

/// What a line that only looks is told.
pub(crate) fn look(scope: Scope, state: &State, line: &Line<'_>) -> Option<String> {
    Some(match line.word(0) {
        "ps" => show::plain(&state.cluster(scope)),
        "ps-node" => show::plain(&state.cluster_node(scope, line.word(1))),
        "ps-nodes" => {
            let nodes = state.cluster_nodes(scope).expect("the job is there");
            let mut told = "nodes".to_owned();
            for node in nodes {
                let rank = node.rank.map_or("-".to_owned(), |rank| rank.to_string());
                let life = if node.is_alive { "" } else { " dead" };
                let place = if node.is_entered { "" } else { " outside" };
                let finished = if node.is_finished { " finished" } else { "" };
                let (name, role, ip, port, state) = (node.node, node.role, node.ip, node.port, node.state);
                write!(told, "\n  {role:?} {rank} {name} {ip}:{port} {state:?}{life}{place}{finished}")
                    .expect("a string takes all");
            }
            told
        }
        "ps-report" => show::plain(&state.cluster_report(scope)),
        "ps-told" => {
            let nodes = state.cluster_node_reports(scope).expect("the job is there");
            let told = nodes.into_iter().map(|node| {
                let next = node.next.map_or("-", Order::word);
                format!(
                    "\n  {} {:?} told={} next={next} events={}",
                    node.view.node, node.life, node.told, node.events
                )
            });
            format!("told{}", told.collect::<String>())
        }
        "ps-events" => show::plain(&state.cluster_events(scope, line.or("after", 0))),
        "ps-plan" => match state.cluster_plan(scope, &change(line)) {
            Ok(plan) => {
                let mut told = format!(
                    "planned for generation {}: {:?} to {:?}, {} added, free ranks {:?}",
                    plan.generation, plan.before, plan.after, plan.added, plan.free_ranks
                );
                for node in plan.nodes {
                    let rank = |rank: Option<u32>| rank.map_or("-".to_owned(), |rank| rank.to_string());
                    let (before, after) = (rank(node.before), rank(node.after));
                    write!(told, "\n  {:?} {} {before} to {after}", node.role, node.node)
                        .expect("a string takes all");
                }
                told
            }
            Err(fault) => format!("refused {}", show::plain(&fault)),
        },
        "ps-orders" => {
            let mut told = "orders".to_owned();
            for Recipient { node, orders, .. } in state.cluster_orders(scope.job) {
                let orders: Vec<String> = orders.iter().map(show::plain).collect();
                write!(told, "\n  {node}: {}", orders.join(", ")).expect("a string takes all");
            }
            told
        }
        "ps-watched" => {
            let members = state.cluster_members(scope.job);
            let nodes = state.cluster_nodes(scope).expect("the job is there");
            let named = members.iter().filter_map(|(member, _)| {
                let node = nodes.iter().find(|node| node.member == *member)?;
                Some(format!(" {}", node.node))
            });
            format!("watched{}", named.collect::<String>())
        }
        "ps-next-due" => show::plain(&state.cluster_next_due(scope.job)),
        "ps-switching" => show::plain(&state.cluster_switch(scope.job)),
        _ => return None,
    })
}

/// What a plan is asked for: `add=N`, `to=N`, or names.
fn change(line: &Line<'_>) -> Change {
    match (line.get("add"), line.get("to")) {
        (Some(servers), _) => Change::Add { servers },
        (_, Some(servers)) => Change::Resize { servers },
        _ => Change::Leave { nodes: line.words_from(1).map(str::to_owned).collect() },
    }
}

fn decision(scope: Scope, state: &State, line: &Line<'_>) -> Option<Decision> {
    let nodes = || line.words_from(1).map(|name| process(scope, state, line, name)).collect();
    Some(match line.word(0) {
        "ps-silent" => Decision::ClusterSilent { nodes: nodes() },
        "ps-heard" => Decision::ClusterHeard { nodes: nodes() },
        "ps-gave-up" => Decision::ClusterGaveUp { nodes: nodes() },
        "ps-timed-out" => {
            let current = state.cluster(scope).map_or(0, |view| view.generation);
            Decision::ClusterTimedOut { generation: line.or("generation", current) }
        }
        "ps-switch-ended" => {
            let current = state.cluster_switch(scope.job).map_or(0, |(number, _, _)| number);
            Decision::ClusterSwitchEnded { switch: line.or("number", current) }
        }
        // The first order of each, or of all.
        "ps-echo" => {
            let named: Vec<&str> = line.words_from(1).collect();
            let all = state.cluster_orders(scope.job).into_iter();
            let told = all.filter(|told| named.is_empty() || named.contains(&told.node.as_str()));
            let echo = |told: Recipient| Echo {
                member: told.member,
                incarnation: line.get("process").map_or(told.incarnation, Incarnation),
                order: told.orders[0],
            };
            Decision::Echoed { echoes: told.map(echo).collect() }
        }
        _ => return None,
    })
}

/// One that is not there is nobody's.
fn process(scope: Scope, state: &State, line: &Line<'_>, name: &str) -> (Member, Incarnation) {
    let node = state.cluster_node(scope, name).expect("the job is there");
    let (member, process) =
        node.map_or((Member(u64::MAX), Incarnation(0)), |node| (node.member, node.incarnation));
    (member, line.get("process").map_or(process, Incarnation))
}

fn request(line: &Line<'_>) -> Request {
    let node = || line.text(1);
    let incarnation = line.get("process").map(Incarnation);
    match line.word(0) {
        "ps-register" => {
            let address = line.option("at").unwrap_or(line.word(1));
            let (ip, port) = address.split_once(':').unwrap_or((address, "1"));
            Request::Register {
                node: node(),
                role: role(line),
                ip: ip.to_owned(),
                port: line.number(port),
                offered_rank: line.get("offers"),
                recovering: line.flag("recovering"),
            }
        }
        "ps-finish" => Request::Finish { node: node(), incarnation },
        "ps-done" => {
            let scaling = if line.flag("in") { Scaling::In } else { Scaling::Out };
            Request::Done { node: node(), incarnation, scaling }
        }
        "ps-event" => Request::Event { node: node(), incarnation, event: line.number(line.word(2)) },
        "ps-scale-out" => {
            Request::ScaleOut { workers: line.or("workers", 0), servers: line.or("servers", 0) }
        }
        "ps-scale-in" => Request::ScaleIn { nodes: line.words_from(1).map(str::to_owned).collect() },
        "ps-abort" => Request::Abort,
        "ps-switch" => {
            let switch = match line.word(1) {
                "new-instance" => Switch::NewInstance,
                "enable-fls" => Switch::EnableFls,
                _ => Switch::DisableFls,
            };
            let body = line.option("body").unwrap_or("").repeat(line.or("times", 1));
            Request::Switch { switch, body: Bytes::from(body) }
        }
        _ => line.unknown(),
    }
}

fn role(line: &Line<'_>) -> Role {
    if line.flag("worker") { Role::Worker } else { Role::Server }
}
