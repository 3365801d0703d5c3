//! Whether processes made their steps with the right ones.
//!
//! From the moment in which a process asks who is alive until the step is made it takes a while, in which others die and come
//! back. So the step's list must have everybody who lived all that time, and may have those besides who lived at some time of
//! it. What it may not have is a process that was dead all the time. Whoever it names has made the same step with the same list,
//! unless it died before it could say so. And no number of a step is lower than the last one.

use anyhow::{Result, ensure};

use super::history::{History, Life, Moment, Step};

/// Checks all steps that ended before `until`, and gives their number.
///
/// # Errors
/// Names the first step that is wrong, and why.
pub(super) fn check(histories: &[History], until: Moment) -> Result<usize> {
    let mut steps = 0;
    for (process, history) in histories.iter().enumerate() {
        let mut last = 0;
        for step in history.steps.iter().filter(|step| step.ended < until) {
            ensure!(step.number >= last, "process {process} made step {} after step {last}", step.number);
            last = step.number;
            for (other, of_other) in histories.iter().enumerate() {
                if let Some(wrong) = wrong(step, other, of_other) {
                    anyhow::bail!("process {process} made {step:?}, but process {other} {wrong}");
                }
            }
            ensure!(step.live.contains(&process), "process {process} made {step:?}, without itself");
            steps += 1;
        }
    }
    Ok(steps)
}

/// What contradicts a step in what another process, or the same one, did.
fn wrong(step: &Step, other: usize, of_other: &History) -> Option<&'static str> {
    if !step.live.contains(&other) {
        let lived = of_other.lives.iter().any(|life| life.covers(step));
        return lived.then_some("lived all the time");
    }
    let mut lives = of_other.lives.iter().enumerate().filter(|(_, life)| life.meets(step)).peekable();
    if lives.peek().is_none() {
        return Some("was dead all the time");
    }
    let same = |theirs: &&Step| theirs.number == step.number && theirs.live == step.live;
    let made = of_other.steps.iter().any(|theirs| same(&theirs));
    // A life that was killed may have made it and not said so; then it has said nothing later, either.
    let silent =
        |life: usize| !of_other.steps.iter().any(|theirs| theirs.life == life && theirs.ended > step.ended);
    let died = lives.any(|(place, life)| life.killed.is_some() && silent(place));
    (!made && !died).then_some("made no such step")
}

impl Life {
    /// It lived, and was registered, from before the list was asked for until after the step was made.
    fn covers(&self, step: &Step) -> bool {
        self.begun < step.asked && self.killed.is_none_or(|kill| kill.before > step.ended)
    }

    /// It lived at some time of the step.
    fn meets(&self, step: &Step) -> bool {
        self.begun <= step.ended && self.killed.is_none_or(|kill| kill.after >= step.asked)
    }
}

#[cfg(test)]
mod tests {
    use super::super::history::Kill;
    use super::*;

    /// Never killed, or at that time.
    fn life(begun: Moment, killed: Option<Moment>) -> Life {
        let killed = killed.map(|time| Kill { before: time, after: time + 0.1 });
        Life { pid: 1, begun, killed }
    }

    fn step(number: u64, live: &[usize], (asked, ended): (Moment, Moment), life: usize) -> Step {
        Step { number, live: live.iter().copied().collect(), asked, ended, life }
    }

    fn history(lives: Vec<Life>, steps: Vec<Step>) -> History {
        History { lives, steps, restarts: 0 }
    }

    /// Process 1 dies at 2.5, in the second step, which is made again without it, and is back for the next one.
    fn good() -> [History; 2] {
        let first = vec![
            step(0, &[0, 1], (1.0, 2.0), 0),
            step(1, &[0], (3.0, 4.0), 0),
            step(2, &[0, 1], (5.0, 7.0), 0),
        ];
        let second = vec![step(0, &[0, 1], (1.1, 2.1), 0), step(2, &[0, 1], (6.1, 7.1), 1)];
        [history(vec![life(0.5, None)], first), history(vec![life(0.6, Some(2.5)), life(6.0, None)], second)]
    }

    fn complaint(histories: &[History]) -> String {
        check(histories, 100.0).unwrap_err().to_string()
    }

    #[test]
    fn processes_that_die_and_come_back_in_the_middle_of_steps_are_no_contradiction() {
        assert_eq!(check(&good(), 100.0).unwrap(), 5);
        assert_eq!(check(&good(), 4.5).unwrap(), 3);
        // It was killed between the step and the word of it.
        let mut killed = good();
        killed[1].steps.remove(0);
        assert_eq!(check(&killed, 100.0).unwrap(), 4);
    }

    #[test]
    fn a_dead_process_in_a_list_is_found() {
        let mut histories = good();
        histories[0].steps[1].live.insert(1);
        assert!(complaint(&histories).contains("process 1 was dead all the time"));
    }

    #[test]
    fn a_living_process_that_was_left_out_is_found() {
        let mut histories = good();
        histories[1].lives[1].begun = 4.9;
        histories[0].steps[2].live.remove(&1);
        assert!(complaint(&histories).contains("process 1 lived all the time"));
    }

    #[test]
    fn a_step_that_others_did_not_make_is_found() {
        let mut histories = good();
        histories[1].steps[1].number = 3;
        assert!(complaint(&histories).contains("process 1 made no such step"));
        let mut histories = good();
        histories[1].steps.pop();
        assert!(complaint(&histories).contains("process 1 made no such step"));
    }

    #[test]
    fn steps_that_go_back_and_steps_without_oneself_are_found() {
        let mut histories = good();
        histories[0].steps[2].number = 0;
        assert!(complaint(&histories).contains("made step 0 after step 1"));
        let alone = [history(vec![life(3.5, None)], vec![step(1, &[], (3.0, 4.0), 0)])];
        assert!(complaint(&alone).contains("without itself"));
    }
}
