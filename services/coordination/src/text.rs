//! The exact texts of the protocol, as openxla/xla writes them. Tools and people grep for them, and
//! clients show them, so a letter's difference is a defect.
//!
//! Texts of refusals that upstream does not know are ours and say what to do. What no call of these protocols asks for is
//! told in the plain words of the state machine.

mod barrier;

use tripod_state::ids::{Incarnation, JobName, TaskId};
use tripod_state::{Asked, Fault};

use crate::l;
use crate::names::Voice;
use crate::status::Rendered;

/// At most this many silent tasks are named.
const UNHEALTHY_SHOWN_MAX: usize = 3;

const REPLACED: &str = "Aborted connect attempt as there is a request from a newer incarnation.";
const REPORTER_NOT_CONNECTED: &str = "The task is not connected or already has an error.";
const REPORT_WITHOUT_CODE: &str = "an error report needs a code other than OK";
const SESSION_EXPIRED: &str = "the session is unknown or closed; open a new one";
const STAMP_REUSED: &str = "this sequence number was used for another command";
const REPLY_FORGOTTEN: &str = "this sequence number was used and its reply is forgotten";

/// The message of a refusal.
pub(crate) fn of(fault: &Fault, voice: Voice<'_>) -> String {
    let nested = |fault: &Fault| Rendered::of(fault, voice).print(voice);
    let name = |task: &TaskId| voice.task(*task);
    match fault {
        Fault::JobUnknown { name } => job_unknown(name.as_ref()),
        Fault::ServiceMismatch { requested, current } => {
            format!("wrong service incarnation: requested {requested}, currently {current}")
        }
        Fault::TaskUnknown { task, asked } => task_unknown(*task, *asked, voice),
        Fault::RegistrationReplaced => REPLACED.to_owned(),
        Fault::RegisteredInError { task, existing } => registered_in_error(&name(task), &nested(existing)),
        Fault::Restarted { task } => restarted(&name(task)),
        Fault::RegistrationFailed { cause } => {
            format!("Cluster registration failed with error: {}", nested(cause))
        }
        Fault::BeatInError { task, existing } => beat_in_error(&name(task), &nested(existing)),
        Fault::BeatUnregistered { task } => beat_unregistered(&voice.labelled(*task)),
        Fault::BeatOfOtherLife { task, expected, got } => beat_of_other_life(&name(task), *expected, *got),
        Fault::HeartbeatTimeout { task } => heartbeat_timeout(&name(task)),
        Fault::TasksUnhealthy { tasks } => tasks_unhealthy(tasks, voice),
        Fault::AlreadyDisconnected { task } => format!("The task is already disconnected: {}", name(task)),
        Fault::ReporterNotConnected => REPORTER_NOT_CONNECTED.to_owned(),
        Fault::ReportWithoutCode => REPORT_WITHOUT_CODE.to_owned(),
        Fault::Reported { message, .. } => message.clone(),
        Fault::Unheard { cause } => unheard(&nested(cause)),
        // Upstream opens a quote that it never closes.
        Fault::ShutdownFailed { cause } => {
            format!("Shutdown barrier has failed.\nBarrier result: '{}", nested(cause))
        }
        Fault::PollUnregistered { task } => poll_unregistered(&name(task)),
        Fault::PollInError { task, existing } => poll_in_error(&name(task), &nested(existing)),
        Fault::PollReplaced => poll_cancelled("new request from the same task"),
        Fault::PollerLeft => poll_cancelled("task has disconnected."),
        Fault::PollReleased => poll_cancelled("errors of this job are told by heartbeat."),
        Fault::Barrier { barrier, counter, fault } => barrier::of(barrier, *counter, fault, voice),
        Fault::ArrivalReplaced { barrier, counter } => barrier::replaced(barrier, *counter),
        Fault::KeyExists { key } => format!("key {key} already exists."),
        Fault::KeyMissing { asked } => format!("Config key {asked} not found."),
        Fault::NotAnInteger { value } => format!("Failed to parse value \"{value}\" as an integer."),
        Fault::IncrementOverflow { value, increment } => {
            format!("the sum of {value} and {increment} does not fit a 64-bit integer")
        }
        Fault::VersionMismatch { key, expected, current } => {
            format!("key {key} has version {current}, not {expected}")
        }
        Fault::NotInAliveSet { task } => not_in_alive_set(&name(task)),
        Fault::VersionAhead { asked, current } => {
            format!("version {asked} of the task states does not exist yet, the current one is {current}")
        }
        Fault::JobExists { name } => format!("job {name} already exists"),
        Fault::JobNameInvalid { name } => format!("{name:?} is not a job name"),
        Fault::JobSpecInvalid { field, reason } => format!("job parameter {field}: {reason}"),
        Fault::JobSlotsTaken { slots } => format!("all {slots} job ports are taken; delete a job"),
        Fault::Runtime(refusal) => l::status::text(refusal),
        Fault::SessionExpired => SESSION_EXPIRED.to_owned(),
        Fault::StampReused => STAMP_REUSED.to_owned(),
        Fault::ReplyForgotten => REPLY_FORGOTTEN.to_owned(),
        Fault::SessionWindow { limit } => {
            format!("more than {limit} commands of a session are unacknowledged")
        }
        Fault::LimitExceeded { what, limit, actual } => format!("{what}: {actual} exceeds the limit {limit}"),
        other => other.text(),
    }
}

