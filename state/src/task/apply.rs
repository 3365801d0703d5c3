//! Commands on tasks.

use crate::command::Reply;
use crate::identity::Identity;
use crate::ids::{Incarnation, TaskId};
use crate::job::turn::Turn;
use crate::task::{Command, Protocol};

impl Turn<'_> {
    /// `by`: who proposed it, if that is known.
    pub(crate) fn task(&mut self, command: Command, retried: bool, by: Option<&Identity>) -> Reply {
        match command {
            Command::Register { scope: _, task, incarnation, recoverable, protocol } => {
                self.register_as(task, incarnation, (recoverable, protocol), by)
            }
            Command::RegisterFrom { scope: _, task, incarnation, recoverable, protocol, origin } => {
                let reply = self.register_as(task, incarnation, (recoverable, protocol), by);
                if reply.is_ok() {
                    self.registered_from(task, incarnation, *origin);
                }
                reply
            }
            Command::Shutdown { scope: _, task } => self.shutdown(task, retried),
            Command::Reset { scope: _, task } => self.disconnect(task).map(|()| crate::Answer::Done),
            Command::ReportError { scope: _, task, code, message } => self.report_error(task, code, message),
            Command::Poll { scope: _, task, wish } => self.poll(task, wish),
            Command::Alive { scope: _, task, tasks } => self.ask_alive(task, &tasks),
            Command::ExchangeDevices { scope: _, task, devices } => self.exchange_devices(task, devices),
            Command::Expire { job: _, silent } => self.expire_tasks(silent),
            Command::Pushed { job: _, tasks } => self.pushed(&tasks),
            Command::RefuseBeat { scope, task, incarnation } => self.refuse_beat(scope, task, incarnation),
            Command::NoteInterval { scope: _, task, incarnation, interval_ms } => {
                self.note_interval(task, incarnation, interval_ms)
            }
            Command::NoteHost { scope: _, task, incarnation, host } => {
                self.note_host(task, incarnation, &host)
            }
            Command::NoteOrigin { scope: _, task, incarnation, origin } => {
                self.note_origin(task, incarnation, *origin)
            }
            Command::End { scope: _, task, incarnation } => self.end_process(task, incarnation),
            Command::Ended { scope: _, task, incarnation, end } => self.process_ended(task, incarnation, end),
        }
    }

    fn register_as(
        &mut self,
        task: TaskId,
        incarnation: Incarnation,
        (recoverable, protocol): (bool, Protocol),
        by: Option<&Identity>,
    ) -> Reply {
        let reply = self.register(task, incarnation, recoverable);
        if reply.is_ok() {
            self.speaks(protocol);
            self.note_registrant(task, incarnation, by);
        }
        reply
    }
}
