//! Texts that a task, a worker or anybody who calls can set, on their way to a terminal.

use tripod_client::{Entry, wire};
use tripod_proto::ray;

use crate::failure::Failure;
use crate::launch::screen_of;
use crate::output;
use crate::view::cluster::ClusterView;
use crate::view::job::JobView;
use crate::view::members::MembersView;
use crate::view::mindspore::nodes::NodesView;
use crate::view::ray::graph;
use crate::view::ray::status::RayStatusView;
use crate::view::ray::tasks::{self, RayTaskView};
use crate::view::{job, key};

/// Sets a title, clears the screen, turns letters around, and makes lines.
const HOSTILE: &str = "x\x1b]0;mine\x07\x1b[2J\u{9b}31m\u{202e}y\u{2028}\x7f\rz\nnode 1  ok";

fn job_with(text: &str) -> wire::Job {
    let text = || text.to_owned();
    let barrier = wire::BarrierState {
        id: text(),
        failure: Some(wire::BarrierFailure { text: text(), reason: text(), ..Default::default() }),
        ..Default::default()
    };
    let end = wire::ProcessEnd { tail: text(), ..Default::default() };
    let (client, agent, launcher) = (text(), text(), text());
    let origin = Some(wire::TaskOrigin { host: text(), pid: 1, client, agent, launcher });
    let (state, end, host) = ("error".to_owned(), Some(end), text());
    let (error, reason) = (text(), text());
    let task = wire::TaskState { state, error, reason, end, host, origin, ..Default::default() };
    wire::Job {
        name: text(),
        note: text(),
        spec: Some(wire::JobSpec {
            groups: vec![wire::TaskGroup { name: text(), tasks: 1 }],
            listeners: vec![wire::TaskListener { task_id: 0, address: text() }],
            ..Default::default()
        }),
        protocols: vec![text(), text()],
        addresses: vec![wire::JobAddress { node_id: 1, address: text() }],
        tasks: vec![task],
        barriers: vec![barrier],
        ..Default::default()
    }
}

fn status_with(text: &str) -> wire::RayStatusResponse {
    let text = || text.to_owned();
    let worker = wire::RayWorker {
        state: text(),
        kind: text(),
        address: text(),
        reason: text(),
        ..Default::default()
    };
    let store = wire::RayStore { state: text(), address: text(), ..Default::default() };
    wire::RayStatusResponse { workers: vec![worker], stores: vec![store], ..Default::default() }
}

fn nodes_with(text: &str) -> wire::MindsporeNodes {
    let text = || text.to_owned();
    let worker =
        wire::MindsporeTopologyNode { node_id: text(), host: text(), address: text(), ..Default::default() };
    let server = wire::MindsporeClusterNode { node_id: text(), address: text(), ..Default::default() };
    wire::MindsporeNodes {
        topology: vec![worker],
        topology_generation: 1,
        cluster: vec![server],
        cluster_generation: 1,
    }
}

fn members_with(text: &str) -> wire::ListMembersResponse {
    let text = || text.to_owned();
    let change = || wire::MemberChange { what: text(), by: text(), ending: text(), ..Default::default() };
    wire::ListMembersResponse {
        cluster_id: text(),
        members: vec![wire::MemberSight {
            peer_address: text(),
            client_address: text(),
            ..Default::default()
        }],
        open: Some(change()),
        last: Some(change()),
        ..Default::default()
    }
}

/// Everything that is printed of such texts, by the command that prints it.
fn printed(text: &str) -> Vec<(&'static str, String)> {
    let job = job_with(text);
    let ray_task = wire::RayTask {
        function_name: text.to_owned(),
        state: text.to_owned(),
        error: text.replace('\n', " "),
        history: vec![text.to_owned()],
        ..Default::default()
    };
    let task = ray::Task { name: text.to_owned().into(), ..Default::default() };
    let operation = ray::Operation { task: Some(task), ..Default::default() };
    let operations = graph::operations(&ray::CompGraph { operation: vec![operation] }, 0);
    let entry = Entry { key: text.to_owned(), value: text.to_owned().into(), version: 1, modified_index: 1 };
    let answer = tripod_client::NodeAnswer {
        endpoint: "a:1".into(),
        status: Ok(wire::StatusResponse {
            node_id: 1,
            cluster_id: text.to_owned(),
            growth_refused: text.to_owned(),
            ..Default::default()
        }),
    };
    let attempt = tripod_client::Attempt {
        endpoint: "a:1".into(),
        phase: tripod_client::Phase::Call,
        cause: text.to_owned(),
    };
    let refused = tripod_client::Error::Unavailable {
        what: "kv put",
        waited: std::time::Duration::ZERO,
        attempts: vec![attempt],
    };
    vec![
        ("job show", JobView::full(&job).render(0)),
        ("job list", job::list(std::slice::from_ref(&job))),
        ("run", screen_of(job, 0)),
        ("kv list", key::list(&[entry], false)),
        ("ray status", RayStatusView::of(status_with(text)).render()),
        ("ray tasks", tasks::render(&[RayTaskView::of(ray_task)])),
        ("ray graph", graph::list(&operations)),
        ("ray graph --dot", graph::dot(&operations, &std::collections::BTreeSet::new())),
        ("mindspore nodes", NodesView::of("fl", nodes_with(text)).render(0)),
        ("member list", MembersView::of(&members_with(text)).render()),
        ("status", ClusterView::of(&[answer], false).render()),
        ("an error", Failure::from(refused).to_string()),
    ]
}

#[test]
fn no_text_of_a_client_is_an_order_to_a_terminal_or_makes_a_line() {
    for ((command, shown), (_, ordinary)) in printed(HOSTILE).into_iter().zip(printed("x")) {
        let shown = output::lines(&shown);
        let order = |c: char| c != '\n' && (c.is_control() || "\u{202e}\u{2028}".contains(c));
        assert!(!shown.contains(order), "{command}: {shown:?}");
        assert_eq!(shown.lines().count(), ordinary.lines().count(), "{command}: {shown}");
    }
}
