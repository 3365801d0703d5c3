//! What a registration says about the heartbeats that follow.
//!
//! The answer to a heartbeat of N and T is the service's incarnation in field 1, and so is the answer to
//! the registration. Heartbeats of L have an empty answer.

use std::collections::HashMap;

use bytes::Bytes;
use prost::Message as _;
use tripod_beats::BEATS_MAX;
use tripod_proto::{tensorflow as t, xla::coordination as n};

use crate::calls::Dialect;

/// A task as its messages name it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Task {
    dialect: Dialect,
    /// Only T has one.
    job_name: String,
    id: i32,
}

/// One run of a task's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Incarnation(u64);

/// The lives of tasks that have registered through this agent, the last one of each task.
#[derive(Debug, Default)]
pub(crate) struct Registered {
    lives: HashMap<Task, (Incarnation, Bytes)>,
}

impl Registered {
    /// A registration has succeeded with `reply`.
    pub(crate) fn note(&mut self, dialect: Dialect, request: &[u8], reply: Bytes) {
        let life = match dialect {
            Dialect::N => n::RegisterTaskRequest::decode(request)
                .ok()
                .map(|request| life_n(request.source_task_id, request.incarnation)),
            Dialect::T => t::RegisterTaskRequest::decode(request)
                .ok()
                .map(|request| life_t(request.source_task, request.incarnation)),
            Dialect::L | Dialect::Foreign => None,
        };
        let Some((task, incarnation)) = life else { return };
        // Of more than can have heartbeats here none waits for its first.
        if self.lives.len() < BEATS_MAX || self.lives.contains_key(&task) {
            self.lives.insert(task, (incarnation, reply));
        }
    }

    /// The answer to a heartbeat that no one has answered yet.
    pub(crate) fn lease(&self, dialect: Dialect, heartbeat: &[u8]) -> Option<Bytes> {
        let (task, incarnation) = match dialect {
            Dialect::N => {
                let heartbeat = n::HeartbeatRequest::decode(heartbeat).ok()?;
                life_n(heartbeat.source_task_id, heartbeat.incarnation)
            }
            Dialect::T => {
                let heartbeat = t::HeartbeatRequest::decode(heartbeat).ok()?;
                life_t(heartbeat.source_task, heartbeat.incarnation)
            }
            Dialect::L => return Some(Bytes::new()),
            Dialect::Foreign => return None,
        };
        let (registered, reply) = self.lives.get(&task)?;
        (*registered == incarnation).then(|| reply.clone())
    }
}

fn life_n(id: i32, incarnation: u64) -> (Task, Incarnation) {
    (Task { dialect: Dialect::N, job_name: String::new(), id }, Incarnation(incarnation))
}

fn life_t(task: Option<t::CoordinatedTask>, incarnation: u64) -> (Task, Incarnation) {
    let t::CoordinatedTask { job_name, task_id, .. } = task.unwrap_or_default();
    (Task { dialect: Dialect::T, job_name, id: task_id }, Incarnation(incarnation))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registration_answers_the_first_heartbeat_of_the_same_life_only() {
        let mut registered = Registered::default();
        let reply = Bytes::from(n::RegisterTaskResponse { service_incarnation: 7 }.encode_to_vec());
        let request = n::RegisterTaskRequest { incarnation: 5, source_task_id: 1 };
        registered.note(Dialect::N, &request.encode_to_vec(), reply.clone());

        let heartbeat = |task: i32, incarnation: u64| {
            n::HeartbeatRequest { source_task_id: task, incarnation, ..Default::default() }.encode_to_vec()
        };
        let lease = registered.lease(Dialect::N, &heartbeat(1, 5)).expect("registered");
        let told = n::HeartbeatResponse::decode(lease).expect("the same fields");
        assert_eq!(told.service_incarnation, 7);
        assert_eq!(registered.lease(Dialect::N, &heartbeat(1, 6)), None, "another life");
        assert_eq!(registered.lease(Dialect::N, &heartbeat(2, 5)), None, "another task");
        assert_eq!(registered.lease(Dialect::T, &heartbeat(1, 5)), None, "another dialect");
    }

    #[test]
    fn tasks_of_t_are_told_apart_by_job_name_too() {
        let task = |job_name: &str| {
            Some(t::CoordinatedTask { job_name: job_name.into(), task_id: 0, ..Default::default() })
        };
        let mut registered = Registered::default();
        let request = t::RegisterTaskRequest { incarnation: 5, source_task: task("worker") };
        registered.note(Dialect::T, &request.encode_to_vec(), Bytes::from_static(b"x"));
        let heartbeat = |job_name: &str| {
            t::HeartbeatRequest { incarnation: 5, source_task: task(job_name) }.encode_to_vec()
        };
        assert_eq!(registered.lease(Dialect::T, &heartbeat("worker")).as_deref(), Some(&b"x"[..]));
        assert_eq!(registered.lease(Dialect::T, &heartbeat("chief")), None);
    }

    #[test]
    fn heartbeats_of_l_have_an_empty_answer() {
        assert_eq!(Registered::default().lease(Dialect::L, b"any"), Some(Bytes::new()));
    }
}
