//! What is asked of a cluster whose level does not have a command yet.

use crate::command::Command;
use crate::identity::By;
use crate::ids::FeatureLevel;
use crate::level::{FIRST, Kind};
use crate::{kv, mindspore, runtime, session, task};

impl Command {
    /// The command itself where the level has it, and otherwise an earlier one that asks for as much as there is. What has no
    /// earlier one is refused by the cluster. The level is asked for by few commands.
    #[must_use]
    pub fn for_level(self, level: impl Fn() -> FeatureLevel) -> Self {
        match self {
            Self::Retried(command) => Self::Retried(Box::new(command.for_level(level))),
            Self::By(by) if level() < Kind::BY.needs => by.command.for_level(level),
            Self::By(by) => {
                let By { identity, command } = *by;
                command.for_level(level).by(identity)
            }
            Self::Kv(command @ kv::Command::InsertAs { .. }) if level() < Kind::KV_INSERT_AS.needs => {
                Self::Kv(command.without_life())
            }
            Self::Task(task::Command::Ended { scope, task, incarnation, .. })
                if level() < Kind::TASK_ENDED.needs =>
            {
                Self::Task(task::Command::End { scope, task, incarnation }).for_level(level)
            }
            Self::Task(task::Command::End { scope, task, incarnation }) if level() < Kind::TASK_END.needs => {
                Self::Task(task::Command::Expire { job: scope.job, silent: vec![(task, incarnation)] })
            }
            Self::Task(command @ task::Command::RegisterFrom { .. })
                if level() < Kind::TASK_REGISTER_FROM.needs =>
            {
                Self::Task(command.without_origin())
            }
            Self::Task(command @ task::Command::NoteOrigin { .. })
                if level() < Kind::TASK_NOTE_ORIGIN.needs =>
            {
                Self::Task(command.without_origin())
            }
            Self::Runtime(command @ runtime::Command::ConnectFrom { .. })
                if level() < Kind::RUNTIME_CONNECT_FROM.needs =>
            {
                Self::Runtime(command.without_origin())
            }
            Self::Session(session::Command::OpenFor { .. }) if level() < Kind::SESSION_OPEN_FOR.needs => {
                Self::Session(session::Command::Open)
            }
            // Whoever asks has compared the generation before.
            Self::Mindspore(mindspore::Command::Planned { scope, request, .. })
                if level() < Kind::CLUSTER_PLANNED.needs =>
            {
                Self::Mindspore(mindspore::Command::Cluster { scope, request })
            }
            command => command,
        }
    }
}

