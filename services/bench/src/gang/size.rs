//! How large a gang of played agents is, and what cannot be.

use std::ops::Range;
use std::time::Duration;

use anyhow::ensure;
use tripod_load::agents::AGENTS_MAX;

use super::Amounts;
use crate::stats::Goal;

/// Tasks of a job, as nodes allow them.
const TASKS_MAX: u32 = 1_000_000;
/// Tasks behind one agent: a node follows no more of one connection that have registered and not beaten yet.
const TASKS_AN_AGENT_MAX: u32 = 1_024;
/// Open files besides one for each agent: of a node 256 for itself and one for each of 100 job ports.
const FILES_BESIDE: u64 = 512;
/// How long tasks may only beat.
const BEATING_MAX_S: f64 = 3_600.0;
/// Up to so many tasks a gang is of the usual size; beyond, large.
const USUAL_MAX: u32 = 10_000;

/// What is played.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Size {
    pub(super) tasks: u32,
    pub(super) agents: u32,
    /// Whether the leader dies in each phase of a second gang.
    pub(super) kills: bool,
    pub(super) beating: Duration,
    pub(super) heartbeat_timeout: Duration,
    /// Whether tasks of one agent beat at different times.
    pub(super) beats_apart: bool,
}

impl Size {
    /// `None`: nothing is played.
    ///
    /// # Errors
    /// There can be no such gang; the text says why.
    pub(super) fn of(amounts: Amounts) -> anyhow::Result<Option<Self>> {
        let (Some(tasks), Some(agents)) = (amounts.tasks, amounts.agents) else { return Ok(None) };
        ensure!(
            (1..=TASKS_MAX).contains(&tasks),
            "a job has 1 to {TASKS_MAX} tasks, not {tasks}; next: another --tasks"
        );
        ensure!(
            (1..=AGENTS_MAX).contains(&agents),
            "1 to {AGENTS_MAX} agents can be played, not {agents}; next: another --agents"
        );
        ensure!(
            agents <= tasks,
            "{agents} agents are more than {tasks} tasks, and one without a task does nothing; next: --agents {tasks} or less"
        );
        let each = tasks.div_ceil(agents);
        ensure!(
            each <= TASKS_AN_AGENT_MAX,
            "{each} tasks behind one agent are more than {TASKS_AN_AGENT_MAX}, for which nodes are made; next: --agents {} or \
             more",
            tasks.div_ceil(TASKS_AN_AGENT_MAX)
        );
        let seconds = amounts.beat_seconds;
        ensure!(
            seconds > 0.0 && seconds <= BEATING_MAX_S,
            "cannot beat for {seconds} seconds; next: --beat-seconds above 0, and {BEATING_MAX_S} at most"
        );
        Ok(Some(Self {
            tasks,
            agents,
            kills: amounts.kill_leader,
            beating: Duration::from_secs_f64(seconds),
            heartbeat_timeout: Duration::from_secs(amounts.heartbeat_timeout),
            beats_apart: amounts.beats_apart,
        }))
    }

    /// Open files of one process: this one has a connection for each agent, and so has a node if the others are dead.
    pub(super) fn files(self) -> u64 {
        u64::from(self.agents) + FILES_BESIDE
    }

    /// Clients beat twice in the time for which they may be silent.
    pub(super) fn beat_every(self) -> Duration {
        self.heartbeat_timeout / 2
    }

    /// The numbers of the tasks behind an agent: as many as behind any other, or one less.
    pub(super) fn tasks_of(self, agent: u32) -> Range<u32> {
        let first = |agent: u32| {
            let (few, more) = (self.tasks / self.agents, self.tasks % self.agents);
            agent * few + agent.min(more)
        };
        first(agent)..first(agent + 1)
    }

    /// The section of the document.
    pub(super) fn section(self) -> &'static str {
        if self.tasks <= USUAL_MAX { "gang-played" } else { "gang-played-large" }
    }

    /// Of the time in which a task registers and passes a barrier, in seconds.
    pub(super) fn start_goal(self) -> Goal {
        Goal::AtMost(if self.tasks <= USUAL_MAX { 2.0 } else { 15.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amounts(tasks: u32, agents: u32) -> Amounts {
        Amounts { tasks: Some(tasks), agents: Some(agents), ..Amounts::usual() }
    }

    fn size(tasks: u32, agents: u32) -> Size {
        Size::of(amounts(tasks, agents)).unwrap().unwrap()
    }

    #[test]
    fn every_task_is_behind_one_agent() {
        for (tasks, agents) in [(10, 3), (10_000, 1_250), (7, 7), (5, 1), (1_000_000, 49_999)] {
            let size = size(tasks, agents);
            let all: Vec<u32> = (0..agents).flat_map(|agent| size.tasks_of(agent)).collect();
            assert_eq!(all, (0..tasks).collect::<Vec<_>>());
            let counts = (0..agents).map(|agent| size.tasks_of(agent).len());
            assert!(counts.clone().max().unwrap() - counts.min().unwrap() <= 1);
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        let refused = |amounts| Size::of(amounts).unwrap_err().to_string();
        assert!(refused(amounts(5, 6)).contains("6 agents are more than 5 tasks"));
        assert!(refused(amounts(0, 0)).contains("1 to 1000000 tasks, not 0"));
        assert!(refused(amounts(5, 0)).contains("agents can be played, not 0"));
        assert!(refused(amounts(100_000, 50_001)).contains("1 to 50000 agents"));
        assert!(refused(amounts(10_000, 2)).contains("--agents 10 or more"));
        for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(refused(Amounts { beat_seconds: seconds, ..amounts(5, 5) }).contains("cannot beat for"));
        }
        assert_eq!(Size::of(Amounts::usual()).unwrap(), None);
    }

    #[test]
    fn each_size_has_its_section_and_its_goal() {
        assert_eq!(
            (size(10_000, 1_250).section(), size(10_000, 1_250).start_goal()),
            ("gang-played", Goal::AtMost(2.0))
        );
        assert_eq!(
            (size(10_001, 1_250).section(), size(10_001, 1_250).start_goal()),
            ("gang-played-large", Goal::AtMost(15.0))
        );
        assert_eq!(size(100_000, 12_500).files(), 13_012);
    }
}
