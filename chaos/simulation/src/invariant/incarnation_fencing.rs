//! Once a newer life of a task is registered, an older one is acknowledged nothing.

use std::collections::BTreeMap;

use crate::observation::{Life, SimTime};

/// A task: its job and its number there.
pub(crate) type Task = (String, i32);

/// The newest registered life of each task.
#[derive(Debug, Default)]
pub(crate) struct IncarnationFencing {
    registered: BTreeMap<Task, BTreeMap<Life, SimTime>>,
    checked: u64,
}

impl IncarnationFencing {
    /// A life was told at `at` that it is registered. Its call began at `invoked`.
    pub(crate) fn registered(
        &mut self,
        task: &Task,
        life: Life,
        invoked: SimTime,
        at: SimTime,
    ) -> Result<(), String> {
        self.acknowledged(task, life, invoked, "a registration")?;
        self.registered.entry(task.clone()).or_default().entry(life).or_insert(at);
        Ok(())
    }

    /// A call of a life that began at `invoked` was answered with yes.
    pub(crate) fn acknowledged(
        &mut self,
        task: &Task,
        life: Life,
        invoked: SimTime,
        what: &str,
    ) -> Result<(), String> {
        self.checked += 1;
        let Some(lives) = self.registered.get(task) else { return Ok(()) };
        let newer = lives.iter().find(|(other, since)| **other > life && **since <= invoked);
        let Some((newer, since)) = newer else { return Ok(()) };
        Err(format!(
            "{what} of life {} of task {} of job {} was acknowledged, called at {invoked}, but life {} was \
             registered at {since}",
            life.0, task.1, task.0, newer.0
        ))
    }

    /// How many acknowledgements were judged.
    pub(crate) fn checked(&self) -> u64 {
        self.checked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_life_is_acknowledged_nothing_after_a_newer_one() {
        let task = ("gang".to_owned(), 1);
        let mut rule = IncarnationFencing::default();
        assert_eq!(rule.registered(&task, Life(1), SimTime(1), SimTime(5)), Ok(()));
        assert_eq!(rule.acknowledged(&task, Life(1), SimTime(6), "a beat"), Ok(()));
        assert_eq!(rule.registered(&task, Life(2), SimTime(7), SimTime(10)), Ok(()));
        assert_eq!(rule.acknowledged(&task, Life(1), SimTime(9), "a beat"), Ok(()), "they overlap");
        assert_eq!(rule.acknowledged(&task, Life(2), SimTime(11), "a beat"), Ok(()));
        let broken = rule.acknowledged(&task, Life(1), SimTime(10), "a beat").unwrap_err();
        assert!(broken.starts_with("a beat of life 1 of task 1 of job gang was acknowledged"), "{broken}");
        assert!(rule.registered(&task, Life(1), SimTime(11), SimTime(12)).is_err());
        assert_eq!(rule.acknowledged(&("gang".into(), 2), Life(1), SimTime(99), "a beat"), Ok(()));
    }
}
