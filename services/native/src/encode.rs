//! From what the state knows to messages.

mod barrier;
pub(crate) mod events;
pub(crate) mod level;
pub(crate) mod measured;
pub(crate) mod member;
pub(crate) mod mindspore;
pub(crate) mod token;

use tonic::Status as Refusal;
use tripod_gateway::{Comparisons, DiskStatus, MemberStatus, Role, Status};
use tripod_proto::tripod::v1 as wire;
use tripod_state::barrier::Report as BarrierReport;
use tripod_state::ids::NodeId;
use tripod_state::job::{Group, Listener, Poll, Summary};
use tripod_state::member::Addresses;
use tripod_state::state::Entry;
use tripod_state::task::{End, How, Info, Origin, Phase, Protocol, Report};
use tripod_state::{Answer, job};

use crate::{JobPorts, status, text};

/// Bytes of keys and values of one page: listings of large values must not build messages that clients
/// refuse to decode.
const PAGE_BYTES_MAX: usize = 3 << 20;

/// Where the nodes listen, by id.
pub(crate) type Members = [(NodeId, Addresses)];

/// A node's view of itself and the cluster.
pub(crate) fn status(status: &Status, jobs: &[Summary], announced: &Members) -> wire::StatusResponse {
    wire::StatusResponse {
        cluster_id: status.cluster_id.clone(),
        node_id: status.node.0,
        role: role(status.role).to_owned(),
        term: status.term.0,
        leader_id: status.leader.map_or(0, |leader| leader.0),
        last_log_index: status.last_log.0,
        committed_index: status.committed.0,
        applied_index: status.applied.0,
        snapshot_index: status.snapshot.0,
        purged_index: status.purged.0,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        members: status.members.iter().map(|member| self::member(member, announced)).collect(),
        digest: 0,
        jobs: jobs.len() as u64,
        keys: jobs.iter().map(|job| job.keys).sum(),
        waiting_calls: 0,
        open_job_ports: Vec::new(),
        closed_job_ports: Vec::new(),
        own_job_ports: Vec::new(),
        disk: Some(disk(&status.disk)),
        growth_refused: status.growth_refused.clone().unwrap_or_default(),
        given_up_disk_stalled: status.given_up.disk_stalled,
        given_up_no_quorum: status.given_up.no_quorum,
        comparisons: Some(comparisons(&status.comparisons)),
        measured: None,
        backups: None,
        authorise: String::new(),
        insecure: false,
        protection: String::new(),
        floor: String::new(),
        jobs_waiting: 0,
        waiting_job: String::new(),
        change_under_way: false,
        forming: status
            .forming
            .as_ref()
            .map(|nodes| wire::Forming { waits_for: nodes.iter().map(|node| node.0).collect() }),
    }
}

fn disk(disk: &DiskStatus) -> wire::Disk {
    wire::Disk {
        directory: disk.directory.clone(),
        free_bytes: disk.free_bytes,
        reserve_bytes: disk.reserve_bytes,
        full: disk.full,
    }
}

fn comparisons(comparisons: &Comparisons) -> wire::Comparisons {
    wire::Comparisons {
        last_index: comparisons.last.0,
        agreed: comparisons.agreed,
        diverged: comparisons.diverged,
        alarm: comparisons.alarm.clone().unwrap_or_default(),
    }
}

