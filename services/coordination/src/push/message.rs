//! What a task is told, as upstream's `PropagateError` has it.

use tripod_proto::tensorflow as pb;
use tripod_state::ids::TaskId;
use tripod_state::{BarrierFault, Fault};

use crate::dialect::Dialect;
use crate::names::{Names, Voice};
use crate::payload::named;
use crate::status::{Rendered, propagated};

/// The message that tells of an error.
pub(super) fn of(error: &Fault, names: &Names) -> pb::ReportErrorToTaskRequest {
    let voice = Voice::new(Dialect::T, names);
    let Rendered { code, message, .. } = Rendered::of(error, voice);
    let payload = pb::CoordinationServiceError {
        is_reported_error: matches!(error, Fault::Reported { .. }),
        source_task: origin(error).map(|task| named(task, voice)),
    };
    pb::ReportErrorToTaskRequest {
        error_code: propagated(code).into(),
        error_message: message,
        error_payload: Some(payload),
    }
}

/// The task whose error it is, or the first of several. Clients put its name before the text.
fn origin(error: &Fault) -> Option<TaskId> {
    match error {
        Fault::Reported { task, .. }
        | Fault::Restarted { task }
        | Fault::RegisteredInError { task, .. }
        | Fault::BeatOfOtherLife { task, .. } => Some(*task),
        Fault::TasksUnhealthy { tasks } => tasks.first().copied(),
        Fault::ShutdownFailed { cause } => origin(cause),
        Fault::Barrier { fault, .. } => match fault {
            BarrierFault::TimedOut { missing, .. } => missing.first().copied(),
            BarrierFault::MemberInError { task, .. } | BarrierFault::MemberLost { task, .. } => Some(*task),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use tripod_state::Leaving;
    use tripod_state::ids::{BarrierCounter, BarrierName};
    use tripod_state::job::{Group, Spec};

    use super::*;

    fn told(error: &Fault) -> pb::ReportErrorToTaskRequest {
        let groups = vec![Group { name: "worker".to_owned(), tasks: 2 }];
        of(error, &Names::of(&Spec { groups, ..Spec::of_tasks(2) }))
    }

    fn source(index: i32) -> Option<pb::CoordinatedTask> {
        Some(pb::CoordinatedTask { job_name: "worker".to_owned(), task_id: index, recoverable: false })
    }

    #[test]
    fn a_report_is_told_as_it_was_made() {
        let message = told(&Fault::Reported { task: TaskId(1), code: 14, message: "leaving".to_owned() });
        assert_eq!((message.error_code, message.error_message.as_str()), (14, "leaving"));
        let payload = message.error_payload.unwrap();
        assert!(payload.is_reported_error);
        assert_eq!(payload.source_task, source(1));
    }

    #[test]
    fn a_code_that_would_say_that_nothing_is_wrong_is_not_told() {
        let code = |code| told(&Fault::Reported { task: TaskId(0), code, message: String::new() }).error_code;
        assert_eq!((code(1), code(99)), (10, 2));
    }

    #[test]
    fn lost_tasks_are_told_of_by_the_first() {
        let message = told(&Fault::TasksUnhealthy { tasks: vec![TaskId(0), TaskId(1)] });
        assert_eq!(message.error_code, 14);
        assert!(message.error_message.contains(":\n/job:worker/replica:0/task:0\n"), "{message:?}");
        let payload = message.error_payload.unwrap();
        assert!(!payload.is_reported_error);
        assert_eq!(payload.source_task, source(0));
    }

    #[test]
    fn a_failed_shutdown_is_the_error_of_whoever_failed_it() {
        let origin = |fault| {
            let (barrier, counter) = (BarrierName::from("Shutdown::1"), BarrierCounter(0));
            let cause = Box::new(Fault::Barrier { barrier, counter, fault });
            told(&Fault::ShutdownFailed { cause }).error_payload.unwrap().source_task
        };
        let missing = vec![TaskId(1)];
        let late = BarrierFault::TimedOut { arrived: 1, total: 2, first: TaskId(0), missing };
        assert_eq!(origin(late), source(1));
        let lost = BarrierFault::MemberLost { task: TaskId(0), reason: Leaving::Disconnected };
        assert_eq!(origin(lost), source(0));
        assert_eq!(origin(BarrierFault::ConflictingTasks), None);
    }
}
