//! Connecting: all tasks at once, and nobody later.

use crate::command::{Answer, Reply};
use crate::ids::{ClientId, TaskId};
use crate::job::record::Job;
use crate::job::turn::Turn;
use crate::runtime::record::{Member, Phase};
use crate::runtime::{Call, INCARNATION, Refusal, Wait};
use crate::task::Protocol;
use crate::task::{Beat, Phase as TaskPhase};
use crate::wait::Ticket;

impl Turn<'_> {
    pub(super) fn connect_to_runtime(&mut self, task: TaskId, client: ClientId) -> Reply {
        let registered = Answer::Registered { service: self.job.service };
        if let Some(runtime) = self.job.runtime.as_deref().filter(|found| found.phase != Phase::Initializing)
        {
            // Only the reply can have been lost: the call that connected this client was answered.
            let again = runtime.phase == Phase::Running
                && runtime.member(task).is_some_and(|member| member.client == client);
            return if again { Ok(registered) } else { Err(Refusal::NotInitializing.into()) };
        }
        self.job.check_runtime_task(task)?;
        self.speaks(Protocol::Runtime);
        let (call, tasks) = (self.call(), self.job.spec.tasks);
        let runtime = self.job.runtime.get_or_insert_default();
        let (since, replaces) = match runtime.member(task) {
            Some(member) if member.client == client => (member.since, false),
            Some(_) => (call, true),
            None => (call, false),
        };
        runtime.set_member(task, Member { client, since, present: true, topology: None });
        let complete = runtime.present() == tasks;
        if complete {
            self.start_runtime();
        }
        if complete || replaces {
            self.runtime_changed();
        }
        if complete {
            return Ok(registered);
        }
        Ok(Answer::Waiting(Ticket::Runtime { job: self.job.id, wait: Wait::Connect { task, client, call } }))
    }

    pub(super) fn withdraw_from_runtime(&mut self, task: TaskId, client: ClientId, waited_ms: i64) -> Reply {
        let timed_out = Refusal::TimedOut { call: Call::Connect, waited_ms };
        let Some(runtime) = &mut self.job.runtime else { return Err(timed_out.into()) };
        let Some(member) = runtime.member(task).cloned() else { return Err(timed_out.into()) };
        if member.client != client {
            return Err(Refusal::Replaced { task }.into());
        }
        if runtime.phase != Phase::Initializing {
            return Ok(Answer::Registered { service: self.job.service });
        }
        runtime.set_member(task, Member { present: false, ..member });
        Err(timed_out.into())
    }

    /// Everybody is there: from now on their heartbeats count.
    fn start_runtime(&mut self) {
        let runtime = self.job.runtime.as_mut().expect("its tasks have connected");
        runtime.phase = Phase::Running;
        for task in self.job.tasks.ids() {
            self.job.tasks.edit(task).incarnation = INCARNATION;
            self.connect(task, INCARNATION);
        }
    }
}

impl Job {
    /// The verdict on a heartbeat of a task that connected here.
    pub(crate) fn runtime_beat(&self, task: TaskId) -> Beat {
        let checked = self.check_running(Call::Heartbeat).and_then(|()| self.check_runtime_task(task));
        match checked {
            Err(fault) => Beat::Refused(fault),
            Ok(()) if self.tasks.get(task).phase() == TaskPhase::Connected => Beat::Recorded(self.service),
            Ok(()) => Beat::Tolerated(self.service),
        }
    }
}
