//! A task that beats is never declared dead; a silent one is, in time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tripod_raft::SeenMembers;
use tripod_state::ids::NodeId;

use super::incarnation_fencing::Task;
use super::one_membership::decides;
use crate::observation::SimTime;

/// Between the moment at which the leader finds a task silent and the one at which a node is seen to hold it
/// for dead, while commands are committed at all.
const DECLARED_WITHIN_MS: u64 = 1500;
/// What a new leader adds to every timeout.
const GRACE_MS: u64 = 2000;

/// What is known of the tasks.
#[derive(Debug, Default)]
pub(crate) struct HeartbeatRule {
    tasks: BTreeMap<Task, Known>,
}

#[derive(Debug, Default)]
struct Known {
    timeout_ms: u64,
    /// Beats that the leader itself acknowledged: when they were sent, and through which node.
    beats: VecDeque<(SimTime, NodeId)>,
    dead: Option<SimTime>,
    /// By when it must be dead, if it has been silent since then.
    due: Option<SimTime>,
}

impl HeartbeatRule {
    /// A task that will beat.
    pub(crate) fn task(&mut self, task: &Task, timeout_ms: u64) {
        self.tasks.insert(task.clone(), Known { timeout_ms, ..Known::default() });
    }

    /// A beat that was sent at `sent` was acknowledged through `node`, on the leader's word.
    pub(crate) fn beat(&mut self, task: &Task, node: NodeId, sent: SimTime) {
        let Some(known) = self.tasks.get_mut(task) else { return };
        known.beats.push_back((sent, node));
        while known.beats.front().is_some_and(|(at, _)| sent.since_ms(*at) > known.timeout_ms) {
            known.beats.pop_front();
        }
    }

    /// A task was first seen to be dead, for want of heartbeats. `stalled`: nothing could be committed for a
    /// while, so the decision may be old. `members`: as listed last.
    ///
    /// One node may have asked a leader that is none any more; a majority of the voters cannot have.
    pub(crate) fn dead(
        &mut self,
        task: &Task,
        at: SimTime,
        stalled: bool,
        members: &SeenMembers,
    ) -> Result<(), String> {
        let Some(known) = self.tasks.get_mut(task) else { return Ok(()) };
        known.dead.get_or_insert(at);
        if stalled {
            return Ok(());
        }
        let heard = |sent: SimTime| sent.0 + known.timeout_ms > at.0 && sent.0 + DECLARED_WITHIN_MS <= at.0;
        let nodes: BTreeSet<NodeId> =
            known.beats.iter().filter(|(sent, _)| heard(*sent)).map(|(_, node)| *node).collect();
        if !decides(members, &nodes) {
            return Ok(());
        }
        let last = known.beats.iter().rfind(|(sent, _)| heard(*sent)).map(|(sent, _)| *sent);
        Err(format!(
            "task {} of job {} is dead at {at}, but beat at {} and has {} ms",
            task.1,
            task.0,
            last.unwrap_or_default(),
            known.timeout_ms
        ))
    }

    /// The task is silent since `since`, and nothing disturbs the cluster any more.
    pub(crate) fn silent(&mut self, task: &Task, since: SimTime) {
        let Some(known) = self.tasks.get_mut(task) else { return };
        known.due = Some(SimTime(since.0 + known.timeout_ms + GRACE_MS + DECLARED_WITHIN_MS));
    }

    /// Whether the task was seen to be dead.
    pub(crate) fn is_dead(&self, task: &Task) -> bool {
        self.tasks.get(task).is_some_and(|known| known.dead.is_some())
    }

    /// The simulation ends.
    pub(crate) fn end(&self) -> Result<(), String> {
        for ((job, task), known) in &self.tasks {
            let Some(due) = known.due else { continue };
            if known.dead.is_none_or(|dead| dead > due) {
                let dead = known.dead.map_or("never was".to_owned(), |dead| format!("was only at {dead}"));
                return Err(format!("silent task {task} of job {job} should be dead by {due}, and {dead}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule() -> (HeartbeatRule, Task) {
        let mut rule = HeartbeatRule::default();
        let task = ("gang".to_owned(), 1);
        rule.task(&task, 4000);
        (rule, task)
    }

    fn voters(voters: &[u64]) -> SeenMembers {
        let voters: BTreeSet<_> = voters.iter().copied().map(NodeId).collect();
        SeenMembers { nodes: voters.clone(), sets: vec![voters] }
    }

    #[test]
    fn a_beating_task_that_is_declared_dead_is_noticed() {
        let (mut rule, task) = rule();
        rule.beat(&task, NodeId(1), SimTime(10_000));
        let three = voters(&[1, 2, 3]);
        assert_eq!(rule.dead(&task, SimTime(12_000), false, &three), Ok(()), "one node may be cut off");
        rule.beat(&task, NodeId(2), SimTime(10_300));
        let other = voters(&[2, 4, 5]);
        assert_eq!(rule.dead(&task, SimTime(12_000), false, &other), Ok(()), "one of these may be, too");
        let broken = rule.dead(&task, SimTime(12_000), false, &three).unwrap_err();
        assert!(broken.contains("is dead at 12.000 s, but beat at 10.300 s and has 4000 ms"), "{broken}");
        assert_eq!(rule.dead(&task, SimTime(12_000), true, &three), Ok(()), "the decision may be old");
        assert_eq!(rule.dead(&task, SimTime(14_300), false, &three), Ok(()), "its time was up");
    }

    #[test]
    fn beats_that_came_with_the_decision_do_not_count() {
        let (mut rule, task) = rule();
        rule.beat(&task, NodeId(1), SimTime(11_000));
        rule.beat(&task, NodeId(2), SimTime(11_300));
        assert_eq!(rule.dead(&task, SimTime(12_000), false, &voters(&[1, 2, 3])), Ok(()));
    }

    #[test]
    fn a_silent_task_that_lives_on_is_noticed() {
        let (mut rule, task) = rule();
        rule.silent(&task, SimTime(20_000));
        assert!(rule.end().unwrap_err().ends_with("should be dead by 27.500 s, and never was"));
        rule.dead(&task, SimTime(25_000), false, &voters(&[1])).unwrap();
        assert_eq!(rule.end(), Ok(()));
    }

    #[test]
    fn a_silent_task_that_is_found_out_too_late_is_noticed() {
        let (mut rule, task) = rule();
        rule.silent(&task, SimTime(20_000));
        rule.dead(&task, SimTime(27_501), false, &voters(&[1, 2, 3])).unwrap();
        assert!(rule.end().unwrap_err().ends_with("and was only at 27.501 s"));
    }
}
