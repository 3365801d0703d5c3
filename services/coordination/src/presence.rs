//! Tasks that have registered and not sent a heartbeat yet.
//!
//! A client sends its first heartbeat one interval after it has registered, and until then nobody knows how long that
//! is: its own timeout never crosses the wire. What is known is whether its connection stands. So the leader is told of
//! that, until the first heartbeat says the rest.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tonic::Request;
use tripod_gateway::{Gateway, PRESENT_EVERY};
use tripod_port::{CallContext, PRESENCE_TOLD_FOR, Stopping, tell_presence};
use tripod_state::ids::{Incarnation, JobId, TaskId};
use tripod_state::task::HEARTBEAT_INTERVAL_MS_MAX;
use tripod_state::{Command, Scope, task};

use crate::speaker::Speakers;

/// Tasks that one connection is told to have: a client is one, or a few that share a process.
const FOLLOWED_MAX: usize = 1024;
/// It is told of until the last moment at which the first heartbeat can come.
const _: () = assert!(PRESENCE_TOLD_FOR.as_millis() == HEARTBEAT_INTERVAL_MS_MAX.0 as u128);

/// Which tasks of each connection are told of, as its [`tripod_port::ConnectionCalls`] keeps them. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Presences(Arc<Mutex<BTreeMap<(JobId, TaskId), Incarnation>>>);

/// A life of a task, as it registers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Life {
    scope: Scope,
    task: TaskId,
    incarnation: Incarnation,
}

impl Life {
    /// That of a registration.
    pub(crate) fn of(command: &Command) -> Option<Self> {
        match command {
            Command::Task(task::Command::Register { scope, task, incarnation, .. }) => {
                Some(Self { scope: *scope, task: *task, incarnation: *incarnation })
            }
            _ => None,
        }
    }

    /// Tells the leader of one sign, as an agent has it. Gives whether it is to be told again.
    pub(crate) async fn tell(self, gateway: &Gateway, connection: u64, gone: bool) -> bool {
        let Self { scope, task, incarnation } = self;
        if gone {
            return gateway.gone(scope, task, incarnation, connection).await;
        }
        gateway.present(scope, task, incarnation, connection).await
    }

    /// Its task is heard on the connection of this request.
    pub(crate) fn heard<M>(self, request: &Request<M>) {
        if let Some(calls) = CallContext::connection_calls(request.extensions()) {
            calls.kept::<Speakers>().heard(self.scope.job, self.task, self.incarnation);
        }
    }

    fn key(self) -> (JobId, TaskId) {
        (self.scope.job, self.task)
    }
}

impl Presences {
    /// Whether this life is to be followed from now on: once, and in place of an earlier one of its task.
    fn begin(&self, life: Life) -> bool {
        let mut followed = self.0.lock();
        let known = followed.contains_key(&life.key());
        if !known && followed.len() >= FOLLOWED_MAX {
            return false;
        }
        followed.insert(life.key(), life.incarnation) != Some(life.incarnation)
    }

    fn is_current(&self, life: Life) -> bool {
        self.0.lock().get(&life.key()) == Some(&life.incarnation)
    }

    fn end(&self, life: Life) {
        let mut followed = self.0.lock();
        if followed.get(&life.key()) == Some(&life.incarnation) {
            followed.remove(&life.key());
        }
    }
}

/// Tells the leader of a task that has just registered by this request, until its first heartbeat.
pub(crate) fn follow<M>(gateway: &Gateway, request: &Request<M>, life: Life) {
    // Without one there is no connection that could end.
    let Some(calls) = CallContext::connection_calls(request.extensions()).cloned() else { return };
    let presences = calls.kept::<Presences>();
    if !presences.begin(life) {
        return;
    }
    let (gateway, stopping) = (gateway.clone(), Stopping::of(request));
    tokio::spawn(async move {
        let (gateway, presences) = (&gateway, &presences);
        tell_presence(&calls, &stopping, PRESENT_EVERY, |connection, gone| async move {
            presences.is_current(life) && life.tell(gateway, connection, gone).await
        })
        .await;
        presences.end(life);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(task: i32, incarnation: u64) -> Life {
        let scope = Scope { job: JobId(1), service: None };
        Life { scope, task: TaskId(task), incarnation: Incarnation(incarnation) }
    }

    #[test]
    fn a_life_is_followed_once_and_a_later_one_in_its_place() {
        let followed = Presences::default();
        assert!(followed.begin(life(0, 7)));
        assert!(!followed.begin(life(0, 7)), "the registration was only repeated");
        assert!(followed.begin(life(0, 8)));
        followed.end(life(0, 7));
        assert!(followed.is_current(life(0, 8)) && !followed.is_current(life(0, 7)));
        followed.end(life(0, 8));
        assert!(followed.begin(life(0, 8)));
    }

    #[test]
    fn who_registers_ever_more_tasks_has_no_more_followed_than_that() {
        let followed = Presences::default();
        let many = i32::try_from(FOLLOWED_MAX).expect("few");
        assert!((0..many).all(|task| followed.begin(life(task, 7))));
        assert!(!followed.begin(life(many, 7)));
        assert!(followed.begin(life(0, 8)), "in place of an earlier one");
    }
}
