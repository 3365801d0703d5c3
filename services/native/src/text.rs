//! Faults in words: what failed, why, and where there is one, the next step. The coordination protocols
//! have their own texts; these are for people.

pub(crate) mod level;
pub(crate) mod member;

use tripod_state::runtime::Refusal;
use tripod_state::{Asked, BarrierFault, Fault, Leaving};

/// A fault as one sentence without a full stop.
#[expect(clippy::too_many_lines, reason = "one exhaustive match, so that no fault is forgotten")]
pub(crate) fn of(fault: &Fault) -> String {
    match fault {
        Fault::JobUnknown { name: Some(name) } => format!(
            "there is no job `{name}`; see the jobs with `tripod job list`, or create it with \
             `tripod job create {name} --tasks N`"
        ),
        Fault::JobUnknown { name: None } => {
            "the job was deleted; see the jobs with `tripod job list`".to_owned()
        }
        Fault::JobExists { name } => {
            format!("job `{name}` exists already; look at it with `tripod job show {name}`")
        }
        Fault::JobNameInvalid { name } => format!(
            "`{}` is no job name; use 1 to 63 characters of a-z, 0-9, `-`, `_` and `.`, the first a letter or \
             a digit",
            name.escape_debug()
        ),
        Fault::JobSpecInvalid { field, reason } => format!("job parameter `{field}`: {reason}"),
        Fault::JobSlotsTaken { slots } => {
            format!("all {slots} job ports are taken; delete a job that has ended with `tripod job delete`")
        }
        Fault::ServiceMismatch { requested, current } => {
            format!("the caller knows service incarnation {requested}, but the job's is {current}")
        }

        Fault::KeyExists { key } => format!("key `{key}` exists already"),
        Fault::KeyMissing { asked } => format!("there is no key `{asked}`"),
        Fault::NotAnInteger { value } => format!("the value `{value}` is no decimal 64-bit integer"),
        Fault::IncrementOverflow { value, increment } => {
            format!("{value} plus {increment} does not fit 64 bits")
        }
        Fault::VersionMismatch { key, expected, current: 0 } => {
            format!("key `{key}` should have version {expected}, but it does not exist")
        }
        Fault::VersionMismatch { key, expected, current } => {
            format!("key `{key}` has version {current}, not {expected}; read it again and decide anew")
        }
        Fault::LimitExceeded { what, limit, actual } => {
            format!("{what}: {actual} exceeds the limit of {limit}")
        }

        Fault::SessionExpired => {
            "the session is unknown or was closed, and the call was not executed; open a new session"
                .to_owned()
        }
        Fault::StampReused => {
            "the sequence number was used for another call of the session, so this one was not executed; number each \
             call anew"
                .to_owned()
        }
        Fault::ReplyForgotten => {
            "the sequence number was acknowledged earlier, so its reply is no longer kept".to_owned()
        }
        Fault::SessionWindow { limit } => {
            format!("the sequence number is more than {limit} ahead of the oldest one not acknowledged")
        }

        Fault::TaskUnknown { task, asked } => {
            format!("{} named task {task}, which the job does not have", call(*asked))
        }
        Fault::RegistrationReplaced => "a newer registration of the task took this one's place".to_owned(),
        Fault::RegisteredInError { task, existing } => {
            format!("task {task} registered while in error: {}", of(existing))
        }
        Fault::Restarted { task } => {
            format!("task {task} came back as another process without leaving first")
        }
        Fault::RegistrationFailed { cause } => {
            format!("not all tasks registered: {}", of_failed_barrier(cause))
        }
        Fault::BeatInError { task, existing } => {
            format!("task {task} sent a heartbeat while in error: {}", of(existing))
        }
        Fault::BeatUnregistered { task } => format!("task {task} sent a heartbeat without being registered"),
        Fault::BeatOfOtherLife { task, expected, got } => {
            format!("a heartbeat of task {task} came from process {got}, but {expected} is registered")
        }
        Fault::HeartbeatTimeout { task } => {
            format!("task {task} was silent for longer than the heartbeat timeout")
        }
        Fault::TasksUnhealthy { tasks } => format!("tasks were silent for too long: {}", ids(tasks)),
        Fault::AlreadyDisconnected { task } => format!("task {task} is not connected"),
        Fault::ReporterNotConnected => "the reporting task is not connected".to_owned(),
        Fault::ReportWithoutCode => "the report carries the code for success".to_owned(),
        Fault::Reported { task, code, message } => format!("task {task} reported error {code}: {message}"),
        Fault::Unheard { cause } => format!("no task listens for errors, so all were ended: {}", of(cause)),
        Fault::ShutdownFailed { cause } => {
            format!("the shutdown barrier failed: {}", of_failed_barrier(cause))
        }
        Fault::PollUnregistered { task } => format!("task {task} polled for errors without being registered"),
        Fault::PollInError { task, existing } => {
            format!("task {task} polled for errors while in error: {}", of(existing))
        }
        Fault::PollReplaced => "a newer poll of the task took this one's place".to_owned(),
        Fault::PollerLeft => "the polling task left".to_owned(),
        Fault::PollReleased => "this job tells its errors with heartbeats".to_owned(),
        Fault::Barrier { barrier, counter, fault } => {
            format!("barrier `{barrier}` ({counter}): {}", of_barrier(fault))
        }
        Fault::ArrivalReplaced { barrier, counter } => {
            format!("barrier `{barrier}` ({counter}): a newer call of the task took this one's place")
        }
        Fault::NotInAliveSet { task } => format!("task {task} asked about a set of tasks that it is not in"),
        Fault::VersionAhead { asked, current } => {
            format!("version {asked} of the task states does not exist yet; the current one is {current}")
        }
        Fault::Runtime(refusal) => of_runtime(refusal),
        Fault::Member(refusal) => member::of_refusal(refusal),
        Fault::Level(refusal) => level::of_refusal(refusal),
        Fault::Ray(_) => "the job's scheduler refused".to_owned(),
    }
}

