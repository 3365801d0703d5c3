//! That whoever proved to be one task of its job speaks of that task. Certificate and message decide it, and nothing that changes.

use tonic::{Code, Extensions, Status};
use tripod_gate::{Admitted, Reason};
use tripod_state::ids::TaskId;
use tripod_state::{Command, barrier, runtime, task};

/// A call speaks of this task, if it speaks of one.
///
/// # Errors
/// Its caller proved to be another task.
pub(crate) fn check(extensions: &Extensions, task: Option<TaskId>) -> Result<(), Status> {
    let (Some(admitted), Some(TaskId(task))) = (Admitted::of(extensions), task) else { return Ok(()) };
    admitted.speaks_of_task(task).map_err(refused)
}

/// A call is about the job of this name.
///
/// # Errors
/// It is not its caller's.
pub(crate) fn check_job(extensions: &Extensions, job: &str) -> Result<(), Status> {
    Admitted::of(extensions).map_or(Ok(()), |admitted| admitted.about_job(job).map_err(refused))
}

/// The task of which a command speaks, as its sender.
pub(crate) fn sender(command: &Command) -> Option<TaskId> {
    match command {
        Command::Task(command) => of_task(command),
        Command::Barrier(barrier::Command::Arrive { task, .. } | barrier::Command::Cancel { task, .. }) => {
            Some(*task)
        }
        Command::Runtime(command) => of_runtime(command),
        Command::Retried(command) => sender(command),
        Command::By(by) => sender(&by.command),
        _ => None,
    }
}

fn of_task(command: &task::Command) -> Option<TaskId> {
    match command {
        task::Command::Register { task, .. }
        | task::Command::Shutdown { task, .. }
        | task::Command::Reset { task, .. }
        | task::Command::ReportError { task, .. }
        | task::Command::Poll { task, .. }
        | task::Command::Alive { task, .. }
        | task::Command::ExchangeDevices { task, .. }
        | task::Command::RefuseBeat { task, .. }
        | task::Command::NoteInterval { task, .. }
        | task::Command::NoteHost { task, .. }
        | task::Command::End { task, .. }
        | task::Command::Ended { task, .. }
        | task::Command::RegisterFrom { task, .. }
        | task::Command::NoteOrigin { task, .. } => Some(*task),
        task::Command::Expire { .. } | task::Command::Pushed { .. } => None,
    }
}

/// The same of dialect L.
pub(crate) fn of_runtime(command: &runtime::Command) -> Option<TaskId> {
    match command {
        runtime::Command::Connect { task, .. }
        | runtime::Command::ConnectFrom { task, .. }
        | runtime::Command::Withdraw { task, .. }
        | runtime::Command::Enumerate { task, .. }
        | runtime::Command::Arrive { task, .. } => Some(*task),
        // Clients leave the number of a shutdown at zero.
        runtime::Command::Shutdown { .. }
        | runtime::Command::GiveUp { .. }
        | runtime::Command::GiveUpShutdown { .. }
        | runtime::Command::Put { .. } => None,
    }
}

fn refused(reason: Reason) -> Status {
    Status::new(Code::from(i32::from(reason.code())), reason.to_string())
}

#[cfg(test)]
mod tests {
    use tripod_state::Scope;
    use tripod_state::ids::JobId;

    use super::*;

    #[test]
    fn a_retry_is_of_whom_its_command_is_and_a_shutdown_of_dialect_l_of_nobody() {
        let scope = Scope { job: JobId(1), service: None };
        let reset = Command::Task(task::Command::Reset { scope, task: TaskId(4) });
        assert_eq!(sender(&Command::Retried(Box::new(reset))), Some(TaskId(4)));
        let shutdown = runtime::Command::Shutdown { scope, task: TaskId(0) };
        assert_eq!(sender(&Command::Runtime(shutdown)), None);
    }
}
