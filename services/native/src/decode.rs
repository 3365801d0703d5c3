//! From requests to commands and bounded parameters.

pub(crate) mod member;
pub(crate) mod mindspore;
pub(crate) mod token;

use rand::RngExt as _;
use tonic::Status;
use tripod_gateway::{Chance, Consistency};
use tripod_proto::tripod::v1 as wire;
use tripod_proto::wide;
use tripod_state::ids::{DurationMs, JobId, Key, Sequence, ServiceIncarnation, SessionId, TaskId, TimeMs};
use tripod_state::task::{End, How};
use tripod_state::{Stamp, job, kv};

use crate::resolve;

/// Keys of one page when the caller names no number.
const PAGE_KEYS_DEFAULT: usize = 1000;
/// Keys of one page at most: a page is collected while the state is locked.
const PAGE_KEYS_MAX: usize = 10_000;

/// Which part of a listing is asked for.
pub(crate) struct Page {
    pub(crate) after: Option<Key>,
    pub(crate) limit: usize,
}

/// The bounds of a listing.
pub(crate) fn page(request: &wire::ListRequest) -> Page {
    let asked = usize::try_from(request.limit).unwrap_or(PAGE_KEYS_MAX);
    let limit = if asked == 0 { PAGE_KEYS_DEFAULT } else { asked.min(PAGE_KEYS_MAX) };
    let after = Some(kv::normalize(&request.after)).filter(|key| !key.as_str().is_empty());
    Page { after, limit }
}

/// How fresh a read must be.
pub(crate) fn consistency(value: i32) -> Result<Consistency, Status> {
    match wire::Consistency::try_from(value) {
        Ok(wire::Consistency::Linearizable) => Ok(Consistency::Linearizable),
        Ok(wire::Consistency::Local) => Ok(Consistency::Local),
        Err(_) => Err(invalid("consistency", &format!("{value} is unknown"))),
    }
}

/// A client's own session. No id of a node's can be named.
pub(crate) const fn session(low: u64, high: u64) -> SessionId {
    SessionId::of_client(wide::join(low, high))
}

/// A client's own stamp.
pub(crate) fn stamp(stamp: wire::Stamp) -> Result<Stamp, Status> {
    if stamp.sequence == 0 {
        return Err(invalid("stamp.sequence", "sequence numbers begin with 1"));
    }
    Ok(Stamp {
        session: session(stamp.session, stamp.session_high),
        sequence: Sequence(stamp.sequence),
        acknowledged_below: Sequence(stamp.acknowledged_below),
    })
}

/// A put as the kind of write that its conditions ask for.
pub(crate) fn put(request: &wire::PutRequest, job: JobId) -> kv::Command {
    let scope = resolve::scope(job);
    let (key, value) = (request.key.clone(), request.value.clone());
    match request.expected_version {
        Some(expected) => kv::Command::CompareAndSet { scope, key, value, expected },
        None => kv::Command::Insert { scope, key, value, overwrite: !request.create_only },
    }
}

/// A job's creation, with the defaults filled in and a service incarnation drawn.
pub(crate) fn create_job(request: wire::CreateJobRequest) -> Result<job::Command, Status> {
    let spec = request.spec.ok_or_else(|| invalid("spec", "is missing"))?;
    let spec = job_spec(spec)?;
    // Zero is what a client sends that was told no incarnation.
    let service = ServiceIncarnation(Chance.random_range(1..=u64::MAX));
    Ok(job::Command::Create { name: request.name, spec, service })
}

fn job_spec(asked: wire::JobSpec) -> Result<job::Spec, Status> {
    let default = job::Spec::of_tasks(asked.tasks);
    let or_default = |ms: u64, default: DurationMs| if ms == 0 { default } else { DurationMs(ms) };
    let poll = match wire::PollMode::try_from(asked.poll) {
        Ok(wire::PollMode::Unspecified | wire::PollMode::Release) => job::Poll::Release,
        Ok(wire::PollMode::Hold) => job::Poll::Hold,
        Err(_) => return Err(invalid("spec.poll", &format!("{} is unknown", asked.poll))),
    };
    Ok(job::Spec {
        tasks: asked.tasks,
        heartbeat_timeout_ms: or_default(asked.heartbeat_timeout_ms, default.heartbeat_timeout_ms),
        register_timeout_ms: or_default(asked.register_timeout_ms, default.register_timeout_ms),
        shutdown_timeout_ms: asked.shutdown_timeout_ms.map_or(default.shutdown_timeout_ms, DurationMs),
        recoverable: asked.recoverable,
        shutdown_barrier: asked.shutdown_barrier.unwrap_or(default.shutdown_barrier),
        poll,
        reconnect: asked.reconnect,
        groups: asked.groups.into_iter().map(group).collect(),
        listeners: asked.listeners.into_iter().map(listener).collect(),
    })
}

