//! Tasks whose processes do not run, as whoever started them says.

use crate::Code;
use crate::facts::{Facts, Held, HeldState, Standing};
use crate::finding::{Finding, Sure, Where};
use crate::rules::late;
use crate::words::{age, plain, ranges};

const LINES_MAX: usize = 4;

/// `late`: tasks that were not heard in time. A process that is stopped for long is told before it is late; one that waits for a
/// disk is not, since that is what processes do.
pub(super) fn find(facts: &Facts, late: &[i32]) -> Vec<Finding> {
    let of_state = |state: HeldState| {
        let all = (0_i32..).zip(&facts.tasks).filter(|(_, task)| task.standing == Standing::Connected);
        let held = all.filter_map(|(number, task)| Some((number, task.held.as_ref()?)));
        let counts = |number: i32, held: &Held| {
            let is_long = state == HeldState::Stopped && held.since_ago_ms > facts.patience.wait_ms;
            held.state == state && (is_long || late.binary_search(&number).is_ok())
        };
        held.filter(|&(number, held)| counts(number, held)).map(|(number, _)| number).collect::<Vec<i32>>()
    };
    let found = [HeldState::Stopped, HeldState::Disk].map(|state| (state, of_state(state)));
    found.into_iter().filter(|(_, who)| !who.is_empty()).map(|(state, who)| told(facts, state, who)).collect()
}

fn told(facts: &Facts, state: HeldState, who: Vec<i32>) -> Finding {
    let held = |task: i32| facts.task(task).and_then(|task| task.held.as_ref());
    let since = who.iter().filter_map(|task| held(*task)).map(|held| held.since_ago_ms).max();
    let does = match state {
        HeldState::Stopped => "stopped (state T)",
        HeldState::Disk => "waiting in the kernel (state D), for a disk as a rule",
    };
    let processes = match &who[..] {
        [task] => format!("the process of task {task} is"),
        tasks => format!("the processes of tasks {} are", ranges(tasks)),
    };
    let line = |task: &i32| {
        let (label, text) = late::line(facts, *task);
        let place = held(*task).map(|held| held.waits_in.as_str()).filter(|waits_in| !waits_in.is_empty());
        let place = place.map_or_else(String::new, |place| format!(" in {}", plain(place)));
        let since = held(*task).map_or(0, |held| held.since_ago_ms);
        (label, format!("{text}  so{place} for {}", age(since)))
    };
    let first = who[0];
    let found = facts.task(first);
    let pid = found.map(|found| found.origin.pid).filter(|pid| *pid != 0);
    let pid = pid.map_or_else(|| "PID".to_owned(), |pid| pid.to_string());
    let host = found.map(|found| found.host.as_str()).filter(|host| !host.is_empty());
    let host = host.map_or_else(|| "its host".to_owned(), plain);
    let next = match state {
        HeldState::Stopped => format!(
            "on {host}: kill -CONT {pid}; who stopped it: a debugger, the cgroup freezer, `scontrol suspend`"
        ),
        HeldState::Disk => {
            format!("on {host}: look at the file systems that process {pid} uses; cat /proc/{pid}/stack")
        }
    };
    Finding {
        code: Code::Frozen,
        place: Where::Host,
        sure: Sure::Certain,
        text: format!("{processes} {does}, as whoever started it says"),
        since_ago_ms: since,
        lines: who.iter().take(LINES_MAX).map(line).collect(),
        tasks: who,
        parties: Vec::new(),
        next: vec![next],
    }
}
