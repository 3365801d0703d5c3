//! Which commands make the state larger. On a disk that is nearly full those are refused before they
//! are replicated, so that what is left serves everything else.

use crate::command::Command;
use crate::{barrier, job, kv, level, member, ray, runtime, session, task};

impl Command {
    /// Whether the state keeps something for this command whose size, or whose number, its caller
    /// chooses: values, keys, jobs, and what tasks tell of their devices.
    ///
    /// What a job needs to go on and to end does not count, although it leaves a few bytes behind: its
    /// tasks, of which there are as many as the job was created with; their arrivals at barriers, since
    /// a program whose barrier is refused ends; polls, errors and sessions.
    #[must_use]
    pub fn grows(&self) -> bool {
        match self {
            Self::Job(command) => match command {
                job::Command::Create { .. } => true,
                job::Command::Delete { .. } => false,
                job::Command::Note { note, .. } => !note.is_empty(),
            },
            Self::Kv(command) => match command {
                kv::Command::Insert { .. }
                | kv::Command::InsertAs { .. }
                | kv::Command::CompareAndSet { .. }
                | kv::Command::Increment { .. } => true,
                kv::Command::Delete { .. } => false,
            },
            Self::Task(command) => task_grows(command),
            Self::Barrier(command) => match command {
                barrier::Command::Arrive { .. }
                | barrier::Command::Cancel { .. }
                | barrier::Command::Expire { .. } => false,
            },
            Self::Session(command) => match command {
                session::Command::Open
                | session::Command::Close { .. }
                | session::Command::ExpireIdle { .. }
                | session::Command::OpenFor { .. }
                | session::Command::ExpireOwned { .. } => false,
            },
            Self::Member(command) => match command {
                member::Command::Announce { .. }
                | member::Command::Begin { .. }
                | member::Command::Join { .. }
                | member::Command::Cancel { .. }
                | member::Command::End { .. }
                | member::Command::Drain { .. } => false,
            },
            Self::Runtime(command) => runtime_grows(command),
            Self::Ray(command) => ray_grows(command),
            Self::Retried(command) => command.grows(),
            Self::Level(command) => match command {
                level::Command::Raise { .. } | level::Command::Pin { .. } | level::Command::Unpin { .. } => {
                    false
                }
            },
        }
    }
}

fn task_grows(command: &task::Command) -> bool {
    match command {
        task::Command::ExchangeDevices { .. } | task::Command::NoteHost { .. } => true,
        task::Command::Register { .. }
        | task::Command::Shutdown { .. }
        | task::Command::Reset { .. }
        | task::Command::ReportError { .. }
        | task::Command::Poll { .. }
        | task::Command::Alive { .. }
        | task::Command::Expire { .. }
        | task::Command::Pushed { .. }
        | task::Command::RefuseBeat { .. }
        | task::Command::NoteInterval { .. }
        | task::Command::End { .. } => false,
    }
}

fn runtime_grows(command: &runtime::Command) -> bool {
    match command {
        runtime::Command::Enumerate { .. } | runtime::Command::Put { .. } => true,
        runtime::Command::Connect { .. }
        | runtime::Command::Withdraw { .. }
        | runtime::Command::Arrive { .. }
        | runtime::Command::GiveUp { .. }
        | runtime::Command::Shutdown { .. }
        | runtime::Command::GiveUpShutdown { .. } => false,
    }
}

/// What ends something, or says that it ended, must always find room.
fn ray_grows(command: &ray::Command) -> bool {
    match command {
        ray::Command::Ask { request, .. } => request_grows(request),
        ray::Command::Lead { .. } => false,
    }
}

fn request_grows(request: &ray::Request) -> bool {
    match request {
        ray::Request::Submit { .. }
        | ray::Request::Put { .. }
        | ray::Request::Contain { .. }
        | ray::Request::ExportFunction { .. }
        | ray::Request::ExportVariable { .. } => true,
        ray::Request::Batch(requests) => requests.iter().any(request_grows),
        ray::Request::RegisterStore { .. }
        | ray::Request::RegisterWorker(_)
        | ray::Request::RegisterFunction { .. }
        | ray::Request::Get { .. }
        | ray::Request::Alias { .. }
        | ray::Request::Ready { .. }
        | ray::Request::AddReferences { .. }
        | ray::Request::DropReferences { .. }
        | ray::Request::Idle { .. }
        | ray::Request::GiveBack { .. }
        | ray::Request::KillWorkers
        | ray::Request::FetchFailed { .. }
        | ray::Request::Leave { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Scope;
    use crate::ids::JobId;

    #[test]
    fn a_mark_does_not_change_whether_a_command_grows() {
        let scope = Scope { job: JobId(1), service: None };
        let put =
            Command::Kv(kv::Command::Insert { scope, key: "k".into(), value: "v".into(), overwrite: false });
        let delete = Command::Kv(kv::Command::Delete { scope, key: "k".into() });
        assert!(Command::Retried(Box::new(put)).grows());
        assert!(!Command::Retried(Box::new(delete)).grows());
    }
}
