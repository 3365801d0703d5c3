//! A task that another process is already: two of them would take each other's place.

use std::time::Duration;

use tokio::time::Instant;
use tripod_backoff::Backoff;
use tripod_client::{Client, wire};
use tripod_proto::code::Code;

use crate::failure::Failure;
use crate::operator;
use crate::output;
use crate::view::time;

/// Between looks at the job: where a whole gang is begun again all of its tasks wait, and each look tells all of them.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(5));
/// Beyond the time that a process may be silent: who is given up is given up by a decision that takes time, too.
const MARGIN: Duration = Duration::from_secs(5);

/// Waits until no process is the task. One that has died without a word is given up after the time that it may be silent;
/// one that is still there after it lives.
///
/// # Errors
/// It lives: both hosts are named. Or nobody could be asked.
pub(super) async fn wait(client: &Client, job: &str, task: u32, say: impl Fn(&str)) -> Result<(), Failure> {
    let Some(first) = connected(client, job, task).await? else { return Ok(()) };
    let limit = Duration::from_millis(first.silence_limit_ms) + MARGIN;
    say(&waiting(job, &first, limit));
    let (begun, mut backoff) = (Instant::now(), BACKOFF);
    while begun.elapsed() < limit {
        backoff.rest().await;
        match connected(client, job, task).await? {
            None => return Ok(()),
            Some(other) if other.incarnation != first.incarnation => return Err(taken(job, &other)),
            Some(_) => {}
        }
    }
    Err(taken(job, &first))
}

async fn connected(client: &Client, job: &str, task: u32) -> Result<Option<wire::TaskState>, Failure> {
    let job = client.jobs().get(job).await?;
    let is_it = |state: &wire::TaskState| {
        state.state == "connected" && u32::try_from(state.task_id).is_ok_and(|id| id == task)
    };
    Ok(job.into_iter().flat_map(|job| job.tasks).find(is_it))
}

fn waiting(job: &str, other: &wire::TaskState, limit: Duration) -> String {
    let limit = time::seconds(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
    format!(
        "task {} of job `{job}` is connected already, by a process {}; waiting for up to {limit}, as it may have died",
        other.task_id,
        place(other)
    )
}

fn taken(job: &str, other: &wire::TaskState) -> Failure {
    let here = operator::host().unwrap_or_else(|| "this host".to_owned());
    Failure::new(
        Code::TaskTaken,
        format!(
            "task {} of job `{job}` lives: its process runs {}, and this would be another one, on {here}; give this one its \
             own --task-id or --job, or end that one first; who is who: `tripod job show {job}`",
            other.task_id,
            place(other)
        ),
    )
}

fn place(other: &wire::TaskState) -> String {
    if other.host.is_empty() {
        "on a host that nobody has told".to_owned()
    } else {
        format!("on {}", output::text(&other.host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_hosts_are_named() {
        let other = wire::TaskState { task_id: 3, host: "gpu-7".into(), ..Default::default() };
        let text = taken("t", &other).to_string();
        let told = "T6108 task-taken: task 3 of job `t` lives: its process runs on gpu-7, and this would be another one, on ";
        assert!(text.starts_with(told), "{text}");
        assert!(text.contains(&operator::host().expect("machines have names")), "{text}");
        let hostile = wire::TaskState { host: "\u{1b}[2J".into(), ..other.clone() };
        assert!(
            !taken("t", &hostile).to_string().contains('\u{1b}'),
            "whoever names a host clears no screen"
        );
        let unknown = wire::TaskState { host: String::new(), ..other };
        let text = waiting("t", &unknown, Duration::from_secs(15));
        let told = "task 3 of job `t` is connected already, by a process on a host that nobody has told; waiting for up to \
            15 s, as it may have died";
        assert_eq!(text, told);
    }
}
