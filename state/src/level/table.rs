//! Every kind of command, and the level that it needs.

use crate::command::Command;
use crate::ids::FeatureLevel;
use crate::{barrier, job, kv, level, member, ray, runtime, session, task};

/// A kind of command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// Domain and command.
    pub name: &'static str,
    /// The lowest level at which it may stand in the log.
    pub needs: FeatureLevel,
}

macro_rules! kinds {
    ($($constant:ident = $level:literal $name:literal,)*) => {
        impl Kind {
            $(pub(crate) const $constant: Self = Self { name: $name, needs: FeatureLevel($level) };)*

            /// All of them, in no order.
            pub const ALL: &[Self] = &[$(Self::$constant),*];
        }
    };
}

kinds! {
    JOB_CREATE = 1 "job/create",
    JOB_DELETE = 1 "job/delete",
    JOB_NOTE = 2 "job/note",
    TASK_REGISTER = 1 "task/register",
    TASK_SHUTDOWN = 1 "task/shutdown",
    TASK_RESET = 1 "task/reset",
    TASK_REPORT_ERROR = 1 "task/report-error",
    TASK_POLL = 1 "task/poll",
    TASK_ALIVE = 1 "task/alive",
    TASK_EXCHANGE_DEVICES = 1 "task/exchange-devices",
    TASK_EXPIRE = 1 "task/expire",
    TASK_PUSHED = 1 "task/pushed",
    TASK_REFUSE_BEAT = 1 "task/refuse-beat",
    TASK_NOTE_INTERVAL = 6 "task/note-interval",
    TASK_NOTE_HOST = 8 "task/note-host",
    TASK_END = 8 "task/end",
    KV_INSERT = 1 "kv/insert",
    KV_INSERT_AS = 7 "kv/insert-as",
    KV_COMPARE_AND_SET = 1 "kv/compare-and-set",
    KV_INCREMENT = 1 "kv/increment",
    KV_DELETE = 1 "kv/delete",
    BARRIER_ARRIVE = 1 "barrier/arrive",
    BARRIER_CANCEL = 1 "barrier/cancel",
    BARRIER_EXPIRE = 1 "barrier/expire",
    SESSION_OPEN = 1 "session/open",
    SESSION_CLOSE = 1 "session/close",
    SESSION_EXPIRE_IDLE = 1 "session/expire-idle",
    SESSION_OPEN_FOR = 5 "session/open-for",
    SESSION_EXPIRE_OWNED = 5 "session/expire-owned",
    MEMBER_ANNOUNCE = 1 "member/announce",
    MEMBER_BEGIN = 1 "member/begin",
    MEMBER_JOIN = 1 "member/join",
    MEMBER_CANCEL = 1 "member/cancel",
    MEMBER_END = 1 "member/end",
    MEMBER_DRAIN = 2 "member/drain",
    RUNTIME_CONNECT = 1 "runtime/connect",
    RUNTIME_WITHDRAW = 1 "runtime/withdraw",
    RUNTIME_ENUMERATE = 1 "runtime/enumerate",
    RUNTIME_ARRIVE = 1 "runtime/arrive",
    RUNTIME_GIVE_UP = 1 "runtime/give-up",
    RUNTIME_SHUTDOWN = 1 "runtime/shutdown",
    RUNTIME_GIVE_UP_SHUTDOWN = 1 "runtime/give-up-shutdown",
    RUNTIME_PUT = 1 "runtime/put",
    LEVEL_RAISE = 2 "level/raise",
    LEVEL_PIN = 2 "level/pin",
    LEVEL_UNPIN = 2 "level/unpin",
    RAY_REGISTER_STORE = 3 "ray/register-store",
    RAY_REGISTER_WORKER = 3 "ray/register-worker",
    RAY_REGISTER_FUNCTION = 3 "ray/register-function",
    RAY_SUBMIT = 3 "ray/submit",
    RAY_PUT = 3 "ray/put",
    RAY_GET = 3 "ray/get",
    RAY_ALIAS = 3 "ray/alias",
    RAY_READY = 3 "ray/ready",
    RAY_FETCH_FAILED = 3 "ray/fetch-failed",
    RAY_ADD_REFERENCES = 3 "ray/add-references",
    RAY_DROP_REFERENCES = 3 "ray/drop-references",
    RAY_CONTAIN = 3 "ray/contain",
    RAY_IDLE = 3 "ray/idle",
    RAY_GIVE_BACK = 3 "ray/give-back",
    RAY_KILL_WORKERS = 3 "ray/kill-workers",
    RAY_EXPORT_FUNCTION = 3 "ray/export-function",
    RAY_EXPORT_VARIABLE = 3 "ray/export-variable",
    RAY_BATCH = 3 "ray/batch",
    RAY_LEAVE = 3 "ray/leave",
    RAY_ASSIGN = 3 "ray/assign",
    RAY_DONE = 3 "ray/done",
    RAY_UNDELIVERED = 3 "ray/undelivered",
    RAY_EXPIRE = 3 "ray/expire",
    RAY_RECONCILE = 3 "ray/reconcile",
    RAY_DELIVERY_FAILED = 3 "ray/delivery-failed",
    RAY_EXPIRE_SESSIONS = 3 "ray/expire-sessions",
    RAY_REARM = 3 "ray/rearm",
    RAY_SET_ALGORITHM = 3 "ray/set-algorithm",
    RAY_UNREPORTED = 3 "ray/unreported",
}

