//! Faults in words, for people: what failed and why. What to do next is added by whoever knows the commands.

use crate::fault::{Asked, BarrierFault, Fault, Leaving};
use crate::ids::TaskId;
use crate::runtime::Refusal;
use crate::task::register::UNAVAILABLE;

impl Fault {
    /// What was refused and why, as one sentence without a full stop. Protocols with texts of their own tell those.
    #[must_use]
    #[expect(clippy::too_many_lines, reason = "one exhaustive match, so that no fault is forgotten")]
    pub fn text(&self) -> String {
        match self {
            Self::JobUnknown { name: Some(name) } => format!("there is no job `{name}`"),
            Self::JobUnknown { name: None } => "the job was deleted".to_owned(),
            Self::JobExists { name } => format!("job `{name}` exists already"),
            Self::JobNameInvalid { name } => format!(
                "`{}` is no job name; use 1 to 63 characters of a-z, 0-9, `-`, `_` and `.`, the first a letter or \
                 a digit",
                name.escape_debug()
            ),
            Self::JobSpecInvalid { field, reason } => format!("job parameter `{field}`: {reason}"),
            Self::JobSlotsTaken { slots } => format!("all {slots} job ports are taken"),
            Self::ServiceMismatch { requested, current } => {
                format!("the caller knows service incarnation {requested}, but the job's is {current}")
            }

            Self::KeyExists { key } => format!("key `{key}` exists already"),
            Self::KeyMissing { asked } => format!("there is no key `{asked}`"),
            Self::NotAnInteger { value } => format!("the value `{value}` is no decimal 64-bit integer"),
            Self::IncrementOverflow { value, increment } => {
                format!("{value} plus {increment} does not fit 64 bits")
            }
            Self::VersionMismatch { key, expected, current: 0 } => {
                format!("key `{key}` should have version {expected}, but it does not exist")
            }
            Self::VersionMismatch { key, expected, current } => {
                format!("key `{key}` has version {current}, not {expected}; read it again and decide anew")
            }
            Self::LimitExceeded { what, limit, actual } => {
                format!("{what}: {actual} exceeds the limit of {limit}")
            }

            Self::SessionExpired => {
                "the session is unknown or was closed, and the call was not executed; open a new session"
                    .to_owned()
            }
            Self::StampReused => {
                "the sequence number was used for another call of the session, so this one was not executed; number each \
                 call anew"
                    .to_owned()
            }
            Self::ReplyForgotten => {
                "the sequence number was acknowledged earlier, so its reply is no longer kept".to_owned()
            }
            Self::SessionWindow { limit } => {
                format!("the sequence number is more than {limit} ahead of the oldest one not acknowledged")
            }

            Self::TaskUnknown { task, asked } => {
                format!("{} named task {task}, which the job does not have", call(*asked))
            }
            Self::RegistrationReplaced => "a newer registration of the task took this one's place".to_owned(),
            Self::RegisteredInError { task, existing } => {
                format!("task {task} registered while in error: {}", existing.text())
            }
            Self::Restarted { task } => {
                format!("task {task} came back as another process without leaving first")
            }
            Self::RegistrationFailed { cause } => {
                format!("not all tasks registered: {}", of_failed_barrier(cause))
            }
            Self::BeatInError { task, existing } => {
                format!("task {task} sent a heartbeat while in error: {}", existing.text())
            }
            Self::BeatUnregistered { task } => format!("task {task} sent a heartbeat without being registered"),
            Self::BeatOfOtherLife { task, expected, got } => {
                format!("a heartbeat of task {task} came from process {got}, but {expected} is registered")
            }
            Self::HeartbeatTimeout { task } => {
                format!("task {task} was silent for longer than the heartbeat timeout")
            }
            Self::TasksUnhealthy { tasks } => format!("tasks were silent for too long: {}", ids(tasks)),
            Self::AlreadyDisconnected { task } => format!("task {task} is not connected"),
            Self::ReporterNotConnected => "the reporting task is not connected".to_owned(),
            Self::ReportWithoutCode => "the report carries the code for success".to_owned(),
            // Whoever started the process has said it, and not the task: see `task::ended`.
            Self::Reported { task, message, .. } if self.tells_an_end_of(*task) => message.clone(),
            Self::Reported { task, code, message } => format!("task {task} reported error {code}: {message}"),
            Self::Unheard { cause } => format!("no task listens for errors, so all were ended: {}", cause.text()),
            Self::ShutdownFailed { cause } => {
                format!("the shutdown barrier failed: {}", of_failed_barrier(cause))
            }
            Self::PollUnregistered { task } => format!("task {task} polled for errors without being registered"),
            Self::PollInError { task, existing } => {
                format!("task {task} polled for errors while in error: {}", existing.text())
            }
            Self::PollReplaced => "a newer poll of the task took this one's place".to_owned(),
            Self::PollerLeft => "the polling task left".to_owned(),
            Self::PollReleased => "this job tells its errors with heartbeats".to_owned(),
            Self::Barrier { barrier, counter, fault } => {
                format!("barrier `{barrier}` ({counter}): {}", fault.text())
            }
            Self::ArrivalReplaced { barrier, counter } => {
                format!("barrier `{barrier}` ({counter}): a newer call of the task took this one's place")
            }
            Self::NotInAliveSet { task } => format!("task {task} asked about a set of tasks that it is not in"),
            Self::VersionAhead { asked, current } => {
                format!("version {asked} of the task states does not exist yet; the current one is {current}")
            }
            Self::Runtime(refusal) => of_runtime(refusal),
            Self::Member(_) => "a change of the members was refused".to_owned(),
            Self::Level(_) => "the feature level of the cluster does not allow it".to_owned(),
            Self::Ray(_) => "the job's scheduler refused".to_owned(),
            Self::Mindspore(refusal) => refusal.text(),
            Self::Mars(refusal) => refusal.text(),
            Self::Token(refusal) => refusal.text(),
            Self::NotAuthorised(refusal) => refusal.text(),
        }
    }
}