impl Command {
    /// What asks for nearly as much at any level, if that is another command; of one that says who proposed it the command itself,
    /// which asks for as much.
    #[must_use]
    pub fn earlier(&self) -> Option<Self> {
        if let Self::By(by) = self {
            return Some(by.command.clone());
        }
        Some(self.clone().for_level(|| FIRST)).filter(|earlier| earlier != self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Scope;
    use crate::ids::{ClientId, Incarnation, JobId, NodeId, SessionId, TaskId, TimeMs};

    #[test]
    fn below_its_level_an_insert_of_a_life_is_one_of_anybody() {
        let scope = Scope { job: JobId(1), service: None };
        let (key, value) = ("k".to_owned(), bytes::Bytes::from_static(b"v"));
        let (task, incarnation) = (TaskId(0), Incarnation(7));
        let by_life = Command::Kv(kv::Command::InsertAs {
            scope,
            key: key.clone(),
            value: value.clone(),
            task,
            incarnation,
        });
        let by_anybody = Command::Kv(kv::Command::Insert { scope, key, value, overwrite: false });
        assert_eq!(by_life.clone().for_level(|| FeatureLevel(6)), by_anybody);
        assert_eq!(by_life.clone().for_level(|| FeatureLevel(7)), by_life);
        assert_eq!((by_life.earlier(), by_anybody.earlier()), (Some(by_anybody.clone()), None));
        let retried = Command::Retried(Box::new(by_life));
        assert_eq!(retried.for_level(|| FeatureLevel(6)), Command::Retried(Box::new(by_anybody)));
    }

    #[test]
    fn below_its_level_the_end_of_a_process_is_silence() {
        let (job, task, incarnation) = (JobId(1), TaskId(0), Incarnation(7));
        let end =
            Command::Task(task::Command::End { scope: Scope { job, service: None }, task, incarnation });
        let expire = Command::Task(task::Command::Expire { job, silent: vec![(task, incarnation)] });
        assert_eq!(end.earlier(), Some(expire));
    }

    #[test]
    fn below_its_level_how_a_process_ended_is_left_out() {
        let (scope, task, incarnation) = (Scope { job: JobId(1), service: None }, TaskId(0), Incarnation(7));
        let end = task::End { how: task::How::Exited { code: 3 }, at: TimeMs(5), tail: "boom".into() };
        let ended = Command::Task(task::Command::Ended { scope, task, incarnation, end });
        let end = Command::Task(task::Command::End { scope, task, incarnation });
        assert_eq!(ended.clone().for_level(|| FeatureLevel(11)), ended);
        assert_eq!(ended.clone().for_level(|| FeatureLevel(10)), end);
        assert_eq!(ended.earlier(), end.earlier());
    }

    #[test]
    fn below_its_level_what_is_planned_is_asked_of_whichever_cluster_there_is() {
        let scope = Scope { job: JobId(1), service: None };
        let abort = mindspore::cluster::Request::Abort;
        let asked = Command::Mindspore(mindspore::Command::Cluster { scope, request: abort.clone() });
        let planned =
            Command::Mindspore(mindspore::Command::Planned { scope, generation: 7, request: abort });
        assert_eq!(planned.clone().for_level(|| FeatureLevel(11)), planned);
        assert_eq!(planned.clone().for_level(|| FeatureLevel(10)), asked);
        assert_eq!((planned.earlier(), asked.earlier()), (Some(asked.clone()), None));
    }

    #[test]
    fn below_its_level_nobody_is_told_who_proposed_a_command() {
        let scope = Scope { job: JobId(1), service: None };
        let delete = Command::Kv(kv::Command::Delete { scope, key: "k".to_owned() });
        let by = delete.clone().by(crate::identity::Identity::Agent("train".into()));
        assert_eq!(by.clone().for_level(|| FeatureLevel(11)), by);
        assert_eq!(by.clone().for_level(|| FeatureLevel(10)), delete);
        assert_eq!((by.earlier(), delete.earlier()), (Some(delete.clone()), None));
        // What a level between both has is not given up with who proposed it.
        let (task, incarnation) = (TaskId(0), Incarnation(7));
        let end = Command::Task(task::Command::End { scope, task, incarnation });
        let by = end.clone().by(crate::identity::Identity::Agent("train".into()));
        assert_eq!(by.earlier(), Some(end));
    }

    #[test]
    fn below_its_level_a_registration_does_not_say_where_it_comes_from() {
        let (scope, task, incarnation) = (Scope { job: JobId(1), service: None }, TaskId(0), Incarnation(7));
        let (recoverable, protocol) = (false, task::Protocol::Xla);
        let origin = task::Origin { host: "a3-7".into(), pid: 5, ..task::Origin::default() };
        let plain = task::Command::Register { scope, task, incarnation, recoverable, protocol };
        let told = Command::Task(plain.clone().with_origin(origin.clone()));
        assert_eq!(told.clone().for_level(|| FeatureLevel(11)), told);
        assert_eq!(told.clone().for_level(|| FeatureLevel(10)), Command::Task(plain.clone()));
        assert_eq!(plain.clone().with_origin(task::Origin::default()), plain, "nothing is said");
        // Neither is who says it. Where only that is too much, where it comes from stays.
        let by = told.clone().by(crate::identity::Identity::Agent("train".into()));
        assert_eq!(by.clone().for_level(|| FeatureLevel(10)), Command::Task(plain.clone()));
        assert_eq!((by.earlier(), told.earlier()), (Some(told.clone()), Some(Command::Task(plain))));
        let connect = runtime::Command::Connect { scope, task, client: ClientId(3) };
        let told = Command::Runtime(connect.clone().with_origin(origin.clone()));
        assert_eq!(told.earlier(), Some(Command::Runtime(connect)));
        let note = task::Command::NoteOrigin { scope, task, incarnation, origin: Box::new(origin) };
        let host = task::Command::NoteHost { scope, task, incarnation, host: "a3-7".into() };
        assert_eq!(Command::Task(note).earlier(), Some(Command::Task(host)));
    }

    #[test]
    fn below_its_level_a_session_belongs_to_nobody() {
        let (id, owner) = (SessionId(7), session::Owner::Node(NodeId(1)));
        let owned = Command::Session(session::Command::OpenFor { id, owner });
        let open = Command::Session(session::Command::Open);
        assert_eq!((owned.earlier(), open.earlier()), (Some(open.clone()), None));
        assert_eq!(owned.clone().for_level(|| FeatureLevel(5)), owned);
    }
}