impl Command {
    /// Its row of the table. The match has no wildcard: a new command does not compile without a level.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Job(command) => match command {
                job::Command::Create { .. } => Kind::JOB_CREATE,
                job::Command::Delete { .. } => Kind::JOB_DELETE,
                job::Command::Note { .. } => Kind::JOB_NOTE,
            },
            Self::Task(command) => of_task(command),
            Self::Kv(command) => match command {
                kv::Command::Insert { .. } => Kind::KV_INSERT,
                kv::Command::InsertAs { .. } => Kind::KV_INSERT_AS,
                kv::Command::CompareAndSet { .. } => Kind::KV_COMPARE_AND_SET,
                kv::Command::Increment { .. } => Kind::KV_INCREMENT,
                kv::Command::Delete { .. } => Kind::KV_DELETE,
            },
            Self::Barrier(command) => match command {
                barrier::Command::Arrive { .. } => Kind::BARRIER_ARRIVE,
                barrier::Command::Cancel { .. } => Kind::BARRIER_CANCEL,
                barrier::Command::Expire { .. } => Kind::BARRIER_EXPIRE,
            },
            Self::Session(command) => match command {
                session::Command::Open => Kind::SESSION_OPEN,
                session::Command::Close { .. } => Kind::SESSION_CLOSE,
                session::Command::ExpireIdle { .. } => Kind::SESSION_EXPIRE_IDLE,
                session::Command::OpenFor { .. } => Kind::SESSION_OPEN_FOR,
                session::Command::ExpireOwned { .. } => Kind::SESSION_EXPIRE_OWNED,
            },
            Self::Member(command) => match command {
                member::Command::Announce { .. } => Kind::MEMBER_ANNOUNCE,
                member::Command::Begin { .. } => Kind::MEMBER_BEGIN,
                member::Command::Join { .. } => Kind::MEMBER_JOIN,
                member::Command::Cancel { .. } => Kind::MEMBER_CANCEL,
                member::Command::End { .. } => Kind::MEMBER_END,
                member::Command::Drain { .. } => Kind::MEMBER_DRAIN,
            },
            Self::Runtime(command) => of_runtime(command),
            Self::Ray(command) => match command {
                ray::Command::Ask { request, .. } => of_request(request),
                ray::Command::Lead { decision, .. } => of_decision(decision),
            },
            Self::Retried(command) => command.kind(),
            Self::Level(command) => match command {
                level::Command::Raise { .. } => Kind::LEVEL_RAISE,
                level::Command::Pin { .. } => Kind::LEVEL_PIN,
                level::Command::Unpin { .. } => Kind::LEVEL_UNPIN,
            },
        }
    }

    /// The lowest level at which it may stand in the log.
    #[must_use]
    pub fn needs(&self) -> FeatureLevel {
        self.kind().needs
    }

    /// Whether it is about the level itself.
    #[must_use]
    pub fn is_about_level(&self) -> bool {
        match self {
            Self::Level(_) => true,
            Self::Retried(command) => command.is_about_level(),
            _ => false,
        }
    }
}

fn of_task(command: &task::Command) -> Kind {
    match command {
        task::Command::Register { .. } => Kind::TASK_REGISTER,
        task::Command::Shutdown { .. } => Kind::TASK_SHUTDOWN,
        task::Command::Reset { .. } => Kind::TASK_RESET,
        task::Command::ReportError { .. } => Kind::TASK_REPORT_ERROR,
        task::Command::Poll { .. } => Kind::TASK_POLL,
        task::Command::Alive { .. } => Kind::TASK_ALIVE,
        task::Command::ExchangeDevices { .. } => Kind::TASK_EXCHANGE_DEVICES,
        task::Command::Expire { .. } => Kind::TASK_EXPIRE,
        task::Command::Pushed { .. } => Kind::TASK_PUSHED,
        task::Command::RefuseBeat { .. } => Kind::TASK_REFUSE_BEAT,
        task::Command::NoteInterval { .. } => Kind::TASK_NOTE_INTERVAL,
        task::Command::NoteHost { .. } => Kind::TASK_NOTE_HOST,
        task::Command::End { .. } => Kind::TASK_END,
    }
}