fn job_unknown(name: Option<&JobName>) -> String {
    match name {
        Some(name) => format!(
            "job {name} does not exist; create it with: tripod job create {name} --tasks NUMBER_OF_TASKS"
        ),
        None => "the job does not exist or was deleted; create it with: \
                 tripod job create NAME --tasks NUMBER_OF_TASKS"
            .to_owned(),
    }
}

fn task_unknown(task: TaskId, asked: Asked, voice: Voice<'_>) -> String {
    let labelled = voice.labelled(task);
    let task = voice.task(task);
    match asked {
        Asked::Register => format!("Unexpected task registered with {labelled}"),
        Asked::Heartbeat => format!(
            "Unexpected heartbeat request from task: {task}. This usually implies a configuration error."
        ),
        Asked::Disconnect => format!("Unexpected disconnect request with {labelled}"),
        Asked::Report => format!("Unexpected request from task {task}"),
        Asked::Poll => {
            format!("Unexpected task ({task}) that is not in the cluster polling for errors.")
        }
        // Upstream's service crashes on an unknown task here.
        Asked::State => format!("Unexpected task ({task}) that is not in the cluster."),
    }
}

fn registered_in_error(task: &str, existing: &str) -> String {
    format!(
        "{task} unexpectedly tried to connect while it is already in error. ResetTask() should be \
         called before a subsequent connect attempt. Existing error: {existing}"
    )
}

fn restarted(task: &str) -> String {
    format!("{task} unexpectedly tried to connect with a different incarnation. It has likely restarted.")
}

fn beat_in_error(task: &str, existing: &str) -> String {
    format!(
        "Unexpected heartbeat request from an already-in-error task: {task} with existing error: {existing}"
    )
}

fn beat_unregistered(labelled: &str) -> String {
    format!(
        "Task with {labelled} must be registered before sending heartbeat messages. The service \
         might have restarted, please restart / reset and register again."
    )
}

fn beat_of_other_life(task: &str, expected: Incarnation, got: Incarnation) -> String {
    format!(
        "{task} Heartbeat: Incarnation ID mismatch: expecting {expected} but got {got}. The task has \
         restarted and likely crashed earlier - check for any earlier errors or any scheduler events \
         (e.g. preemption, eviction) to debug further."
    )
}

fn heartbeat_timeout(task: &str) -> String {
    format!(
        "Task {task} heartbeat timeout. This indicates that the remote task has failed, got preempted, \
         or crashed unexpectedly. Check the task logs for an earlier error or scheduler events (e.g. \
         preemption, eviction) to debug further."
    )
}

fn tasks_unhealthy(tasks: &[TaskId], voice: Voice<'_>) -> String {
    let shown: Vec<String> = tasks.iter().take(UNHEALTHY_SHOWN_MAX).map(|task| voice.task(*task)).collect();
    format!(
        "The following tasks are unhealthy (stopped sending heartbeats):\n{}\nThe tasks have crashed. \
         Check the task logs for an earlier error, or scheduler events (e.g. preemption, eviction) to \
         debug further.",
        shown.join("\n")
    )
}

fn unheard(cause: &str) -> String {
    format!(
        "All tasks were set to error because coordination service encountered an error, but was unable \
         to inform clients. Error: {cause}"
    )
}

fn poll_unregistered(task: &str) -> String {
    format!("Task ({task}) that has not been registered or has disconnected polling for errors.")
}

fn poll_in_error(task: &str, existing: &str) -> String {
    format!("Task ({task}) that is already in error state polling for errors. Current error: {existing}")
}

/// Begins why polling is over without an error.
pub(crate) const POLL_OVER: &str = "Cancelled error polling because: ";

/// Why polling is over without an error.
pub(crate) fn poll_cancelled(reason: &str) -> String {
    format!("{POLL_OVER}{reason}")
}

fn not_in_alive_set(task: &str) -> String {
    format!("Requesting task {task} is not one of the tasks specified in a GetAliveTasks request.")
}