/// Adds to `response` what the node tells about the ports of `jobs`. The job without a slot lives on the
/// client port, which is open on every node that answers.
pub(crate) fn job_ports(response: &mut wire::StatusResponse, ports: &JobPorts, jobs: &[Summary]) {
    for job in jobs {
        if job.slot.is_none() || ports.open.contains(&job.id) {
            response.open_job_ports.push(job.id.0);
        } else if let Some(closed) = ports.closed.get(&job.id) {
            response.closed_job_ports.push(wire::ClosedJobPort {
                job_id: job.id.0,
                job: job.name.as_str().to_owned(),
                address: closed.address.clone(),
                reason: closed.reason.clone(),
            });
        }
    }
    let known = ports.own.iter().filter(|port| jobs.iter().any(|job| job.id == port.job));
    response.own_job_ports = known
        .map(|port| wire::OwnJobPort {
            job_id: port.job.0,
            protocol: port.protocol.to_owned(),
            address: port.address.clone(),
            reason: port.reason.clone().unwrap_or_default(),
        })
        .collect();
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Leader => "leader",
        Role::Follower => "follower",
        Role::Candidate => "candidate",
        Role::Learner => "learner",
        Role::Stopped => "stopped",
    }
}

fn member(member: &MemberStatus, announced: &Members) -> wire::Member {
    let addresses = announced.iter().find(|(node, _)| *node == member.node).map(|(_, addresses)| addresses);
    wire::Member {
        node_id: member.node.0,
        peer_address: member.peer.clone(),
        client_address: addresses.map_or_else(String::new, |known| known.client.clone()),
        http_address: addresses.map_or_else(String::new, |known| known.http.clone()),
        voter: member.voter,
        matched_index: member.matched.map_or(0, |index| index.0),
        heard_ms_ago: None,
    }
}

/// Where a process comes from.
pub(crate) fn origin(origin: &Origin) -> wire::TaskOrigin {
    let Origin { host, pid, client, agent, launcher } = origin.clone();
    wire::TaskOrigin { host, pid, client, agent, launcher }
}

/// A job without its tasks and their barriers.
pub(crate) fn job(summary: &Summary, members: &Members) -> wire::Job {
    let addresses = members.iter().filter_map(|(node, at)| {
        let address = at.job(summary.slot)?.to_string();
        Some(wire::JobAddress { node_id: node.0, address })
    });
    wire::Job {
        name: summary.name.as_str().to_owned(),
        id: summary.id.0,
        spec: Some(spec(&summary.spec)),
        service_incarnation: summary.service.0,
        addresses: addresses.collect(),
        tasks_connected: summary.tasks_connected,
        tasks_in_error: summary.tasks_in_error,
        keys: summary.keys,
        key_bytes: summary.key_bytes,
        barriers_open: summary.barriers_open,
        tasks: Vec::new(),
        barriers: Vec::new(),
        note: String::new(),
        memory_bytes: 0,
        as_of: None,
        heard_told: false,
        protocols: summary.protocols.iter().map(|protocol| self::protocol(*protocol).to_owned()).collect(),
    }
}

/// A job, every task of it, and where they wait for each other.
pub(crate) fn job_in_full(
    summary: &Summary,
    members: &Members,
    tasks: &Report,
    barriers: &[BarrierReport],
) -> wire::Job {
    wire::Job {
        tasks: tasks.tasks.iter().map(task).collect(),
        barriers: barriers.iter().map(barrier::state).collect(),
        ..job(summary, members)
    }
}

fn task(task: &Info) -> wire::TaskState {
    wire::TaskState {
        task_id: task.task.0,
        state: phase(task.phase).to_owned(),
        incarnation: task.incarnation.0,
        error: task.error.as_ref().map_or_else(String::new, text::of),
        reason: task.error.as_ref().map_or("", status::reason).to_owned(),
        silence_limit_ms: 0,
        host: String::new(),
        standing: String::new(),
        end: None,
        heard_ms_ago: None,
        origin: None,
    }
}

/// How a process ended.
pub(crate) fn process_end(end: &End) -> wire::ProcessEnd {
    let (exit_code, signal, core_dumped, out_of_memory) = match end.how {
        How::Exited { code } => (Some(code), None, false, false),
        How::Signalled { signal, core_dumped, out_of_memory } => {
            (None, Some(signal), core_dumped, out_of_memory)
        }
        How::LauncherEnded => (None, None, false, false),
    };
    let tail = end.tail.clone();
    wire::ProcessEnd { exit_code, signal, core_dumped, out_of_memory, at_ms: end.at.0, tail }
}

