//! A job as it is printed.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::Serialize;
use tripod_client::wire;

use crate::output::{self, Table};
use crate::view::barrier::BarrierView;
use crate::view::task::{self, TaskFilter, TaskView};
use crate::view::{tasks, time};

/// What `job create` prints. A contract: fields may be added, never renamed.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct JobView {
    job: String,
    /// The port of the first address.
    port: Option<u16>,
    /// One for each node that can serve the job, in order of node id.
    addresses: Vec<String>,
    /// What a gRPC client is given to reach the job through every node.
    target: String,
    /// Where nodes of MindSpore find it, one for each node that serves them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    mindspore_addresses: Vec<String>,
    #[serde(flatten)]
    state: Option<JobState>,
    /// Absent unless nobody leads, and this is what one node remembers.
    #[serde(skip_serializing_if = "Option::is_none")]
    as_of: Option<AsOfView>,
}

/// Up to where the node knew what it told.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct AsOfView {
    node: u64,
    /// Of the last log entry in its state.
    index: u64,
    /// The log's time of that entry, since the Unix epoch.
    now_ms: u64,
    why: String,
}

/// What `job show` and `job list` print besides.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct JobState {
    id: u64,
    /// What somebody wrote about it; `job show` only.
    #[serde(skip_serializing_if = "String::is_empty")]
    note: String,
    /// In decimal text: it may not fit the numbers of every JSON reader.
    service_incarnation: String,
    tasks: u32,
    tasks_connected: u32,
    tasks_in_error: u32,
    keys: u64,
    key_bytes: u64,
    /// What everything of it takes of each node's memory, roughly.
    memory_bytes: u64,
    barriers_open: u32,
    /// What its tasks have spoken so far.
    protocols: Vec<String>,
    heartbeat_timeout_ms: u64,
    register_timeout_ms: u64,
    shutdown_timeout_ms: u64,
    recoverable: bool,
    shutdown_barrier: bool,
    poll: &'static str,
    reconnect: bool,
    /// In the order in which their tasks are numbered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    members: Vec<GroupView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    listeners: Vec<ListenerView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    task_states: Vec<TaskView>,
    /// Each task has a row, however many they are.
    #[serde(skip)]
    tells_each: bool,
    /// The leader has said when it heard the tasks.
    #[serde(skip)]
    heard_told: bool,
    /// Those that failed lately, the newest first, and then those that are open.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    barriers: Vec<BarrierView>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct GroupView {
    name: String,
    tasks: u32,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct ListenerView {
    task: i32,
    address: String,
}

impl JobView {
    /// Where the job is.
    pub(crate) fn place(job: &wire::Job) -> Self {
        let mut addresses = job.addresses.clone();
        addresses.sort_by_key(|address| address.node_id);
        let addresses: Vec<_> = addresses.into_iter().map(|address| address.address).collect();
        let port = addresses.first().and_then(|first| first.rsplit_once(':')?.1.parse().ok());
        let (job, target) = (job.name.clone(), target(&addresses));
        Self { job, port, target, addresses, mindspore_addresses: Vec::new(), state: None, as_of: None }
    }

    /// The same, and where nodes of MindSpore find it.
    pub(crate) fn with_mindspore(self, mindspore_addresses: Vec<String>) -> Self {
        Self { mindspore_addresses, ..self }
    }

    /// Where the job is and how it is.
    pub(crate) fn full(job: &wire::Job) -> Self {
        Self::of_tasks(job, &TaskFilter::default())
    }

    /// The same with some of its tasks only.
    pub(crate) fn of_tasks(job: &wire::Job, filter: &TaskFilter) -> Self {
        let as_of = job.as_of.as_ref().map(|as_of| AsOfView {
            node: as_of.node_id,
            index: as_of.index,
            now_ms: as_of.now_ms,
            why: as_of.why.clone(),
        });
        Self { state: Some(JobState::of(job, filter)), as_of, ..Self::place(job) }
    }

    pub(crate) fn render(&self, now_ms: u64) -> String {
        let (job, target) = (output::text(&self.job), output::text(&self.target));
        let mut text = format!("job {job}\n{}target {target}", self.ports());
        if let Some(as_of) = &self.as_of {
            text.push_str(&format!(
                "\nnobody leads: as node {} remembers it, up to entry {}, {} ago",
                as_of.node,
                as_of.index,
                time::since(as_of.now_ms, now_ms)
            ));
        }
        if !self.mindspore_addresses.is_empty() {
            let at = self.mindspore_addresses.join(",");
            text.push_str(&format!("\nmindspore {}", output::text(&at)));
        }
        match &self.state {
            Some(state) => text.push_str(&state.render(now_ms)),
            None if self.target.is_empty() => {}
            None => text.push_str(&format!("\n\n{}", list_exports(&target))),
        }
        text
    }