/// Why a barrier failed, for those who know which one.
pub(crate) fn of_failed_barrier(fault: &Fault) -> String {
    match fault {
        Fault::Barrier { fault, .. } => of_barrier(fault),
        other => of(other),
    }
}

fn of_runtime(refusal: &Refusal) -> String {
    match refusal {
        Refusal::NotInitializing => "all tasks have connected to the runtime already".to_owned(),
        Refusal::NotRunning { .. } => "the runtime of the job does not run".to_owned(),
        Refusal::TaskUnknown { task, tasks } => format!("there is no task {task}; the job has {tasks}"),
        Refusal::Replaced { task } => format!("a newer client connected as task {task}"),
        Refusal::Lost { task } => {
            format!("task {task} was silent for longer than the heartbeat timeout, so the runtime was closed")
        }
        Refusal::BarrierUsed => "a barrier of the runtime serves once, and this one has passed".to_owned(),
        Refusal::BarrierSpoiled => "a call gave up waiting at this barrier of the runtime".to_owned(),
        Refusal::TimedOut { waited_ms, .. } => format!("not all tasks came within {waited_ms} ms"),
    }
}

fn of_barrier(fault: &BarrierFault) -> String {
    match fault {
        BarrierFault::TimedOut { arrived, total, first, missing } => format!(
            "timed out with {arrived} of {total} tasks there; task {first} came first, missing are {}",
            ids(missing)
        ),
        BarrierFault::UnknownMember { task } => format!("task {task} is in its list, but not in the job"),
        BarrierFault::ConflictingTasks => "called with another list of tasks".to_owned(),
        BarrierFault::ListMissing => "called without the list of its tasks".to_owned(),
        BarrierFault::NotAMember { task } => format!("task {task} is not in its list"),
        BarrierFault::MemberInError { task, existing } => {
            format!("task {task} is in error: {}", of(existing))
        }
        BarrierFault::MemberLost { task, reason } => format!("task {task} {}", left(reason)),
        BarrierFault::CounterMismatch { called } => format!("called as instance {called}"),
        BarrierFault::Cancelled { by } => format!("cancelled by task {by}"),
        BarrierFault::CancelOfOtherInstance { called } => format!("cancellation of instance {called}"),
        BarrierFault::CancelAfterEnd { result: None } => "cancelled after it had passed".to_owned(),
        BarrierFault::CancelAfterEnd { result: Some(fault) } => {
            format!("cancelled after it had failed: {}", of(fault))
        }
        BarrierFault::StaleArrival { task, reason } => format!("task {task} {} after arriving", left(reason)),
    }
}

fn left(reason: &Leaving) -> String {
    match reason {
        Leaving::Error(fault) => format!("failed ({})", of(fault)),
        Leaving::Disconnected => "left".to_owned(),
        Leaving::ConnectedAgain => "registered again".to_owned(),
    }
}

fn call(asked: Asked) -> &'static str {
    match asked {
        Asked::Register => "a registration",
        Asked::Heartbeat => "a heartbeat",
        Asked::Disconnect => "a shutdown",
        Asked::Report => "an error report",
        Asked::Poll => "a poll for errors",
        Asked::State => "a question for task states",
    }
}

fn ids(ids: &[impl ToString]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use tripod_state::ids::{BarrierCounter, BarrierName, TaskId};

    use super::*;

    #[test]
    fn a_nested_fault_is_told_to_its_root() {
        let fault = Fault::ShutdownFailed {
            cause: Box::new(Fault::Barrier {
                barrier: BarrierName::from("end"),
                counter: BarrierCounter(0),
                fault: BarrierFault::MemberLost {
                    task: TaskId(2),
                    reason: Leaving::Error(Box::new(Fault::HeartbeatTimeout { task: TaskId(2) })),
                },
            }),
        };
        assert_eq!(
            of(&fault),
            "the shutdown barrier failed: task 2 failed (task 2 was silent for longer than the heartbeat timeout)"
        );
    }

    #[test]
    fn control_characters_of_a_bad_name_are_escaped() {
        let text = of(&Fault::JobNameInvalid { name: "a\nb".into() });
        assert!(text.starts_with("`a\\nb` is no job name"), "{text}");
    }
}