fn spec(spec: &job::Spec) -> wire::JobSpec {
    let poll = match spec.poll {
        Poll::Hold => wire::PollMode::Hold,
        Poll::Release => wire::PollMode::Release,
    };
    wire::JobSpec {
        tasks: spec.tasks,
        heartbeat_timeout_ms: spec.heartbeat_timeout_ms.0,
        register_timeout_ms: spec.register_timeout_ms.0,
        shutdown_timeout_ms: Some(spec.shutdown_timeout_ms.0),
        recoverable: spec.recoverable,
        shutdown_barrier: Some(spec.shutdown_barrier),
        poll: poll.into(),
        reconnect: spec.reconnect,
        groups: spec.groups.iter().map(group).collect(),
        listeners: spec.listeners.iter().map(listener).collect(),
    }
}

fn group(group: &Group) -> wire::TaskGroup {
    wire::TaskGroup { name: group.name.clone(), tasks: group.tasks }
}

fn listener(listener: &Listener) -> wire::TaskListener {
    wire::TaskListener { task_id: listener.task.0, address: listener.address.clone() }
}

fn protocol(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Xla => "xla",
        Protocol::TensorFlow => "tensorflow",
        Protocol::Runtime => "runtime",
    }
}

fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Disconnected => "disconnected",
        Phase::Connected => "connected",
        Phase::Error => "error",
    }
}

/// The acknowledgement of a write.
pub(crate) fn put(answer: &Answer) -> Result<wire::PutResponse, Refusal> {
    match answer {
        Answer::Value { version, modified, .. } => {
            Ok(wire::PutResponse { version: *version, index: modified.0 })
        }
        other => Err(status::unexpected(other)),
    }
}

/// A key that exists.
pub(crate) fn found(entry: Entry) -> wire::GetResponse {
    wire::GetResponse {
        found: true,
        key: entry.key.as_str().to_owned(),
        value: entry.value,
        version: entry.version,
        modified_index: entry.modified.0,
    }
}

/// A key that does not exist.
pub(crate) fn missing(asked: &str) -> wire::GetResponse {
    wire::GetResponse { found: false, key: asked.to_owned(), ..Default::default() }
}