impl Fault {
    /// How the text begins that tells of the end of a task's process.
    pub(crate) fn of_process(task: TaskId) -> String {
        format!("the process of task {task} ")
    }

    /// Whether it is what a task is in error with whose process has ended, as whoever started it saw.
    pub(crate) fn tells_an_end_of(&self, task: TaskId) -> bool {
        let Self::Reported { task: of, code, message } = self else { return false };
        *of == task && *code == UNAVAILABLE && message.starts_with(&Self::of_process(task))
    }
}

impl BarrierFault {
    /// Why the barrier failed, for those who know which one: as [`Fault::text`].
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::TimedOut { arrived, total, first, missing } => format!(
                "timed out with {arrived} of {total} tasks there; task {first} came first, missing are {}",
                ids(missing)
            ),
            Self::UnknownMember { task } => format!("task {task} is in its list, but not in the job"),
            Self::ConflictingTasks => "called with another list of tasks".to_owned(),
            Self::ListMissing => "called without the list of its tasks".to_owned(),
            Self::NotAMember { task } => format!("task {task} is not in its list"),
            Self::MemberInError { task, existing } => {
                format!("task {task} is in error: {}", existing.text())
            }
            Self::MemberLost { task, reason } => format!("task {task} {}", left(reason)),
            Self::CounterMismatch { called } => format!("called as instance {called}"),
            Self::Cancelled { by } => format!("cancelled by task {by}"),
            Self::CancelOfOtherInstance { called } => format!("cancellation of instance {called}"),
            Self::CancelAfterEnd { result: None } => "cancelled after it had passed".to_owned(),
            Self::CancelAfterEnd { result: Some(fault) } => {
                format!("cancelled after it had failed: {}", fault.text())
            }
            Self::StaleArrival { task, reason } => format!("task {task} {} after arriving", left(reason)),
        }
    }
}

/// Why a barrier failed that the text around it names.
fn of_failed_barrier(fault: &Fault) -> String {
    match fault {
        Fault::Barrier { fault, .. } => fault.text(),
        other => other.text(),
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

fn left(reason: &Leaving) -> String {
    match reason {
        Leaving::Error(fault) => format!("failed ({})", fault.text()),
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
    use super::*;
    use crate::ids::{BarrierCounter, BarrierName};

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
            fault.text(),
            "the shutdown barrier failed: task 2 failed (task 2 was silent for longer than the heartbeat timeout)"
        );
    }

    #[test]
    fn control_characters_of_a_bad_name_are_escaped() {
        let text = Fault::JobNameInvalid { name: "a\nb".into() }.text();
        assert!(text.starts_with("`a\\nb` is no job name"), "{text}");
    }
}
