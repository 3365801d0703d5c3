//! What the job is told of the end of a program, and what becomes of that.

use clap::ValueEnum;
use tripod_client::{Error, wire};

/// What the job is told when the program has ended without leaving it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportExit {
    /// How it ended, and the last that it wrote to its standard error, if that is known
    On,
    /// How it ended
    Status,
    /// Nothing: the others miss it when it has been silent for too long
    Off,
}

/// The reason word of a task whose process has ended, as whoever started it has said.
const ENDED: &str = "task-ended";
/// Nobody says what became of it.
const UNKNOWN: &str = "may have been told: nobody could be asked";

/// What the other tasks were told, for people. `after`: the job as it is now that it was told.
pub(super) fn what_others_were_told(
    report: ReportExit,
    was_told: bool,
    after: Result<&Option<wire::Job>, &Error>,
    task: u32,
) -> String {
    if report == ReportExit::Off {
        return "were told nothing, by --report-exit off: they miss it when it has been silent for too long"
            .to_owned();
    }
    if !was_told {
        return "were told nothing yet: the cluster does not answer, and is told when it does, for 5 min at most".to_owned();
    }
    let Ok(Some(job)) = after else { return UNKNOWN.to_owned() };
    let is_it = |state: &&wire::TaskState| u32::try_from(state.task_id).is_ok_and(|id| id == task);
    let Some(own) = job.tasks.iter().find(is_it) else { return UNKNOWN.to_owned() };
    let recoverable = job.spec.as_ref().is_some_and(|spec| spec.recoverable);
    match (own.state.as_str(), own.reason.as_str()) {
        ("error", ENDED) if recoverable => "were told nothing: tasks of this job may come back".to_owned(),
        ("error", ENDED) => format!("were told at once: {}", own.error),
        ("error", _) => "were told nothing more: this task had failed before its program ended".to_owned(),
        ("connected", _) => "were told nothing: another process is this task by now".to_owned(),
        _ if own.standing == "left" => "were told nothing: this task had left its job before".to_owned(),
        _ => "were told nothing: this task had not registered, and they wait for it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(state: &str, reason: &str, standing: &str) -> String {
        let own = wire::TaskState {
            task_id: 1,
            state: state.into(),
            reason: reason.into(),
            standing: standing.into(),
            error: "the process of task 1 was ended by SIGKILL".into(),
            ..Default::default()
        };
        let job = Some(wire::Job { tasks: vec![own], ..Default::default() });
        what_others_were_told(ReportExit::On, true, Ok(&job), 1)
    }

    #[test]
    fn what_the_others_were_told_depends_on_where_the_task_stood() {
        assert_eq!(
            told("error", ENDED, "ended"),
            "were told at once: the process of task 1 was ended by SIGKILL"
        );
        assert!(told("error", "task-error", "error").contains("had failed before"));
        assert!(told("connected", "", "connected").contains("another process"));
        assert!(told("disconnected", "", "left").contains("had left"));
        assert!(told("disconnected", "", "never-came").contains("had not registered"));
    }

    #[test]
    fn that_nobody_was_told_is_said_with_its_reason() {
        let off = what_others_were_told(ReportExit::Off, false, Ok(&None), 1);
        assert!(off.contains("--report-exit off"), "{off}");
        let away = what_others_were_told(ReportExit::Status, false, Ok(&None), 1);
        assert!(away.contains("the cluster does not answer"), "{away}");
        assert_eq!(what_others_were_told(ReportExit::On, true, Ok(&None), 1), UNKNOWN);
    }
}
