//! The job of a program: created on first use, and checked to be the one that is meant.

use tripod_client::{Client, Error, wire};
use tripod_proto::code::Code;

use crate::args::job_flags::JobFlags;
use crate::args::seconds::Seconds;
use crate::failure::Failure;
use crate::launch::numbers;
use crate::view::{count, time};

/// A job that its tasks can come to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Settled {
    pub(crate) tasks: u32,
    /// Whether a task that was lost may come back.
    pub(crate) takes_lives: bool,
    /// Its tasks are numbered through these; none: they have numbers alone.
    pub(crate) groups: Vec<wire::TaskGroup>,
    /// What the user should know of it.
    pub(crate) notes: Vec<String>,
}

/// Finds the job, or creates it.
///
/// # Errors
/// It exists with another number of tasks than `tasks`, or does not exist and nobody knows how many it is
/// to have, or is refused; or no node could be reached.
pub(crate) async fn settle(
    client: &Client,
    name: &str,
    tasks: Option<u32>,
    flags: &JobFlags,
) -> Result<Settled, Failure> {
    let wanted_ms = flags.heartbeat_timeout.map(Seconds::milliseconds);
    if let Some(job) = client.jobs().get(name).await? {
        return settled(&job, tasks, wanted_ms);
    }
    let asked = tasks.ok_or_else(|| numbers::no_size(name))?;
    match client.jobs().create(name, &flags.to_wire(asked)?).await {
        Ok(job) => settled(&job, tasks, wanted_ms),
        // Another task of the job may have been faster, or this one, whose answer was lost.
        Err(error) if !matches!(error, Error::Config(_) | Error::Unavailable { .. }) => {
            match client.jobs().get(name).await? {
                Some(job) => settled(&job, tasks, wanted_ms),
                None => Err(error.into()),
            }
        }
        Err(error) => Err(error.into()),
    }
}

/// `wanted_ms` is the heartbeat timeout that was asked for.
fn settled(job: &wire::Job, asked: Option<u32>, wanted_ms: Option<u64>) -> Result<Settled, Failure> {
    let (name, is) = (&job.name, job.spec.as_ref().map_or(0, |spec| spec.tasks));
    match asked {
        Some(asked) if asked != is => Err(Failure::new(
            Code::JobDiffers,
            format!(
                "job `{name}` has {}, not {asked}; look at it with `tripod job show {name}`, give this run \
                 another --job, or, if nobody needs it any more, `tripod job delete {name}`",
                count(is, "task")
            ),
        )),
        _ => Ok(Settled {
            tasks: is,
            takes_lives: job.spec.as_ref().is_some_and(|spec| spec.recoverable || spec.reconnect),
            groups: job.spec.as_ref().map(|spec| spec.groups.clone()).unwrap_or_default(),
            notes: left_over(job)
                .into_iter()
                .chain(wanted_ms.and_then(|ms| other_timeout(job, ms)))
                .collect(),
        }),
    }
}

/// A job is as its first task has created it.
fn other_timeout(job: &wire::Job, wanted_ms: u64) -> Option<String> {
    let is_ms = job.spec.as_ref()?.heartbeat_timeout_ms;
    (is_ms != wanted_ms).then(|| {
        format!(
            "job `{}` gives up a task after {}, as it was created, and not after {} as --heartbeat-timeout says here",
            job.name,
            time::seconds(is_ms),
            time::seconds(wanted_ms)
        )
    })
}

/// Clients write most of their keys once, and a task that has failed stays so: what an earlier run has left
/// makes the next one fail with errors that do not say why.
fn left_over(job: &wire::Job) -> Option<String> {
    let used = job.keys > 0 || job.tasks_in_error > 0;
    (used && job.tasks_connected == 0).then(|| {
        let name = &job.name;
        format!(
            "job `{name}` has {}, {} in error and nobody is there: if an earlier run has left them, \
             end this one, and give it another --job or `tripod job delete {name}` first",
            count(job.keys, "key"),
            count(job.tasks_in_error, "task")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(tasks: u32) -> wire::Job {
        let spec = wire::JobSpec { tasks, ..Default::default() };
        wire::Job { name: "t".into(), spec: Some(spec), ..Default::default() }
    }

    #[test]
    fn a_job_of_another_size_is_not_the_one_that_is_meant() {
        let four = Settled { tasks: 4, takes_lives: false, groups: Vec::new(), notes: Vec::new() };
        assert_eq!(settled(&job(4), None, None).expect("any size"), four);
        assert_eq!(settled(&job(4), Some(4), None).expect("the same").tasks, 4);
        let text = settled(&job(4), Some(3), None).expect_err("refused").to_string();
        assert!(
            text.starts_with(
                "T6106 job-differs: job `t` has 4 tasks, not 3; look at it with `tripod job show t`"
            ),
            "{text}"
        );
        assert!(text.ends_with("`tripod job delete t`"), "{text}");
    }

    #[test]
    fn what_an_earlier_run_has_left_is_told() {
        let note = |job| settled(&job, None, None).expect("exists").notes.pop();
        let used = wire::Job { keys: 9, ..job(2) };
        let text = note(used.clone()).expect("told");
        assert!(text.starts_with("job `t` has 9 keys, 0 tasks in error and nobody is there"), "{text}");
        assert!(note(wire::Job { tasks_in_error: 1, ..job(2) }).is_some());
        assert_eq!(note(wire::Job { tasks_connected: 1, ..used }), None, "it runs");
    }

    #[test]
    fn n1_a_timeout_that_comes_too_late_is_told() {
        let spec = wire::JobSpec { tasks: 2, heartbeat_timeout_ms: 100_000, ..Default::default() };
        let job = wire::Job { spec: Some(spec), ..job(2) };
        assert_eq!(settled(&job, None, Some(100_000)).expect("exists").notes, Vec::<String>::new());
        let told = "job `t` gives up a task after 100 s, as it was created, and not after 10 s as \
            --heartbeat-timeout says here";
        assert_eq!(settled(&job, None, Some(10_000)).expect("exists").notes, [told]);
    }
}