    /// A line with the job's port on every node; on one machine each node has another one.
    fn ports(&self) -> String {
        let mut ports: Vec<&str> =
            self.addresses.iter().filter_map(|address| Some(address.rsplit_once(':')?.1)).collect();
        ports.dedup();
        match ports[..] {
            [] => String::new(),
            [port] => format!("port {}\n", output::text(port)),
            _ => format!("ports {}\n", output::text(&ports.join(", "))),
        }
    }
}

impl JobState {
    fn of(job: &wire::Job, filter: &TaskFilter) -> Self {
        let spec = job.spec.clone().unwrap_or_default();
        let groups = spec.groups.into_iter().map(|group| GroupView { name: group.name, tasks: group.tasks });
        let listeners =
            spec.listeners.into_iter().map(|at| ListenerView { task: at.task_id, address: at.address });
        let tasks = job.tasks.iter().filter(|task| filter.has(task)).map(TaskView::of);
        Self {
            id: job.id,
            note: job.note.clone(),
            service_incarnation: job.service_incarnation.to_string(),
            tasks: spec.tasks,
            tasks_connected: job.tasks_connected,
            tasks_in_error: job.tasks_in_error,
            keys: job.keys,
            key_bytes: job.key_bytes,
            memory_bytes: job.memory_bytes,
            barriers_open: job.barriers_open,
            protocols: job.protocols.clone(),
            heartbeat_timeout_ms: spec.heartbeat_timeout_ms,
            register_timeout_ms: spec.register_timeout_ms,
            shutdown_timeout_ms: spec.shutdown_timeout_ms.unwrap_or(0),
            recoverable: spec.recoverable,
            shutdown_barrier: spec.shutdown_barrier.unwrap_or(false),
            poll: if spec.poll == i32::from(wire::PollMode::Hold) { "hold" } else { "release" },
            reconnect: spec.reconnect,
            members: groups.collect(),
            listeners: listeners.collect(),
            task_states: tasks.collect(),
            tells_each: filter.all,
            heard_told: job.heard_told,
            barriers: job.barriers.iter().map(BarrierView::of).collect(),
        }
    }

    /// The tasks that may be silent for longer than the job's own timeout, by how long.
    fn slow_tasks(&self) -> BTreeMap<u64, Vec<i32>> {
        let mut slow = BTreeMap::<_, Vec<_>>::new();
        for task in &self.task_states {
            if task.silence_limit_ms > self.heartbeat_timeout_ms {
                slow.entry(task.silence_limit_ms).or_default().push(task.id());
            }
        }
        slow
    }

    /// How long who waits for a heartbeat, side by side, and what that means where they do not agree.
    fn timeouts(&self) -> String {
        let mut text = format!("\nheartbeat timeout  job {}", time::seconds(self.heartbeat_timeout_ms));
        let slow = self.slow_tasks();
        for (limit_ms, tasks) in &slow {
            let who = tasks::named(tasks, tasks.len());
            text.push_str(&format!(", clients {} ({who})", time::about(*limit_ms)));
        }
        if !slow.is_empty() {
            text.push_str(": THEY DISAGREE");
        }
        for (limit_ms, tasks) in &slow {
            let what = rare_heartbeats(tasks, *limit_ms, self.heartbeat_timeout_ms);
            text.push_str(&format!("\nheartbeats {what}"));
        }
        text
    }

    fn render(&self, now_ms: u64) -> String {
        let mut text = format!(
            "\ntasks {} connected, {} in error, of {}   keys {} ({} bytes)   barriers {} open   memory {} bytes",
            self.tasks_connected,
            self.tasks_in_error,
            self.tasks,
            self.keys,
            self.key_bytes,
            self.barriers_open,
            self.memory_bytes
        );
        text.push_str(&self.timeouts());
        if !self.members.is_empty() {
            let members = self.members.iter().map(|group| format!("{}:{}", group.name, group.tasks));
            text.push_str(&format!("\nmembers {}", output::text(&members.collect::<Vec<_>>().join(","))));
        }
        for at in &self.listeners {
            text.push_str(&format!("\ntask {} is told of errors at {}", at.task, output::text(&at.address)));
        }
        if self.protocols.len() > 1 {
            let all = self.protocols.join(", ");
            let all = output::text(&all);
            text.push_str(&format!("\nprotocols {all}: its tasks are of releases that do not go together"));
        }
        for barrier in &self.barriers {
            text.push('\n');
            text.push_str(&barrier.render(now_ms));
        }
        if self.task_states.is_empty() {
            return text;
        }
        text.push('\n');
        text.push_str(&task::table(&self.task_states, self.tells_each, self.heard_told));
        text
    }
}