fn group(asked: wire::TaskGroup) -> job::Group {
    job::Group { name: asked.name, tasks: asked.tasks }
}

fn listener(asked: wire::TaskListener) -> job::Listener {
    job::Listener { task: TaskId(asked.task_id), address: asked.address }
}

fn invalid(field: &str, why: &str) -> Status {
    Status::invalid_argument(format!("field `{field}`: {why}"))
}

/// How a process ended. Beyond the bound its last words are refused by the state.
pub(crate) fn process_end(end: wire::ProcessEnd) -> End {
    let wire::ProcessEnd { exit_code, signal, core_dumped, out_of_memory, at_ms, tail } = end;
    let how = match (exit_code, signal) {
        (_, Some(signal)) => How::Signalled { signal, core_dumped, out_of_memory },
        (Some(code), None) => How::Exited { code },
        (None, None) => How::LauncherEnded,
    };
    End { how, at: TimeMs(at_ms), tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_job_parameters_become_the_defaults() {
        let asked = wire::JobSpec { tasks: 4, ..wire::JobSpec::default() };
        assert_eq!(job_spec(asked).expect("legal"), job::Spec::of_tasks(4));
    }

    #[test]
    fn given_job_parameters_are_kept_and_a_zero_shutdown_timeout_is_one() {
        let asked = wire::JobSpec {
            tasks: 2,
            heartbeat_timeout_ms: 2500,
            register_timeout_ms: 9000,
            shutdown_timeout_ms: Some(0),
            recoverable: true,
            shutdown_barrier: Some(false),
            poll: wire::PollMode::Hold.into(),
            reconnect: true,
            groups: vec![
                wire::TaskGroup { name: "chief".into(), tasks: 1 },
                wire::TaskGroup { name: "worker".into(), tasks: 1 },
            ],
            listeners: vec![wire::TaskListener { task_id: 1, address: "10.0.0.2:2222".into() }],
        };
        let spec = job_spec(asked).expect("legal");
        assert_eq!(spec.heartbeat_timeout_ms, DurationMs(2500));
        assert_eq!(spec.register_timeout_ms, DurationMs(9000));
        assert_eq!(spec.shutdown_timeout_ms, DurationMs(0));
        assert_eq!(spec.poll, job::Poll::Hold);
        assert!(spec.recoverable && !spec.shutdown_barrier && spec.reconnect);
        assert_eq!(spec.group_of(TaskId(1)), Some(("worker", 0)));
        assert_eq!(spec.listeners, [job::Listener { task: TaskId(1), address: "10.0.0.2:2222".into() }]);
    }

    #[test]
    fn unknown_enumeration_values_are_refused_by_field_name() {
        let asked = wire::JobSpec { tasks: 1, poll: 9, ..wire::JobSpec::default() };
        assert_eq!(job_spec(asked).expect_err("refused").message(), "field `spec.poll`: 9 is unknown");
        assert_eq!(consistency(7).expect_err("refused").message(), "field `consistency`: 7 is unknown");
    }

    #[test]
    fn a_page_is_bounded_and_begins_after_a_normalised_key() {
        let first = page(&wire::ListRequest::default());
        assert_eq!((first.limit, first.after), (PAGE_KEYS_DEFAULT, None));
        let next = page(&wire::ListRequest { limit: u32::MAX, after: "/a//b/".into(), ..Default::default() });
        assert_eq!((next.limit, next.after), (PAGE_KEYS_MAX, Some(Key::from("a/b"))));
    }

    #[test]
    fn the_condition_of_a_put_decides_its_command() {
        let plain = wire::PutRequest { key: "k".into(), ..Default::default() };
        assert!(matches!(put(&plain, JobId(1)), kv::Command::Insert { overwrite: true, .. }));
        let create = wire::PutRequest { create_only: true, ..plain.clone() };
        assert!(matches!(put(&create, JobId(1)), kv::Command::Insert { overwrite: false, .. }));
        let versioned = wire::PutRequest { expected_version: Some(3), ..plain };
        assert!(matches!(put(&versioned, JobId(1)), kv::Command::CompareAndSet { expected: 3, .. }));
    }
}
