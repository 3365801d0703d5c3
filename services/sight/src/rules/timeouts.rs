//! A job and its clients that disagree about time-outs.

use crate::Code;
use crate::facts::{Facts, Standing};
use crate::finding::{Finding, Sure, Where};
use crate::words::{age, tasks};

/// Clients round what they say, to three digits.
const SAME_WITHIN_PERCENT: u64 = 5;

pub(super) fn find(facts: &Facts) -> Option<Finding> {
    let own = facts.job.heartbeat_timeout_ms;
    let slower = |limit: u64| limit > own.saturating_add(own.saturating_mul(SAME_WITHIN_PERCENT) / 100);
    let all = (0_i32..).zip(&facts.tasks);
    let slow = all.filter(|(_, task)| task.standing == Standing::Connected && slower(task.silence_limit_ms));
    let slow: Vec<i32> = slow.map(|(number, _)| number).collect();
    let limit = slow.iter().filter_map(|task| facts.task(*task)).map(|task| task.silence_limit_ms).max()?;
    Some(Finding {
        code: Code::Timeouts,
        place: Where::Settings,
        sure: Sure::Certain,
        text: format!(
            "the job gives tasks up after {}; its clients send heartbeats every {}",
            age(own),
            age(limit / 2)
        ),
        since_ago_ms: None,
        lines: vec![(
            "effect".to_owned(),
            format!("nobody is given up before {}: {}", age(limit), tasks(&slow)),
        )],
        tasks: slow,
        parties: Vec::new(),
        next: vec![format!(
            "set the same time-out at both: `tripod job create --heartbeat-timeout {}`, or heartbeat_timeout_seconds={} in \
             jax.distributed.initialize",
            limit.div_ceil(1_000),
            own.div_ceil(1_000)
        )],
    })
}