/// Tasks whose programs send heartbeats more rarely than their job asks for.
pub(crate) fn rare_heartbeats(tasks: &[i32], limit_ms: u64, job_ms: u64) -> String {
    let (send, wait) = if tasks.len() == 1 { ("sends", "it is") } else { ("send", "they are") };
    format!(
        "{} {send} one every {}, and the job's own timeout is {}: {wait} given up after {}",
        tasks::named(tasks, tasks.len()),
        time::about(limit_ms / 2),
        time::seconds(job_ms),
        time::about(limit_ms)
    )
}

/// Every job, one a line.
pub(crate) fn list(jobs: &[wire::Job]) -> String {
    let mut table = Table::new(&["JOB", "TASKS", "CONNECTED", "ERROR", "KEYS", "BARRIERS", "TARGET"]);
    for job in jobs {
        table.row(vec![
            job.name.clone(),
            job.spec.as_ref().map_or(0, |spec| spec.tasks).to_string(),
            job.tasks_connected.to_string(),
            job.tasks_in_error.to_string(),
            job.keys.to_string(),
            job.barriers_open.to_string(),
            JobView::place(job).target,
        ]);
    }
    table.render()
}

/// What somebody types for a JAX program that is given the list of nodes.
fn list_exports(target: &str) -> String {
    format!(
        "\
export JAX_COORDINATOR_ADDRESS={target}
export JAX_COORDINATOR_BIND_ADDRESS=127.0.0.1:0
export GRPC_FAIL_FAST=false"
    )
}

/// What somebody types for a JAX program that finds the nodes by xDS.
pub(crate) fn xds_exports(job: &str) -> String {
    format!(
        "\
export GRPC_XDS_BOOTSTRAP_CONFIG=\"$(tripod job show {job} --xds-bootstrap)\"
export JAX_COORDINATOR_ADDRESS=xds:///{job}:1
export JAX_COORDINATOR_BIND_ADDRESS=127.0.0.1:0"
    )
}

