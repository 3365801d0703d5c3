//! Every kind of command: its name, the level that it needs, and whether it makes the state larger.

use crate::command::Command;
use crate::identity::{By, IdentityCommand};
use crate::ids::FeatureLevel;
use crate::{barrier, job, kv, level, mars, member, mindspore, ray, runtime, session, task, token};

/// A kind of command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// Domain and command.
    pub name: &'static str,
    /// The lowest level at which it may stand in the log.
    pub needs: FeatureLevel,
}

/// What the table says of one command.
#[derive(Debug, Clone, Copy)]
struct Row {
    kind: Kind,
    grows: bool,
}

/// Rows of `NAME level LEVEL GROWS PATTERN`, and behind some of them a function that has a look into the command: it
/// is given the row, and what the pattern binds. `#[constant C]` gives a kind a name in code. `else` are commands that
/// hold another one and are of its kind.
macro_rules! kinds {
    ($(match $of:ty {
        $(
            $(#[constant $constant:ident])?
            $name:literal level $level:literal $grows:tt $pattern:pat $(=> $look:ident($inside:ident))?,
        )*
    } $(else { $($holds:pat => $held:expr,)* })?)*) => {
        impl Kind {
            $($($(pub(crate) const $constant: Self = Self::new($name, $level);)?)*)*

            /// All of them, in no order.
            pub const ALL: &[Self] = &[$($(Self::new($name, $level),)*)*];

            const fn new(name: &'static str, level: u32) -> Self {
                Self { name, needs: FeatureLevel(level) }
            }
        }

        $(impl $of {
            /// The match has no wildcard: a command without a row does not compile.
            fn row(&self) -> Row {
                match self {
                    $($pattern => {
                        let row = Row { kind: Kind::new($name, $level), grows: grows!($grows) };
                        $(let row = $look(row, $inside);)?
                        row
                    })*
                    $($($holds => $held,)*)?
                }
            }
        })*
    };
}

macro_rules! grows {
    (grows) => {
        true
    };
    (-) => {
        false
    };
}

// The column `grows` marks commands for which the state keeps something whose size, or whose number, the caller
// chooses: values, keys, jobs, and what tasks tell of their devices. What a job needs to go on and to end is not
// marked, although it leaves a few bytes behind: its tasks, of which there are as many as the job was created with;
// their arrivals at barriers, since a program whose barrier is refused ends; polls, errors and sessions. What ends
// something, or says that it ended, must always find room.
kinds! {
    match Command {
        "job/create"               level 1  grows  Self::Job(job::Command::Create { .. }),
        "job/delete"               level 1  -      Self::Job(job::Command::Delete { .. }),
        #[constant JOB_NOTE]
        "job/note"                 level 2  grows  Self::Job(job::Command::Note { note, .. }) => unless_empty(note),
        "task/register"            level 1  -      Self::Task(task::Command::Register { .. }),
        "task/shutdown"            level 1  -      Self::Task(task::Command::Shutdown { .. }),
        "task/reset"               level 1  -      Self::Task(task::Command::Reset { .. }),
        "task/report-error"        level 1  -      Self::Task(task::Command::ReportError { .. }),
        "task/poll"                level 1  -      Self::Task(task::Command::Poll { .. }),
        "task/alive"               level 1  -      Self::Task(task::Command::Alive { .. }),
        "task/exchange-devices"    level 1  grows  Self::Task(task::Command::ExchangeDevices { .. }),
        "task/expire"              level 1  -      Self::Task(task::Command::Expire { .. }),
        "task/pushed"              level 1  -      Self::Task(task::Command::Pushed { .. }),
        "task/refuse-beat"         level 1  -      Self::Task(task::Command::RefuseBeat { .. }),
        #[constant TASK_NOTE_INTERVAL]
        "task/note-interval"       level 6  -      Self::Task(task::Command::NoteInterval { .. }),
        #[constant TASK_NOTE_HOST]
        "task/note-host"           level 8  grows  Self::Task(task::Command::NoteHost { .. }),
        #[constant TASK_END]
        "task/end"                 level 8  -      Self::Task(task::Command::End { .. }),
        #[constant TASK_ENDED]
        "task/ended"               level 11 -      Self::Task(task::Command::Ended { .. }),
        #[constant TASK_REGISTER_FROM]
        "task/register-from"       level 11 -      Self::Task(task::Command::RegisterFrom { .. }),
        #[constant TASK_NOTE_ORIGIN]
        "task/note-origin"         level 11 grows  Self::Task(task::Command::NoteOrigin { .. }),
        "kv/insert"                level 1  grows  Self::Kv(kv::Command::Insert { .. }),
        #[constant KV_INSERT_AS]
        "kv/insert-as"             level 7  grows  Self::Kv(kv::Command::InsertAs { .. }),
        "kv/compare-and-set"       level 1  grows  Self::Kv(kv::Command::CompareAndSet { .. }),
        "kv/increment"             level 1  grows  Self::Kv(kv::Command::Increment { .. }),
        "kv/delete"                level 1  -      Self::Kv(kv::Command::Delete { .. }),
        "barrier/arrive"           level 1  -      Self::Barrier(barrier::Command::Arrive { .. }),
        "barrier/cancel"           level 1  -      Self::Barrier(barrier::Command::Cancel { .. }),
        "barrier/expire"           level 1  -      Self::Barrier(barrier::Command::Expire { .. }),
        "session/open"             level 1  -      Self::Session(session::Command::Open),
        "session/close"            level 1  -      Self::Session(session::Command::Close { .. }),
        "session/expire-idle"      level 1  -      Self::Session(session::Command::ExpireIdle { .. }),
        #[constant SESSION_OPEN_FOR]
        "session/open-for"         level 5  -      Self::Session(session::Command::OpenFor { .. }),
        "session/expire-owned"     level 5  -      Self::Session(session::Command::ExpireOwned { .. }),
        "member/announce"          level 1  -      Self::Member(member::Command::Announce { .. }),
        "member/begin"             level 1  -      Self::Member(member::Command::Begin { .. }),
        "member/join"              level 1  -      Self::Member(member::Command::Join { .. }),
        "member/cancel"            level 1  -      Self::Member(member::Command::Cancel { .. }),
        "member/end"               level 1  -      Self::Member(member::Command::End { .. }),
        #[constant MEMBER_DRAIN]
        "member/drain"             level 2  -      Self::Member(member::Command::Drain { .. }),
        #[constant MEMBER_BIND]
        "member/bind"              level 11 -      Self::Member(member::Command::Bind { .. }),
        "runtime/connect"          level 1  -      Self::Runtime(runtime::Command::Connect { .. }),
        #[constant RUNTIME_CONNECT_FROM]
        "runtime/connect-from"     level 11 -      Self::Runtime(runtime::Command::ConnectFrom { .. }),
        "runtime/withdraw"         level 1  -      Self::Runtime(runtime::Command::Withdraw { .. }),
        "runtime/enumerate"        level 1  grows  Self::Runtime(runtime::Command::Enumerate { .. }),
        "runtime/arrive"           level 1  -      Self::Runtime(runtime::Command::Arrive { .. }),
        "runtime/give-up"          level 1  -      Self::Runtime(runtime::Command::GiveUp { .. }),
        "runtime/shutdown"         level 1  -      Self::Runtime(runtime::Command::Shutdown { .. }),
        "runtime/give-up-shutdown" level 1  -      Self::Runtime(runtime::Command::GiveUpShutdown { .. }),
        "runtime/put"              level 1  grows  Self::Runtime(runtime::Command::Put { .. }),
        "level/raise"              level 2  -      Self::Level(level::Command::Raise { .. }),
        "level/pin"                level 2  -      Self::Level(level::Command::Pin { .. }),
        "level/unpin"              level 2  -      Self::Level(level::Command::Unpin { .. }),
        #[constant TOKEN_CREATE]
        "token/create"             level 11 grows  Self::Token(token::Command::Create { .. }),
        "token/bootstrap"          level 11 -      Self::Token(token::Command::Bootstrap { .. }),
        "token/revoke"             level 11 -      Self::Token(token::Command::Revoke { .. }),
        "token/use"                level 11 -      Self::Token(token::Command::Use { .. }),
        #[constant CLUSTER_PLANNED]
        "cluster/planned"          level 11 -      Self::Mindspore(mindspore::Command::Planned { request, .. })
                                                       => planned(request),
        #[constant BY]
        "by"                       level 11 -      Self::By(by) => of_anybody(by),
        #[constant SET_FLOOR]
        "identity/set-floor"       level 11 -      Self::Identity(IdentityCommand::SetFloor { .. }),
    } else {
        // Of a kind of what is in them.
        Self::Ray(ray::Command::Ask { request, .. }) => request.row(),
        Self::Ray(ray::Command::Lead { decision, .. }) => decision.row(),
        Self::Mindspore(mindspore::Command::Topology { request, .. }) => request.row(),
        Self::Mindspore(mindspore::Command::Cluster { request, .. }) => request.row(),
        Self::Mindspore(mindspore::Command::Lead { decision, .. }) => decision.row(),
        Self::Mars(mars::Command::Ask { request, .. }) => request.row(),
        Self::Mars(mars::Command::Lead { decision, .. }) => decision.row(),
        Self::Retried(command) => command.row(),
    }
    match ray::Request {
        #[constant RAY_REGISTER_STORE]
        "ray/register-store"       level 3  -      Self::RegisterStore { .. },
        "ray/register-worker"      level 3  -      Self::RegisterWorker(_),
        "ray/register-function"    level 3  -      Self::RegisterFunction { .. },
        "ray/submit"               level 3  grows  Self::Submit { .. },
        "ray/put"                  level 3  grows  Self::Put { .. },
        "ray/get"                  level 3  -      Self::Get { .. },
        "ray/alias"                level 3  -      Self::Alias { .. },
        "ray/ready"                level 3  -      Self::Ready { .. },
        "ray/fetch-failed"         level 3  -      Self::FetchFailed { .. },
        "ray/add-references"       level 3  -      Self::AddReferences { .. },
        "ray/drop-references"      level 3  -      Self::DropReferences { .. },
        "ray/contain"              level 3  grows  Self::Contain { .. },
        "ray/idle"                 level 3  -      Self::Idle { .. },
        "ray/give-back"            level 3  -      Self::GiveBack { .. },
        "ray/kill-workers"         level 3  -      Self::KillWorkers,
        "ray/export-function"      level 3  grows  Self::ExportFunction { .. },
        "ray/export-variable"      level 3  grows  Self::ExportVariable { .. },
        "ray/batch"                level 3  -      Self::Batch(requests) => batch(requests),
        "ray/leave"                level 3  -      Self::Leave { .. },
        #[constant RAY_SUBMIT_WITH]
        "ray/submit-with"          level 10 grows  Self::SubmitWith { .. },
        "ray/register-worker-with" level 10 -      Self::RegisterWorkerWith { .. },
        "ray/cancel"               level 10 -      Self::Cancel { .. },
        "ray/describe"             level 10 -      Self::Describe { .. },
    }
    match ray::Decision {
        "ray/assign"               level 3  -      Self::Assign(_),
        "ray/done"                 level 3  -      Self::Done { .. },
        "ray/undelivered"          level 3  -      Self::Undelivered { .. },
        "ray/expire"               level 3  -      Self::Expire { .. },
        "ray/reconcile"            level 3  -      Self::Reconcile { .. },
        "ray/delivery-failed"      level 3  -      Self::DeliveryFailed { .. },
        "ray/expire-sessions"      level 3  -      Self::ExpireSessions { .. },
        "ray/rearm"                level 3  -      Self::Rearm { .. },
        "ray/set-algorithm"        level 3  -      Self::SetAlgorithm(_),
        "ray/unreported"           level 3  -      Self::Unreported { .. },
        "ray/overdue"              level 10 -      Self::Overdue { .. },
    }
    match mindspore::topology::Request {
        #[constant TOPOLOGY_REGISTER]
        "topology/register"        level 9  -      Self::Register { .. },
        "topology/unregister"      level 9  -      Self::Unregister { .. },
        "topology/write"           level 9  grows  Self::Write { value, .. } => unless_without_value(value),
        "topology/delete"          level 9  -      Self::Delete { .. },
    }
    match mindspore::cluster::Request {
        #[constant CLUSTER_REGISTER]
        "cluster/register"         level 9  -      Self::Register { .. },
        "cluster/finish"           level 9  -      Self::Finish { .. },
        "cluster/done"             level 9  -      Self::Done { .. },
        "cluster/event"            level 9  -      Self::Event { .. },
        "cluster/scale-out"        level 9  -      Self::ScaleOut { .. },
        "cluster/scale-in"         level 9  -      Self::ScaleIn { .. },
        "cluster/abort"            level 9  -      Self::Abort,
        "cluster/switch"           level 9  grows  Self::Switch { .. },
    }
    match mindspore::Decision {
        "topology/silent"          level 9  -      Self::TopologySilent { .. },
        "topology/heard"           level 9  -      Self::TopologyHeard { .. },
        "topology/timed-out"       level 9  -      Self::TopologyTimedOut { .. },
        "cluster/silent"           level 9  -      Self::ClusterSilent { .. },
        "cluster/heard"            level 9  -      Self::ClusterHeard { .. },
        "cluster/gave-up"          level 9  -      Self::ClusterGaveUp { .. },
        "cluster/timed-out"        level 9  -      Self::ClusterTimedOut { .. },
        "cluster/switch-ended"     level 9  -      Self::ClusterSwitchEnded { .. },
        "cluster/echoed"           level 9  -      Self::Echoed { .. },
    }
    match mars::Request {
        #[constant MARS_CREATE_SESSION]
        "mars/create-session"      level 10 grows  Self::CreateSession { .. },
        "mars/delete-session"      level 10 -      Self::DeleteSession { .. },
        "mars/upload"              level 10 grows  Self::Upload { .. },
        "mars/submit"              level 10 grows  Self::Submit { .. },
        "mars/begin"               level 10 grows  Self::Begin { .. },
        "mars/add"                 level 10 grows  Self::Add { .. },
        "mars/commit"              level 10 -      Self::Commit { .. },
        "mars/stop"                level 10 -      Self::Stop { .. },
        "mars/delete-graph"        level 10 -      Self::DeleteGraph { .. },
        "mars/decref"              level 10 -      Self::Decref { .. },
        "mars/create-mutable"      level 10 grows  Self::CreateMutable { .. },
        "mars/seal-mutable"        level 10 -      Self::SealMutable { .. },
        "mars/delete-mutable"      level 10 -      Self::DeleteMutable { .. },
        "mars/seal-reported"       level 10 -      Self::SealReported { .. },
    }
    match mars::Decision {
        "mars/advance"             level 10 -      Self::Advance { .. },
        "mars/timed-out"           level 10 -      Self::TimedOut { .. },
        "mars/expired"             level 10 -      Self::Expired { .. },
        "mars/upload-expired"      level 10 -      Self::UploadExpired { .. },
        "mars/forget"              level 10 -      Self::Forget,
        "mars/judge"               level 10 -      Self::Judge { .. },
    }
}

/// A note that is empty takes one away.
fn unless_empty(row: Row, note: &str) -> Row {
    Row { grows: !note.is_empty(), ..row }
}

/// An entry that is empty takes one away.
fn unless_without_value(row: Row, value: &[u8]) -> Row {
    Row { grows: !value.is_empty(), ..row }
}

/// What is planned grows as what is asked does, whose level is lower.
fn planned(row: Row, request: &mindspore::cluster::Request) -> Row {
    Row { grows: request.row().grows, ..row }
}

/// Who proposed a command does not change what else it needs, nor whether it grows.
fn of_anybody(row: Row, by: &By) -> Row {
    let inner = by.command.row();
    let kind = if inner.kind.needs > row.kind.needs { inner.kind } else { row.kind };
    Row { kind, grows: inner.grows }
}

/// A batch is of the kind that needs most of what is in it, and grows if anything in it does.
fn batch(row: Row, requests: &[ray::Request]) -> Row {
    requests.iter().map(ray::Request::row).fold(row, |batch, one| Row {
        kind: if one.kind.needs > batch.kind.needs { one.kind } else { batch.kind },
        grows: batch.grows || one.grows,
    })
}

impl Command {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.row().kind
    }

    /// The lowest level at which it may stand in the log.
    #[must_use]
    pub fn needs(&self) -> FeatureLevel {
        self.kind().needs
    }

    /// Whether the state becomes larger by it, as far as its caller chooses. On a disk that is nearly full such a command
    /// is refused before it is replicated, so that what is left serves everything else.
    #[must_use]
    pub fn grows(&self) -> bool {
        self.row().grows
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::command::Scope;
    use crate::identity::Identity;
    use crate::ids::JobId;
    use crate::ray::ids::WorkerId;

    const SCOPE: Scope = Scope { job: JobId(1), service: None };

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

    #[test]
    fn a_mark_does_not_change_whether_a_command_grows() {
        let (key, value) = ("k".into(), "v".into());
        let put = Command::Kv(kv::Command::Insert { scope: SCOPE, key, value, overwrite: false });
        let delete = Command::Kv(kv::Command::Delete { scope: SCOPE, key: "k".into() });
        assert!(Command::Retried(Box::new(put)).grows());
        assert!(!Command::Retried(Box::new(delete)).grows());
    }

    #[test]
    fn who_proposed_a_command_changes_its_level_and_not_whether_it_grows() {
        let (key, value) = ("k".into(), "v".into());
        let put = Command::Kv(kv::Command::Insert { scope: SCOPE, key, value, overwrite: false });
        let delete = Command::Kv(kv::Command::Delete { scope: SCOPE, key: "k".into() });
        let agent = || Identity::Agent("train".into());
        assert_eq!((put.needs(), put.clone().by(agent()).needs()), (FeatureLevel(1), FeatureLevel(11)));
        assert!(put.by(agent()).grows() && !delete.by(agent()).grows());
        let unpin = Command::Level(level::Command::Unpin { by: String::new() });
        assert!(!unpin.by(agent()).is_about_level(), "nobody but nodes says anything about it");
    }

    #[test]
    fn a_batch_and_a_note_grow_by_what_is_in_them() {
        let batch = |requests: &[ray::Request]| {
            let (origin, request) = (ray::Origin::default(), ray::Request::Batch(requests.to_vec()));
            Command::Ray(ray::Command::Ask { scope: SCOPE, origin, request })
        };
        let idle = ray::Request::Idle { worker: WorkerId(1), previous: None, run: None };
        let put = ray::Request::Put { worker: WorkerId(1), child: None, hold: false };
        assert!(!batch(&[]).grows() && !batch(std::slice::from_ref(&idle)).grows());
        assert!(batch(&[idle, put]).grows());
        assert_eq!(batch(&[]).kind().name, "ray/batch");
        let note = |note: &str| Command::Job(job::Command::Note { name: "job".into(), note: note.into() });
        assert!(note("mine").grows() && !note("").grows());
    }
}