/// A page of at most `limit` keys and about [`PAGE_BYTES_MAX`] bytes, but never an empty one when there
/// are keys.
pub(crate) fn list(entries: Vec<Entry>, limit: usize, keys_only: bool) -> wire::ListResponse {
    let total = entries.len();
    let mut bytes = 0;
    let mut keys = Vec::with_capacity(total.min(limit));
    for entry in entries.into_iter().take(limit) {
        bytes += entry.key.as_str().len() + if keys_only { 0 } else { entry.value.len() };
        if bytes > PAGE_BYTES_MAX && !keys.is_empty() {
            break;
        }
        keys.push(wire::ListedKey {
            key: entry.key.as_str().to_owned(),
            value: if keys_only { Default::default() } else { entry.value },
            version: entry.version,
            modified_index: entry.modified.0,
        });
    }
    let more = keys.len() < total;
    wire::ListResponse { keys, more }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tripod_state::ids::{JobId, JobName, JobSlot, Key, LogIndex, ServiceIncarnation};

    use super::*;
    use crate::{ClosedPort, OwnPort};

    fn summary(slot: Option<u16>) -> Summary {
        Summary {
            id: JobId(4),
            name: JobName::from("train"),
            slot: slot.map(JobSlot),
            service: ServiceIncarnation(9),
            spec: job::Spec::of_tasks(2),
            protocols: vec![Protocol::Xla, Protocol::Runtime],
            tasks_connected: 0,
            tasks_in_error: 0,
            keys: 0,
            key_bytes: 0,
            barriers_open: 0,
        }
    }

    #[test]
    fn a_job_says_what_its_tasks_speak() {
        assert_eq!(job(&summary(None), &[]).protocols, ["xla", "runtime"]);
    }

    fn node(id: u64, first: u16, count: u16) -> (NodeId, Addresses) {
        let addresses = Addresses {
            client: format!("127.0.0.1:770{id}"),
            http: String::new(),
            job_host: "127.0.0.1".into(),
            job_port_first: first,
            job_port_count: count,
        };
        (NodeId(id), addresses)
    }

    fn addresses(slot: Option<u16>) -> Vec<String> {
        let members = [node(1, 8000, 100), node(2, 8100, 2)];
        job(&summary(slot), &members).addresses.into_iter().map(|at| at.address).collect()
    }

    #[test]
    fn a_job_listens_at_its_slot_of_every_range_that_reaches_so_far() {
        assert_eq!(addresses(Some(1)), ["127.0.0.1:8001", "127.0.0.1:8101"]);
        assert_eq!(addresses(Some(2)), ["127.0.0.1:8002"]);
    }

    #[test]
    fn the_job_without_a_slot_lives_on_the_client_ports() {
        assert_eq!(addresses(None), ["127.0.0.1:7701", "127.0.0.1:7702"]);
    }

    #[test]
    fn a_job_port_is_told_open_or_closed_or_not_yet_known() {
        let closed = ClosedPort { address: "127.0.0.1:8000".into(), reason: "in use".into() };
        let told = |ports: &JobPorts, slot| {
            let mut response = wire::StatusResponse::default();
            job_ports(&mut response, ports, &[summary(slot)]);
            let closed = response.closed_job_ports.into_iter().map(|port| (port.job, port.address));
            (response.open_job_ports, closed.collect::<Vec<_>>())
        };
        let none = JobPorts::default();
        assert_eq!(told(&none, Some(0)), (vec![], vec![]));
        assert_eq!(told(&none, None), (vec![4], vec![]), "the client port is open");
        let open = JobPorts { open: [JobId(4), JobId(9)].into(), ..none.clone() };
        assert_eq!(told(&open, Some(0)), (vec![4], vec![]), "job 9 is gone");
        let closed = JobPorts { closed: [(JobId(4), closed)].into(), ..none.clone() };
        assert_eq!(told(&closed, Some(0)), (vec![], vec![("train".into(), "127.0.0.1:8000".into())]));
        let own = |job| OwnPort { job: JobId(job), protocol: "lines", address: "a:1".into(), reason: None };
        let mut response = wire::StatusResponse::default();
        job_ports(&mut response, &JobPorts { own: vec![own(4), own(9)], ..none }, &[summary(Some(0))]);
        let told = response.own_job_ports.iter().map(|port| (port.job_id, port.address.as_str()));
        assert_eq!(told.collect::<Vec<_>>(), [(4, "a:1")], "job 9 is gone");
    }

    fn entries(count: usize, value_bytes: usize) -> Vec<Entry> {
        let entry = |number: usize| Entry {
            key: Key::from(format!("k{number:03}").as_str()),
            value: Bytes::from(vec![7; value_bytes]),
            version: 1,
            modified: LogIndex(1),
        };
        (0..count).map(entry).collect()
    }

    #[test]
    fn a_page_says_that_there_is_more_only_when_there_is() {
        let full = list(entries(3, 1), 3, false);
        assert_eq!((full.keys.len(), full.more), (3, false));
        let cut = list(entries(3, 1), 2, false);
        assert_eq!((cut.keys.len(), cut.more), (2, true));
    }

    #[test]
    fn a_page_of_large_values_is_cut_by_bytes_but_never_empty() {
        let cut = list(entries(10, 1 << 20), 100, false);
        assert_eq!((cut.keys.len(), cut.more), (2, true));
        let one = list(entries(1, 8 << 20), 100, false);
        assert_eq!((one.keys.len(), one.more), (1, false));
        let names = list(entries(10, 1 << 20), 100, true);
        assert_eq!((names.keys.len(), names.more), (10, false));
    }
}