/// gRPC takes a list of addresses only when they are numeric; a name stands for itself.
pub(crate) fn target(addresses: &[String]) -> String {
    let parsed: Option<Vec<SocketAddr>> = addresses.iter().map(|address| address.parse().ok()).collect();
    let all = addresses.join(",");
    match parsed {
        Some(parsed) if parsed.is_empty() => String::new(),
        Some(parsed) if parsed.iter().all(SocketAddr::is_ipv4) => format!("ipv4:{all}"),
        Some(parsed) if parsed.iter().all(SocketAddr::is_ipv6) => format!("ipv6:{all}"),
        _ => format!("dns:///{}", addresses.first().map_or("", String::as_str)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn job() -> wire::Job {
        let address =
            |node_id: u64| wire::JobAddress { node_id, address: format!("127.0.0.1:8{}00", node_id - 1) };
        wire::Job {
            name: "train".into(),
            id: 5,
            spec: Some(wire::JobSpec {
                tasks: 2,
                poll: wire::PollMode::Hold.into(),
                groups: vec![wire::TaskGroup { name: "worker".into(), tasks: 2 }],
                listeners: vec![wire::TaskListener { task_id: 1, address: "10.0.0.2:2222".into() }],
                ..Default::default()
            }),
            service_incarnation: u64::MAX,
            addresses: [3, 1, 2].map(address).to_vec(),
            ..Default::default()
        }
    }

    #[test]
    fn created_jobs_print_the_contract() {
        let json = serde_json::to_value(JobView::place(&job())).expect("JSON");
        let expected = json!({
            "job": "train",
            "port": 8000,
            "addresses": ["127.0.0.1:8000", "127.0.0.1:8100", "127.0.0.1:8200"],
            "target": "ipv4:127.0.0.1:8000,127.0.0.1:8100,127.0.0.1:8200",
        });
        assert_eq!(json, expected);
    }

    #[test]
    fn n13_a_created_job_tells_its_ports_and_what_to_export() {
        let text = JobView::place(&job()).render(0);
        let target = "ipv4:127.0.0.1:8000,127.0.0.1:8100,127.0.0.1:8200";
        assert_eq!(
            text,
            format!(
                "job train\nports 8000, 8100, 8200\ntarget {target}\n\nexport JAX_COORDINATOR_ADDRESS={target}\n\
                 export JAX_COORDINATOR_BIND_ADDRESS=127.0.0.1:0\nexport GRPC_FAIL_FAST=false"
            )
        );
        let address = |node_id: u64| wire::JobAddress { node_id, address: format!("10.0.0.{node_id}:8000") };
        let spread = wire::Job { addresses: vec![address(1), address(2)], ..job() };
        assert!(
            JobView::full(&spread).render(0).starts_with("job train\nport 8000\ntarget ipv4:10.0.0.1:8000,")
        );
        let nowhere = wire::Job { addresses: Vec::new(), ..job() };
        assert_eq!(JobView::place(&nowhere).render(0), "job train\ntarget ");
    }

    #[test]
    fn shown_jobs_print_the_same_and_the_state() {
        let json = serde_json::to_value(JobView::full(&job())).expect("JSON");
        assert_eq!(json["port"], 8000);
        assert_eq!(json["tasks"], 2);
        assert_eq!(json["poll"], "hold");
        assert_eq!(json["service_incarnation"], u64::MAX.to_string());
        assert_eq!(json["members"], json!([{ "name": "worker", "tasks": 2 }]));
        let text = JobView::full(&job()).render(0);
        assert!(
            text.contains(
                "\nheartbeat timeout  job 0 s\nmembers worker:2\ntask 1 is told of errors at 10.0.0.2:2222"
            ),
            "{text}"
        );
    }

    #[test]
    fn tasks_that_do_not_speak_the_same_are_told() {
        let text = |protocols: &[&str]| {
            let protocols = protocols.iter().map(|name| (*name).to_owned()).collect();
            JobView::full(&wire::Job { protocols, ..job() }).render(0)
        };
        assert!(!text(&["xla"]).contains("protocols"));
        assert!(text(&["xla", "tensorflow"]).contains("\nprotocols xla, tensorflow: its tasks are of"));
    }

    #[test]
    fn a_job_in_trouble_shows_its_barriers_and_why_tasks_are_in_error() {
        let sample = |first: &[i32]| Some(wire::TaskSample { count: 1, first: first.to_vec() });
        let barrier = wire::BarrierState {
            id: "x".into(),
            arrived: sample(&[0]),
            missing: sample(&[1]),
            ..Default::default()
        };
        let task = wire::TaskState { task_id: 1, reason: "task-silent".into(), ..Default::default() };
        let view = JobView::full(&wire::Job { barriers: vec![barrier], tasks: vec![task], ..job() });
        let json = serde_json::to_value(&view).expect("JSON");
        assert_eq!(json["task_states"][0]["reason"], "task-silent");
        assert_eq!(
            (&json["barriers"][0]["barrier"], &json["barriers"][0]["missing"]),
            (&json!("x"), &json!(1))
        );
        let text = view.render(0);
        assert!(text.contains("\nbarrier `x` waits for task 1; arrived: 0\nTASK "), "{text}");
    }

    #[test]
    fn n1_a_job_shows_which_programs_are_more_patient_than_it_is() {
        let task =
            |task_id, silence_limit_ms| wire::TaskState { task_id, silence_limit_ms, ..Default::default() };
        let tasks = vec![task(0, 100_000), task(1, 10_000), task(2, 100_000)];
        let spec = wire::JobSpec { heartbeat_timeout_ms: 10_000, ..Default::default() };
        let text = JobView::full(&wire::Job { tasks, spec: Some(spec), ..job() }).render(0);
        let expected = "\nheartbeat timeout  job 10 s, clients 100 s (tasks 0, 2): THEY DISAGREE\nheartbeats tasks 0, 2 send \
            one every 50 s, and the job's own timeout is 10 s: they are given up after 100 s\n";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn what_a_node_remembers_is_shown_as_that() {
        let as_of = wire::AsOf { node_id: 3, index: 209, now_ms: 4_000, why: "no leader".into() };
        let view = JobView::full(&wire::Job { as_of: Some(as_of), ..job() });
        let told = "\nnobody leads: as node 3 remembers it, up to entry 209, 5 s ago\ntasks ";
        assert!(view.render(9_000).contains(told), "{}", view.render(9_000));
        assert_eq!(serde_json::to_value(&view).expect("JSON")["as_of"]["index"], 209);
    }

    #[test]
    fn targets_fit_the_kind_of_address() {
        let target = |list: &[&str]| target(&list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        assert_eq!(target(&["10.0.0.1:1", "10.0.0.2:1"]), "ipv4:10.0.0.1:1,10.0.0.2:1");
        assert_eq!(target(&["[::1]:1", "[::1]:2"]), "ipv6:[::1]:1,[::1]:2");
        assert_eq!(target(&["node-1:1", "node-2:1"]), "dns:///node-1:1");
        assert_eq!(target(&[]), "");
    }
}
