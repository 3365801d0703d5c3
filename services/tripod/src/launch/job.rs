//! The job of a program: created on first use, and checked to be the one that is meant.

use tripod_client::{Client, Error, wire};
use tripod_proto::code::Code;

use crate::args::job_flags::JobFlags;
use crate::failure::Failure;
use crate::launch::numbers;

/// A job that its tasks can come to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Settled {
    pub(crate) tasks: u32,
    /// What the user should know of it.
    pub(crate) note: Option<String>,
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
    if let Some(job) = client.jobs().get(name).await? {
        return settled(&job, tasks);
    }
    let asked = tasks.ok_or_else(|| numbers::no_size(name))?;
    match client.jobs().create(name, &flags.to_wire(asked)?).await {
        Ok(job) => settled(&job, tasks),
        // Another task of the job may have been faster, or this one, whose answer was lost.
        Err(error) if !matches!(error, Error::Config(_) | Error::Unavailable { .. }) => {
            match client.jobs().get(name).await? {
                Some(job) => settled(&job, tasks),
                None => Err(error.into()),
            }
        }
        Err(error) => Err(error.into()),
    }
}

fn settled(job: &wire::Job, asked: Option<u32>) -> Result<Settled, Failure> {
    let (name, is) = (&job.name, job.spec.as_ref().map_or(0, |spec| spec.tasks));
    match asked {
        Some(asked) if asked != is => Err(Failure::new(
            Code::JobDiffers,
            format!(
                "job `{name}` has {is} tasks, not {asked}; look at it with `tripod job show {name}`, give this run \
                 another --job, or, if nobody needs it any more, `tripod job delete {name}`"
            ),
        )),
        _ => Ok(Settled { tasks: is, note: left_over(job) }),
    }
}

/// Clients write most of their keys once, and a task that has failed stays so: what an earlier run has left
/// makes the next one fail with errors that do not say why.
fn left_over(job: &wire::Job) -> Option<String> {
    let used = job.keys > 0 || job.tasks_in_error > 0;
    (used && job.tasks_connected == 0).then(|| {
        let name = &job.name;
        format!(
            "job `{name}` has {} keys, {} tasks in error and nobody is there: if an earlier run has left them, \
             end this one, and give it another --job or `tripod job delete {name}` first",
            job.keys, job.tasks_in_error
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
        assert_eq!(settled(&job(4), None).expect("any size"), Settled { tasks: 4, note: None });
        assert_eq!(settled(&job(4), Some(4)).expect("the same").tasks, 4);
        let text = settled(&job(4), Some(3)).expect_err("refused").to_string();
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
        let note = |job| settled(&job, None).expect("exists").note;
        let used = wire::Job { keys: 9, ..job(2) };
        let text = note(used.clone()).expect("told");
        assert!(text.starts_with("job `t` has 9 keys, 0 tasks in error and nobody is there"), "{text}");
        assert!(note(wire::Job { tasks_in_error: 1, ..job(2) }).is_some());
        assert_eq!(note(wire::Job { tasks_connected: 1, ..used }), None, "it runs");
    }
}