fn of_runtime(command: &runtime::Command) -> Kind {
    match command {
        runtime::Command::Connect { .. } => Kind::RUNTIME_CONNECT,
        runtime::Command::Withdraw { .. } => Kind::RUNTIME_WITHDRAW,
        runtime::Command::Enumerate { .. } => Kind::RUNTIME_ENUMERATE,
        runtime::Command::Arrive { .. } => Kind::RUNTIME_ARRIVE,
        runtime::Command::GiveUp { .. } => Kind::RUNTIME_GIVE_UP,
        runtime::Command::Shutdown { .. } => Kind::RUNTIME_SHUTDOWN,
        runtime::Command::GiveUpShutdown { .. } => Kind::RUNTIME_GIVE_UP_SHUTDOWN,
        runtime::Command::Put { .. } => Kind::RUNTIME_PUT,
    }
}

/// What a client asks of a scheduler. A batch is of the kind that needs most of what is in it.
fn of_request(request: &ray::Request) -> Kind {
    match request {
        ray::Request::RegisterStore { .. } => Kind::RAY_REGISTER_STORE,
        ray::Request::RegisterWorker(_) => Kind::RAY_REGISTER_WORKER,
        ray::Request::RegisterFunction { .. } => Kind::RAY_REGISTER_FUNCTION,
        ray::Request::Submit { .. } => Kind::RAY_SUBMIT,
        ray::Request::Put { .. } => Kind::RAY_PUT,
        ray::Request::Get { .. } => Kind::RAY_GET,
        ray::Request::Alias { .. } => Kind::RAY_ALIAS,
        ray::Request::Ready { .. } => Kind::RAY_READY,
        ray::Request::FetchFailed { .. } => Kind::RAY_FETCH_FAILED,
        ray::Request::AddReferences { .. } => Kind::RAY_ADD_REFERENCES,
        ray::Request::DropReferences { .. } => Kind::RAY_DROP_REFERENCES,
        ray::Request::Contain { .. } => Kind::RAY_CONTAIN,
        ray::Request::Idle { .. } => Kind::RAY_IDLE,
        ray::Request::GiveBack { .. } => Kind::RAY_GIVE_BACK,
        ray::Request::KillWorkers => Kind::RAY_KILL_WORKERS,
        ray::Request::ExportFunction { .. } => Kind::RAY_EXPORT_FUNCTION,
        ray::Request::ExportVariable { .. } => Kind::RAY_EXPORT_VARIABLE,
        ray::Request::Batch(requests) => {
            let inner = requests.iter().map(of_request).max_by_key(|kind| kind.needs);
            inner.filter(|kind| kind.needs > Kind::RAY_BATCH.needs).unwrap_or(Kind::RAY_BATCH)
        }
        ray::Request::Leave { .. } => Kind::RAY_LEAVE,
    }
}

/// What the leader has a scheduler do.
fn of_decision(decision: &ray::Decision) -> Kind {
    match decision {
        ray::Decision::Assign(_) => Kind::RAY_ASSIGN,
        ray::Decision::Done { .. } => Kind::RAY_DONE,
        ray::Decision::Undelivered { .. } => Kind::RAY_UNDELIVERED,
        ray::Decision::Expire { .. } => Kind::RAY_EXPIRE,
        ray::Decision::Reconcile { .. } => Kind::RAY_RECONCILE,
        ray::Decision::DeliveryFailed { .. } => Kind::RAY_DELIVERY_FAILED,
        ray::Decision::ExpireSessions { .. } => Kind::RAY_EXPIRE_SESSIONS,
        ray::Decision::Rearm { .. } => Kind::RAY_REARM,
        ray::Decision::SetAlgorithm(_) => Kind::RAY_SET_ALGORITHM,
        ray::Decision::Unreported { .. } => Kind::RAY_UNREPORTED,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_kind_has_a_name_of_its_own_and_a_level_that_this_build_knows() {
        let names: BTreeSet<&str> = Kind::ALL.iter().map(|kind| kind.name).collect();
        assert_eq!(names.len(), Kind::ALL.len());
        assert!(Kind::ALL.iter().all(|kind| (level::FIRST..=level::NEWEST).contains(&kind.needs)));
    }

    #[test]
    fn a_mark_does_not_change_what_a_command_needs() {
        let note = Command::Job(job::Command::Note { name: "job".into(), note: "mine".into() });
        let marked = Command::Retried(Box::new(note.clone()));
        assert_eq!((marked.needs(), note.needs()), (FeatureLevel(2), FeatureLevel(2)));
        assert!(!marked.is_about_level());
        let unpin = Command::Level(level::Command::Unpin { by: String::new() });
        assert!(Command::Retried(Box::new(unpin)).is_about_level());
    }
}
